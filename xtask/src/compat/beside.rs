//! Both on one state directory, one after the other and beside each other.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use openclaw_testkit::GatewaySetup;
use openclaw_testkit::many_sessions::{self, Skills};
use serde_json::json;

use super::original::Original;
use super::report::Report;
use super::state::{listed_row, rows, sessions_dir, transcript_of, turn};
use super::{REFUSAL, REFUSED, UNANSWERED, model};

const MAIN: &str = "agent:main:main";
const UNKNOWN: &str = "22222222-2222-4333-8444-555555555555";

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    unknown_transcript(program, original, report).await?;
    failed_run(program, original, report).await?;
    late_run(program, original, report).await?;
    locked_transcript(program, original, report).await?;
    after_a_crash(program, original, report).await?;
    shown_as_its_own(program, original, report).await?;
    ten_thousand_sessions(program, original, report).await
}

async fn unknown_transcript(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    original.run(&gateway, &["agent", "--agent", "main", "--message", "in main"]).await?;
    let main = transcript_of(&gateway, MAIN).await?;
    for message in ["elsewhere", REFUSED] {
        for selector in [&["--session-id", UNKNOWN][..], &["--session-id", "fresh", "--agent", "main"]] {
            let args = [&["agent", "--message", message], selector].concat();
            let printed = original.run(&gateway, &args).await?.all();
            let now = transcript_of(&gateway, MAIN).await?;
            let what = format!("the main session keeps its transcript after openclaw {}", args.join(" "));
            report.check(&what, now == main, &format!("{main:?} became {now:?}\n{printed}"));
        }
    }
    let own = sessions_dir(&gateway).join(format!("{UNKNOWN}.jsonl"));
    let said = std::fs::read_to_string(own).unwrap_or_default();
    report.check("what was said to the unknown transcript is in it", said.contains("elsewhere"), &said);
    Ok(())
}

async fn failed_run(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    let printed = original.run(&gateway, &["agent", "--agent", "main", "--message", REFUSED]).await?;
    let text = printed.all();
    let once = printed.good && text.matches(REFUSAL).count() == 1 && !text.contains("falling back");
    report.check("a failed run is printed once and not run again", once, &text);
    let asked = model.requests().len();
    report.check("a failed run asks the model once", asked == 1, &format!("asked {asked} times"));
    Ok(())
}

async fn late_run(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    let args = ["agent", "--agent", "main", "--message", UNANSWERED, "--timeout", "1"];
    let text = original.run(&gateway, &args).await?.all();
    let once = text.matches("timed out").count() == 1 && !text.contains("falling back");
    report.check("a run that is out of time says so once and is not run again", once, &text);
    let asked = model.requests().len();
    report.check(
        "a run that is out of time asks the model once",
        asked == 1,
        &format!("asked {asked} times"),
    );
    Ok(())
}

/// A lock that OpenClaw left two days ago. The process id in it belongs to this process now.
async fn locked_transcript(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    original.run(&gateway, &["agent", "--agent", "main", "--message", "before"]).await?;
    let id = transcript_of(&gateway, MAIN).await?.context("no main session")?;
    let lock = sessions_dir(&gateway).join(format!("{id}.jsonl.lock"));
    let content = json!({"pid": std::process::id(), "createdAt": "2026-01-01T00:00:00.000Z"});
    std::fs::write(&lock, format!("{content:#}"))?;
    let printed = original.run(&gateway, &["agent", "--agent", "main", "--message", "locked"]).await?.all();
    let answered = printed.contains("You said:") && !printed.contains("falling back");
    report.check("a lock of a process id that was used again holds nothing up", answered, &printed);
    Ok(())
}

async fn after_a_crash(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let mut gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    original.run(&gateway, &["agent", "--agent", "main", "--message", "first"]).await?;
    gateway.terminate().await?;
    gateway.start().await?;
    // Held by this process, so that the change stands in the journal alone when the gateway is killed.
    let lock = sessions_dir(&gateway).join("sessions.json.lock");
    std::fs::write(&lock, json!({"pid": std::process::id(), "startedAt": now_ms()?}).to_string())?;
    let mut client = gateway.client().await?;
    client.request("sessions.patch", json!({"key": "main", "label": "of the journal"})).await?;
    gateway.kill().await?;
    std::fs::remove_file(lock)?;
    original.run(&gateway, &["agent", "--local", "--agent", "main", "--message", "second"]).await?;
    let theirs = rows(&gateway)?[MAIN].clone();
    gateway.start().await?;
    gateway.client().await?.request("sessions.list", json!({})).await?;
    gateway.terminate().await?;
    let after = rows(&gateway)?[MAIN].clone();
    let both = format!("{theirs:#}\n{after:#}");
    report.check("a row that OpenClaw wrote after a crash counts whole", after == theirs, &both);
    let told = gateway.log().lines().any(|line| line.contains(MAIN) && line.contains("label"));
    report.check("the log says what was dropped", told, &gateway.log());
    Ok(())
}

async fn shown_as_its_own(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let mut gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    let mut client = gateway.client().await?;
    for (run, key) in [("run-1", "main"), ("run-2", "side")] {
        turn(&mut client, key, &format!("words in {key}"), run).await?;
    }
    drop(client);
    gateway.terminate().await?;
    let _theirs = original.gateway(&gateway).await?;
    let params = json!({"includeDerivedTitles": true, "includeLastMessage": true});
    let list = original.call(&gateway, "sessions.list", &params).await?;
    for key in ["main", "side"] {
        let row = listed_row(&list, &format!("agent:main:{key}"));
        let said =
            |field: &str| row[field].as_str().is_some_and(|text| text.contains(&format!("words in {key}")));
        let shown = said("derivedTitle") && said("lastMessagePreview");
        report.check(&format!("OpenClaw shows title and last message of {key}"), shown, &format!("{row:#}"));
    }
    for (args, wanted) in [(&["sessions"][..], "agent:main:side"), (&["status"], "agent:main:side")] {
        let printed = original.run(&gateway, args).await?.all();
        report.check(
            &format!("OpenClaw's {} shows the sessions", args.join(" ")),
            printed.contains(wanted),
            &printed,
        );
    }
    Ok(())
}

/// OpenClaw's `sessions` reads the file alone.
async fn ten_thousand_sessions(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let mut gateway = GatewaySetup::new(program).fake_model(&model.v1()).prepare()?;
    many_sessions::write(&gateway.state_dir(), 10_000, Skills::Some)?;
    gateway.start().await?;
    let mut client = gateway.client().await?;
    turn(&mut client, "newest", "hello", "run-1").await?;
    let printed = original.run(&gateway, &["sessions", "--active", "5"]).await?.all();
    let seen = printed.contains("agent:main:newest");
    report.check("OpenClaw's sessions shows a new one beside ten thousand", seen, &printed);
    Ok(())
}

fn now_ms() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}
