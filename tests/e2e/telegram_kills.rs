//! `kill -9` at random moments while people write to a bot and its platform loses answers: each message is asked of the agent once and
//! answered once, and a reader sees an answer twice only where the platform could not be asked, which the trace says.
//!
//! `OPENCLAW_TEST_TELEGRAM_KILLS` sets how many kills there are, `OPENCLAW_TEST_SEED` the chance, `OPENCLAW_TEST_BINARY` what is killed
//! (`CONTRIBUTING.md`).

use std::collections::BTreeMap;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{Fault, TelegramServer, group_message, private_message};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::kills::{Told, set, transcripts};
use crate::telegram::bot;

/// Unless `OPENCLAW_TEST_TELEGRAM_KILLS` says otherwise.
const KILLS: usize = 50;
/// Unless `OPENCLAW_TEST_SEED` says otherwise.
const SEED: u64 = 20_261_124;
/// People who write in private. Another writes in groups, seldom: Telegram takes twenty messages a minute in each.
const PEOPLE: i64 = 25;
const GROUP: i64 = -100;
const GROUPS: i64 = 8;
/// How long an answer may take when nothing fails any more: after two failed tries it waits for 25 seconds.
const PATIENCE: Duration = Duration::from_secs(28);

fn answer(request: &Captured) -> Reply {
    let said = request.last_user_text();
    let run = said.split_whitespace().rfind(|word| word.starts_with("run-")).unwrap_or("nothing");
    let wants_tool = run.ends_with(['1', '4', '7']);
    if wants_tool && !request.ends_with_tool_result() {
        return Reply::tool(&format!("call-{run}"), "read", &json!({"path": "openclaw-test-no-such-file"}));
    }
    Reply::deltas(["answer ", "to ", run, " is here"])
}

/// A numbered message of somebody.
fn message(chance: &mut StdRng, number: usize) -> (String, Value) {
    let run = format!("run-{number}");
    let text = format!("please answer {run} now");
    let who = chance.random_range(1..=PEOPLE);
    let mut update = if chance.random_bool(0.1) {
        group_message(GROUP - chance.random_range(0..GROUPS), 9, &text)
    } else {
        private_message(who, &text)
    };
    update["message"]["message_id"] = json!(10_000 + number);
    (run, update)
}

fn fault(chance: &mut StdRng) -> Option<Fault> {
    Some(match chance.random_range(0..40) {
        0 => Fault::Drop,
        1 => Fault::DoneAndDropped,
        2 => Fault::CutOff,
        3 => Fault::Slower(1),
        4 => Fault::Refuse(500, "Internal Server Error"),
        _ => return None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_of_a_platform_is_answered_once_however_often_the_gateway_is_killed() -> Result<()> {
    let (kills, seed) = (set("OPENCLAW_TEST_TELEGRAM_KILLS", KILLS)?, set("OPENCLAW_TEST_SEED", SEED)?);
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(answer).await.forgetful();
    let section = json!({
        "dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}},
    });
    // Each is asked by itself; what is asked together is in `queue_modes`.
    let rest = json!({"session": {"dmScope": "per-peer"}, "messages": {"queue": {"mode": "followup", "debounceMs": 1}}});
    let mut gateway = bot(&server, &model, section, rest).await;
    let mut chance = StdRng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for _ in 0..kills {
        server.heal();
        let before = server.all_calls().iter().filter(|call| call.params.get("chat_id").is_some()).count();
        let count = chance.random_range(1..6);
        for _ in 0..count {
            let (run, update) = message(&mut chance, runs.len());
            runs.push(run);
            let number = server.push(update.clone());
            if chance.random_bool(0.1) {
                let mut again = update;
                again["update_id"] = json!(number);
                server.push_again(again);
            }
        }
        if let Some(fault) = fault(&mut chance) {
            server.fail("sendMessage", fault);
        }
        // Each is answered by one call at least.
        server.called(before + chance.random_range(0..=count)).await;
        gateway.kill().await?;
        gateway.start().await.context("the gateway does not start after a kill")?;
    }
    server.heal();
    for (number, run) in runs.iter().enumerate() {
        let answered = server.has_made("an answer", |made| times(made, run) > 0);
        if tokio::time::timeout(PATIENCE, answered).await.is_err() {
            let found = gateway
                .client()
                .await?
                .request("trace", json!({"id": (10_000 + number).to_string()}))
                .await?;
            let unread = server.unconfirmed();
            bail!(
                "{run} is not answered: {found}; {} are unread: {unread:?}; {}",
                unread.len(),
                gateway.log()
            );
        }
    }
    server.all_confirmed().await;

    let traces = traces(&gateway, &runs).await?;
    gateway.terminate().await?;
    let made = server.made();
    for (number, run) in runs.iter().enumerate() {
        let seen = times(&made, run);
        let is_flagged = traces[&number]["run"]["deliveries"]
            .as_array()
            .context("deliveries")?
            .iter()
            .any(|delivery| delivery["uncertain"] == true);
        ensure!(
            seen == 1 || is_flagged,
            "{run} was seen {seen} times and is not uncertain: {}, in {}",
            traces[&number],
            gateway.home().display()
        );
    }
    let told = transcripts(&gateway.state_dir().join("agents/main/sessions"))?;
    for run in &runs {
        assert_eq!(
            told.get(run),
            Some(&Told { asked: 1, answered: 1 }),
            "{run}, in {}",
            gateway.home().display()
        );
    }
    Ok(())
}

fn times(made: &[Value], run: &str) -> usize {
    let text = format!("answer to {run} is here");
    made.iter().filter(|message| message["text"] == text.as_str()).count()
}

/// What became of each message, once nothing waits any more. Every event has exactly one fate.
async fn traces(
    gateway: &openclaw_testkit::GatewayUnderTest,
    runs: &[String],
) -> Result<BTreeMap<usize, Value>> {
    let mut client = gateway.client().await?;
    let mut traces = BTreeMap::new();
    for number in 0..runs.len() {
        let found = client.request("trace", json!({"id": (10_000 + number).to_string()})).await?;
        let events = found["events"].as_array().context("events")?;
        ensure!(events.len() == 1, "message {number} is one event: {found}");
        ensure!(events[0]["fate"] == "run", "message {number} is a run: {found}");
        traces.insert(number, events[0].clone());
    }
    let last = client.request("trace", json!({})).await?;
    let tally: u64 = last["tally"].as_object().context("tally")?.values().filter_map(Value::as_u64).sum();
    ensure!(tally == runs.len() as u64, "each event has one fate: {last}");
    Ok(traces)
}
