//! Conversations that outgrow the model's window: compacted after a run, within one, and when a person asks for it; memory saved
//! before; old tool results pruned.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedUsage, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::conversation::{end, history, send, transcript_path, turn, well_formed};
use crate::support::telegram::{bot, open};

const KEY: &str = "agent:main:compact";
const SUMMARY: &str = "## Goal\nTo fill the window.";

/// True if a request is for a summary.
fn is_summary(request: &Captured) -> bool {
    request.tool_names().is_empty() && request.last_user_text().starts_with("<conversation>")
}

fn big() -> Reply {
    Reply::text("Enough.").usage(ScriptedUsage { input: 31_500, output: 7, ..ScriptedUsage::default() })
}

/// Model as in the recording: `BIGUSAGE` fills the window of 32,000 tokens.
fn stub(request: &Captured) -> Reply {
    match request.last_user_text() {
        _ if is_summary(request) => Reply::text(SUMMARY),
        text if text.contains("BIGUSAGE") => big(),
        _ => Reply::text("Hello from the fake model."),
    }
}

fn pad(n: usize) -> String {
    format!("pad {n} {}", "lorem ipsum ".repeat(3_400))
}

/// Memory is not saved before: that has a test of its own. Only one tool, so that the prompt takes
/// the same room whatever tools there are.
fn plain() -> Value {
    let compaction = json!({"memoryFlush": {"enabled": false}});
    json!({"agents": {"defaults": {"compaction": compaction}}, "tools": {"allow": ["read"]}})
}

async fn started(model: &ModelServer, config: Value) -> (GatewayUnderTest, WsClient) {
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let client = gateway.client().await.unwrap();
    (gateway, client)
}

/// The session's row, as `sessions.list` shows it and as it is stored.
async fn row(gateway: &GatewayUnderTest, client: &mut WsClient) -> Value {
    // An answer comes after everything that was done before it was asked.
    let list = client.request("sessions.list", json!({"search": "compact"})).await.unwrap();
    let _ = gateway;
    list["sessions"][0].clone()
}

/// The phase and what else a `compaction` event of a run says.
async fn compaction(client: &mut WsClient, run: &str) -> Value {
    let is_it = |payload: &Value| payload["runId"] == run && payload["stream"] == "compaction";
    let event = client.event("agent", is_it).await.unwrap();
    assert_eq!(event["sessionKey"], KEY, "KB-38");
    event["data"].clone()
}

fn entries_of(path: &std::path::Path, kind: &str) -> Vec<Value> {
    well_formed(path).into_iter().filter(|entry| entry["type"] == kind).collect()
}

#[tokio::test]
async fn a_run_that_fills_the_window_is_followed_by_a_compaction() {
    let model = ModelServer::answering(stub).await;
    let (mut gateway, mut client) = started(&model, plain()).await;
    for n in 0..3 {
        turn(&mut client, KEY, &pad(n), &format!("pad-{n}")).await;
    }
    send(&mut client, KEY, "BIGUSAGE now", "big").await;
    assert_eq!(end(&mut client, "big").await["state"], "final", "the answer does not wait");
    assert_eq!(compaction(&mut client, "big").await, json!({"phase": "start"}));
    assert_eq!(compaction(&mut client, "big").await, json!({"phase": "end", "willRetry": false}));

    // The next turn sees the summary and the messages that were kept.
    assert_eq!(turn(&mut client, KEY, "go on", "next").await, "Hello from the fake model.");
    let asked = model.requests();
    let last = asked.last().unwrap().body["messages"].to_string();
    assert!(
        last.contains("compacted into the following summary") && last.contains("To fill the window."),
        "{last}"
    );
    assert!(!last.contains("pad 0 ") && last.contains("BIGUSAGE now") && last.contains("go on"));
    let summaries: Vec<&Captured> = asked.iter().filter(|request| is_summary(request)).collect();
    assert!(
        summaries[0].last_user_text().contains("[User]: [")
            && summaries[0].last_user_text().contains("pad 0 ")
    );
    assert!(summaries[0].body.get("tools").is_none(), "no tools");

    let path = transcript_path(&gateway, KEY).await;
    let made = entries_of(&path, "compaction");
    assert_eq!(made.len(), 1);
    assert!(made[0]["summary"].as_str().unwrap().starts_with(SUMMARY) && made[0]["tokensBefore"] == 31_507);
    let details = &made[0]["details"];
    assert_eq!((&details["readFiles"], &details["modifiedFiles"]), (&json!([]), &json!([])));
    let used = (&details["usage"]["model"], &details["usage"]["input"], &details["usage"]["output"]);
    let calls = summaries.len();
    assert_eq!(used, (&json!("fake-1"), &json!(100 * calls), &json!(7 * calls)), "{details}");
    // Five answers and the calls for the summary, which are no messages.
    let usage = client.request("sessions.usage", json!({"key": KEY})).await.unwrap();
    let session = &usage["sessions"][0]["usage"];
    let messages = &session["messageCounts"]["assistant"];
    assert_eq!((&session["output"], messages), (&json!((5 + calls) * 7), &json!(5)), "{session}");
    let shown = history(&mut client, KEY).await;
    assert_eq!(shown.iter().filter(|line| *line == "system: Compaction").count(), 1, "{}", shown.len());

    // The view survives a crash.
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, KEY, "still there?", "after").await;
    let after = model.requests().last().unwrap().body["messages"].to_string();
    assert!(after.contains("To fill the window.") && !after.contains("pad 0 "));
    let stored = row(&gateway, &mut client).await;
    assert!(stored["totalTokens"].as_u64().unwrap() < 31_500, "{stored}");
}

#[tokio::test]
async fn a_crash_during_a_compaction_leaves_the_conversation_as_it_was() {
    let tried = std::sync::atomic::AtomicUsize::new(0);
    let model = ModelServer::answering(move |request: &Captured| {
        match is_summary(request) && tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            true => Reply::never(),
            false => stub(request),
        }
    })
    .await;
    let (mut gateway, mut client) = started(&model, plain()).await;
    turn(&mut client, KEY, &pad(0), "pad-0").await;
    turn(&mut client, KEY, &pad(1), "pad-1").await;
    assert_eq!(turn(&mut client, KEY, "BIGUSAGE now", "big").await, "Enough.");
    model.arrived(4).await;
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert!(history(&mut client, KEY).await.iter().all(|line| line != "system: Compaction"));
    // The next turn makes room first.
    send(&mut client, KEY, "go on", "next").await;
    assert_eq!(compaction(&mut client, "next").await["phase"], "start");
    assert_eq!(compaction(&mut client, "next").await, json!({"phase": "end", "willRetry": false}));
    assert_eq!(end(&mut client, "next").await["state"], "final");
    let path = transcript_path(&gateway, KEY).await;
    assert_eq!(entries_of(&path, "compaction").len(), 1);
    let last = model.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("To fill the window.") && !last.contains("pad 0 ") && last.contains("go on"));
}

#[tokio::test]
async fn an_overflow_is_compacted_and_asked_again_in_the_same_run() {
    let model = ModelServer::answering(|request: &Captured| {
        let size = request.body["messages"].to_string().len();
        match is_summary(request) {
            true => Reply::text(SUMMARY),
            false if size > 100_000 => Reply::openai_error(
                400,
                "invalid_request_error",
                "This model's maximum context length is 25000 tokens.",
            ),
            false => Reply::text("It fits."),
        }
    })
    .await;
    let (_gateway, mut client) = started(
        &model,
        json!({"agents": {"defaults": {"compaction": {
        "reserveTokensFloor": 0, "memoryFlush": {"enabled": false}}}}}),
    )
    .await;
    turn(&mut client, KEY, &pad(0), "pad-0").await;
    turn(&mut client, KEY, &pad(1), "pad-1").await;
    send(&mut client, KEY, &pad(2), "over").await;
    assert_eq!(compaction(&mut client, "over").await["phase"], "start");
    let ended = compaction(&mut client, "over").await;
    assert_eq!(ended["phase"], "end");
    let end = end(&mut client, "over").await;
    assert_eq!((&end["state"], &end["message"]["content"][0]["text"]), (&json!("final"), &json!("It fits.")));
}

#[tokio::test]
async fn a_server_that_refuses_everything_ends_the_run_with_one_error() {
    let words = "prompt is too long: 208423 tokens > 200000 maximum";
    let refuse = move |_: &Captured| Reply::openai_error(400, "invalid_request_error", words);
    let model = ModelServer::answering(refuse).await;
    let (_gateway, mut client) = started(&model, plain()).await;
    send(&mut client, KEY, "hi", "over").await;
    let end = end(&mut client, "over").await;
    let told = "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.";
    let said = end["errorMessage"].as_str().unwrap_or_default();
    assert_eq!((&end["state"], said.lines().next()), (&json!("error"), Some(told)), "{end}");
    assert!(said.contains("\nfake (model fake-1) takes no request of this size. About "), "{said}");
    assert_eq!(model.requests().len(), 1, "there is nothing to compact");
}

#[tokio::test]
async fn a_person_asks_for_a_compaction_and_the_run_under_way_makes_room() {
    let model = ModelServer::answering(move |request: &Captured| match request.last_user_text() {
        _ if is_summary(request) => Reply::text(SUMMARY),
        text if text.contains("SLOW") => Reply::deltas(["tick"]).then(Step::Hang),
        _ => Reply::text("Hello."),
    })
    .await;
    let (gateway, mut client) = started(&model, plain()).await;
    assert_eq!(
        turn(&mut client, KEY, "/compact", "early").await,
        "⚙️ Compaction skipped: Nothing to compact (session too small) • Context ?/32k"
    );
    turn(&mut client, KEY, &pad(0), "pad-0").await;
    turn(&mut client, KEY, &pad(1), "pad-1").await;
    send(&mut client, KEY, "SLOW please", "slow").await;
    let is_tick = |payload: &Value| payload["runId"] == "slow" && payload["stream"] == "assistant";
    client.event("agent", is_tick).await.unwrap();
    send(&mut client, KEY, "/compact Focus on decisions", "compact").await;
    assert_eq!(end(&mut client, "slow").await["state"], "aborted");
    let said =
        end(&mut client, "compact").await["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    // The scripted model counts next to nothing, so what is left seems more than what was there.
    assert_eq!(said, "⚙️ Compacted (123 before) • Context 100/32k (0%)");
    let asked = model.requests();
    let summary = asked.iter().find(|request| is_summary(request)).unwrap();
    assert!(summary.last_user_text().ends_with("Additional focus: Focus on decisions"));
    let path = transcript_path(&gateway, KEY).await;
    assert_eq!(entries_of(&path, "compaction").len(), 1);
    // The agent hears of it with its next turn.
    turn(&mut client, KEY, "and now?", "next").await;
    let told = model.requests().last().unwrap().last_user_text();
    assert!(told.contains("Compacted (") && told.contains("and now?"), "{told}");
}

#[tokio::test]
async fn memory_is_saved_once_before_a_conversation_is_compacted() {
    let model = ModelServer::answering(|request: &Captured| match request.last_user_text() {
        _ if is_summary(request) => Reply::text(SUMMARY),
        text if text.contains("compacted: write") => Reply::text("NO_REPLY"),
        text if text.contains("FILL") => Reply::text("Filled.").usage(ScriptedUsage {
            input: 9_000,
            output: 7,
            ..ScriptedUsage::default()
        }),
        _ => {
            Reply::text("Hello.").usage(ScriptedUsage { input: 9_100, output: 7, ..ScriptedUsage::default() })
        }
    })
    .await;
    let (gateway, mut client) = started(&model, json!({})).await;
    turn(&mut client, KEY, "FILL it", "fill").await;
    assert_eq!(model.requests().len(), 1);
    assert_eq!(turn(&mut client, KEY, "hi", "hi").await, "Hello.");
    let asked = model.requests();
    assert_eq!(asked.len(), 3, "a turn before the turn");
    let flush = asked[1].last_user_text();
    assert!(flush.contains("memory/20") && flush.contains("NO_REPLY") && !flush.contains("YYYY"), "{flush}");
    assert!(
        asked[1].body["messages"][0].to_string().contains("compacted into a summary"),
        "the system prompt says so"
    );
    assert!(
        !asked[2].body["messages"][0].to_string().contains("compacted into a summary"),
        "for that turn alone"
    );
    assert_eq!(turn(&mut client, KEY, "again", "again").await, "Hello.");
    assert_eq!(model.requests().len(), 4, "once a cycle");
    // No part of the conversation that clients can ask for shows that turn.
    let history = json!({"sessionKey": KEY, "limit": 5});
    let shown = client.request("chat.history", history).await.unwrap()["messages"].to_string();
    assert!(shown.contains("Filled."), "it takes no place: {shown}");
    let preview = json!({"keys": [KEY], "limit": 10, "maxChars": 1_000});
    let preview = client.request("sessions.preview", preview).await.unwrap().to_string();
    assert!(preview.contains("FILL it"), "{preview}");
    for seen in [shown, preview] {
        assert!(
            seen.contains("Hello.") && !seen.contains("memory/20") && !seen.contains("NO_REPLY"),
            "{seen}"
        );
    }
    assert!(std::fs::read_to_string(transcript_path(&gateway, KEY).await).unwrap().contains("memory/20"));
}

#[tokio::test]
async fn old_tool_results_are_pruned_once_the_provider_has_forgotten_the_prompt() {
    let model = ModelServer::queue([
        Reply::tool("toolu_1", "exec", &json!({"command": "head -c 5000 /dev/zero | tr '\\0' x"})),
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Four."),
        Reply::text("Five."),
    ])
    .await;
    let config = json!({
        "agents": {"defaults": {
            "model": "anthropic/claude-opus-4-6",
            "contextPruning": {"mode": "cache-ttl", "ttl": "0s", "softTrimRatio": 0, "hardClear": {"enabled": false}},
        }},
        "models": {"providers": {"anthropic": {"baseUrl": model.url(), "models": []}}},
    });
    let setup = gateway().config(config).env("ANTHROPIC_API_KEY", "sk-ant-fake-key");
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (text, run) in [("look", "r1"), ("a", "r2"), ("b", "r3"), ("c", "r4"), ("d", "r5")] {
        turn(&mut client, KEY, text, run).await;
    }
    let asked = model.requests();
    let has_whole = |request: &Captured| request.body["messages"].to_string().contains(&"x".repeat(4_999));
    let shown: Vec<bool> = asked.iter().map(has_whole).collect();
    // The answers that are kept: three.
    assert_eq!(shown, [false, true, true, true, false, false]);
    let pruned = asked[5].body["messages"].to_string();
    assert!(
        pruned.contains("[Tool result trimmed: kept first 1500 chars and last 1500 chars of 50"),
        "{pruned}"
    );
    let path = transcript_path(&gateway, KEY).await;
    let touches =
        entries_of(&path, "custom").into_iter().filter(|entry| entry["customType"] == "openclaw.cache-ttl");
    assert_eq!(touches.count(), 5, "one a run, for OpenClaw");
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(whole.contains(&"x".repeat(4_999)), "the transcript has all of it");
}

/// A server that takes 60,000 characters besides the system prompt, and says this when it is to summarise.
fn strict(summary: fn() -> Reply) -> impl Fn(&Captured) -> Reply + Send + Sync + 'static {
    move |request| {
        let messages = request.messages();
        let said = messages.iter().filter(|message| message["role"] != "system");
        let size: usize = said.map(|message| message["content"].to_string().len()).sum();
        match is_summary(request) {
            true => summary(),
            false if size > 60_000 => overflow(),
            false => Reply::text("It fits."),
        }
    }
}

fn overflow() -> Reply {
    Reply::openai_error(400, "invalid_request_error", "This model's maximum context length is 25000 tokens.")
}

/// Text that is too much for such a server with [`pad`] before it, and not alone.
fn half_pad() -> String {
    "lorem ipsum ".repeat(1_700)
}

/// Config without safeguard: a summary that can't be made is a failure, and nothing is compacted in
/// advance.
fn unguarded() -> Value {
    json!({"agents": {"defaults": {"compaction": {
        "mode": "default", "reserveTokensFloor": 0, "memoryFlush": {"enabled": false}}}}})
}

/// Number of messages in a transcript.
fn told_of(path: &std::path::Path) -> usize {
    entries_of(path, "message").len()
}

#[tokio::test]
async fn a_conversation_that_can_not_be_compacted_begins_anew_and_the_person_is_told() {
    let model = ModelServer::answering(strict(overflow)).await;
    let (gateway, mut client) = started(&model, unguarded()).await;
    turn(&mut client, KEY, &pad(0), "pad-0").await;
    let old = transcript_path(&gateway, KEY).await;
    let before = row(&gateway, &mut client).await;

    send(&mut client, KEY, &half_pad(), "over").await;
    let ended = end(&mut client, "over").await;
    let told = ended["errorMessage"].as_str().unwrap_or_default().to_owned();
    assert_eq!(ended["state"], "error", "{ended}");
    let first = "⚠️ Context limit exceeded. I've reset our conversation to start fresh - please try again.";
    assert_eq!(told.lines().next(), Some(first));

    let after = row(&gateway, &mut client).await;
    assert_ne!(after["sessionId"], before["sessionId"]);
    assert_eq!(history(&mut client, KEY).await, [format!("assistant: {told}")], "the new one begins with it");
    assert!(told_of(&old) == 4, "what was said stays on disk");

    assert_eq!(turn(&mut client, KEY, "hello again", "next").await, "It fits.");
    let asked = model.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("hello again") && !asked.contains("lorem") && !asked.contains("Context limit"));
}

#[tokio::test]
async fn a_message_that_is_too_long_for_itself_does_not_end_the_conversation() {
    let model = ModelServer::answering(strict(|| Reply::text(SUMMARY))).await;
    let (gateway, mut client) = started(&model, unguarded()).await;
    turn(&mut client, KEY, "hi", "hi").await;
    let before = row(&gateway, &mut client).await;
    send(&mut client, KEY, &"long ".repeat(40_000), "over").await;
    let ended = end(&mut client, "over").await;
    let told = ended["errorMessage"].as_str().unwrap_or_default();
    assert!(told.starts_with("Context overflow: prompt too large for the model."), "{ended}");
    assert!(told.contains("window holds 32,000"), "{told}");
    assert_eq!(row(&gateway, &mut client).await["sessionId"], before["sessionId"]);
    assert_eq!(turn(&mut client, KEY, "and this?", "next").await, "It fits.");
}

#[tokio::test]
async fn who_wants_to_know_everything_is_told_that_a_run_was_compacted() {
    let model = ModelServer::answering(strict(|| Reply::text(SUMMARY))).await;
    let (_gateway, mut client) = started(&model, unguarded()).await;
    turn(&mut client, KEY, &pad(0), "pad-0").await;
    client.request("sessions.patch", json!({"key": KEY, "verboseLevel": "on"})).await.unwrap();
    let params = json!({"sessionKey": KEY, "message": half_pad(), "idempotencyKey": "over"});
    let id = client.send("agent", params).await.unwrap();
    client.answer(&id).await.unwrap();
    let answer = client.answer(&id).await.unwrap().payload;
    let texts: Vec<&str> = answer["result"]["payloads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|payload| payload["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["🧹 Auto-compaction complete (count 1).", "It fits."], "{answer}");
    let used = &answer["result"]["meta"]["agentMeta"]["usage"];
    assert_eq!((&used["input"], &used["output"]), (&json!(200), &json!(14)), "the summary and the answer");
}

/// The web chat and the TUI are told by an event, and by a line of the history, which they read anew.
#[tokio::test]
async fn a_client_that_wants_to_know_everything_is_told_of_a_compaction_within_a_run() {
    for level in ["on", "off"] {
        let model = ModelServer::answering(strict(|| Reply::text(SUMMARY))).await;
        let (_gateway, mut client) = started(&model, unguarded()).await;
        turn(&mut client, KEY, &pad(0), "pad-0").await;
        client.request("sessions.patch", json!({"key": KEY, "verboseLevel": level})).await.unwrap();
        assert_eq!(turn(&mut client, KEY, &half_pad(), "over").await, "It fits.");
        let shown = history(&mut client, KEY).await;
        let asked = shown.iter().rposition(|line| line.starts_with("user: ")).unwrap();
        let (answer, between) = shown[asked + 1..].split_last().unwrap();
        assert_eq!(answer, "assistant: It fits.");
        assert_eq!(between.iter().any(|line| line == NOTE), level == "on", "{between:?}");
        assert_eq!(turn(&mut client, KEY, "go on", "next").await, "It fits.");
        is_told_once(&mut client, &model, level).await;
    }
}

#[tokio::test]
async fn a_client_that_wants_to_know_everything_is_told_of_a_compaction_after_a_run() {
    for level in ["on", "off"] {
        let model = ModelServer::answering(stub).await;
        let (_gateway, mut client) = started(&model, plain()).await;
        for n in 0..3 {
            turn(&mut client, KEY, &pad(n), &format!("pad-{n}")).await;
        }
        client.request("sessions.patch", json!({"key": KEY, "verboseLevel": level})).await.unwrap();
        assert_eq!(turn(&mut client, KEY, "BIGUSAGE now", "big").await, "Enough.");
        assert_eq!(compaction(&mut client, "big").await["phase"], "start");
        assert_eq!(compaction(&mut client, "big").await["phase"], "end");
        let shown = history(&mut client, KEY).await;
        assert_eq!(shown.last().unwrap() == NOTE, level == "on", "{:?}", shown.last());
        turn(&mut client, KEY, "go on", "next").await;
        is_told_once(&mut client, &model, level).await;
    }
}

/// As the history shows it.
const NOTE: &str = "assistant: 🧹 Auto-compaction complete (count 1).";

/// Checks that clients heard of one compaction if they want to, and that no model was asked to go on
/// from the note.
async fn is_told_once(client: &mut WsClient, model: &ModelServer, level: &str) {
    let count = usize::from(level == "on");
    let shown = history(client, KEY).await;
    assert_eq!(shown.iter().filter(|line| *line == NOTE).count(), count, "{level}");
    let is_note =
        |frame: &Value| frame["payload"]["runId"].as_str().is_some_and(|run| run.starts_with("inject-"));
    // An answer comes after all events before it.
    let told: Vec<Value> = client.take_passed().into_iter().filter(is_note).collect();
    assert_eq!(told.len(), count, "{level}: {told:?}");
    for event in told {
        let (state, said) = (&event["payload"]["state"], &event["payload"]["message"]["content"][0]["text"]);
        assert_eq!(
            (state, format!("assistant: {}", said.as_str().unwrap()).as_str()),
            (&json!("final"), NOTE)
        );
    }
    let last: Vec<Value> = model.requests().iter().filter_map(|it| it.messages().last().cloned()).collect();
    assert!(last.iter().all(|message| message["role"] != "assistant"), "{level}: {last:?}");
}

#[tokio::test]
async fn a_chat_that_wants_to_know_everything_is_told_of_a_compaction_after_a_run() {
    for level in ["on", "off"] {
        let (server, model) = (TelegramServer::start().await, ModelServer::answering(stub).await);
        let mut config = plain();
        merge(&mut config, json!({"agents": {"defaults": {"verboseDefault": level}}}));
        let gateway = bot(&server, &model, open(), config).await;
        for n in 0..3 {
            server.push(private_message(5, &pad(n)));
            model.arrived(n + 1).await;
            gateway.fates().await.unwrap();
        }
        server.push(private_message(5, "BIGUSAGE now"));
        server.has_made("the answer", |made| made.iter().any(|one| one["text"] == "Enough.")).await;
        let note = "🧹 Auto-compaction complete (count 1).";
        if level == "on" {
            server.has_made("the note", |made| made.last().is_some_and(|one| one["text"] == note)).await;
        }
        server.push(private_message(5, "go on"));
        let last = "Hello from the fake model.";
        server.has_made("what comes next", |made| made.last().is_some_and(|one| one["text"] == last)).await;
        assert_eq!(
            server.made().iter().filter(|one| one["text"] == note).count(),
            usize::from(level == "on")
        );
    }
}

#[tokio::test]
async fn memory_is_not_saved_where_it_can_not_be_written() {
    let model = ModelServer::answering(|_| {
        Reply::text("Hello.").usage(ScriptedUsage { input: 9_100, output: 7, ..ScriptedUsage::default() })
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("memory"), "a file has its name").unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, KEY, "fill", "fill").await;
    turn(&mut client, KEY, "hi", "hi").await;
    assert_eq!(model.requests().len(), 2, "no turn before the turn");
    std::fs::remove_file(workspace.join("memory")).unwrap();
    turn(&mut client, KEY, "again", "again").await;
    assert_eq!(model.requests().len(), 4);
}
