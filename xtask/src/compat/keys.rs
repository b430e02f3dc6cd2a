//! Keys of rows that earlier versions wrote: which session OpenClaw's programs find them as.

use std::path::Path;

use anyhow::{Context, Result};
use openclaw_testkit::GatewaySetup;
use serde_json::{Value, json};

use super::model;
use super::original::Original;
use super::report::Report;
use super::state::{listed_row, rows, sessions_dir, turn};

/// Keys of a conversation: the one it begins under, the one its row has in the file, and the one it
/// is listed by.
const KEYS: &[[&str; 3]] = &[
    ["agent:main:telegram:group:-100", "group:-100", "agent:main:telegram:group:-100"],
    ["agent:main:telegram:group:-100", "agent:main:unknown:group:-100", "agent:main:telegram:group:-100"],
    ["agent:main:telegram:dm:5", "agent:main:telegram:direct:5", "agent:main:telegram:direct:5"],
];

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    for keys in KEYS {
        goes_on(program, original, report, *keys).await?;
    }
    Ok(())
}

async fn goes_on(
    program: &Path,
    original: &Original,
    report: &mut Report,
    [begun, stored, listed]: [&str; 3],
) -> Result<()> {
    let model = model().await;
    let mut gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    turn(&mut gateway.client().await?, begun, "before", "run-1").await?;
    gateway.terminate().await?;
    let mut row = rows(&gateway)?[begun].take();
    row["channel"] = json!("telegram");
    let id = row["sessionId"].as_str().context("no row")?.to_owned();
    std::fs::write(sessions_dir(&gateway).join("sessions.json"), json!({ stored: row }).to_string())?;
    gateway.start().await?;

    let found = original.call(&gateway, "sessions.list", &json!({})).await?;
    let kept = listed_row(&found, listed)["sessionId"] == id;
    report.check(&format!("the row {stored} is listed as {listed}"), kept, &format!("{found:#}"));

    let printed = original.run(&gateway, &["agent", "--session-id", &id, "--message", "after"]).await?.all();
    let asked =
        model.requests().last().map(|request| request.body["messages"].to_string()).unwrap_or_default();
    let goes_on = asked.contains("before") && asked.contains("after");
    report.check(&format!("the conversation of {stored} goes on"), goes_on, &format!("{printed}\n{asked}"));

    gateway.terminate().await?;
    let in_file = original.json(&gateway, &["sessions", "--json"]).await?;
    let keys = in_file["sessions"].as_array().into_iter().flatten().map(|row| &row["key"]);
    let only = keys.eq([&Value::from(listed)]);
    report.check(
        &format!("OpenClaw's sessions shows {stored} as {listed} alone"),
        only,
        &format!("{in_file:#}"),
    );
    Ok(())
}
