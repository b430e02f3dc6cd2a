//! Commands of OpenClaw against the gateway, and what they print.

use std::path::Path;

use anyhow::Result;
use openclaw_testkit::GatewaySetup;

use super::model;
use super::original::Original;
use super::report::Report;

/// Commands to run, and a text that each output must contain.
const CHECKS: &[(&[&str], &str)] = &[
    (&["gateway", "call", "health", "--json"], "\"ok\": true"),
    (&["gateway", "call", "sessions.list", "--json"], "\"sessions\""),
    (&["health", "--json"], "\"ok\": true"),
    (&["status"], "OpenClaw status"),
    (&["gateway", "call", "status", "--json"], "/agents/main/sessions/sessions.json"),
    (&["approvals", "get", "--gateway"], "exec-approvals.sock"),
    (&["agent", "--agent", "main", "--message", "hello from 2.9"], "hello from 2.9"),
    (&["agent", "--agent", "main", "--message", "again from 2.9", "--json"], "\"status\": \"ok\""),
    (&["sessions"], "agent:main:main"),
    (
        &["gateway", "call", "chat.history", "--params", r#"{"sessionKey":"main"}"#, "--json"],
        "hello from 2.9",
    ),
];

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    for (args, wanted) in CHECKS {
        let printed = original.run(&gateway, args).await?.all();
        report.check(&format!("openclaw {}", args.join(" ")), printed.contains(wanted), &printed);
    }
    Ok(())
}
