//! A restart that a change of the configuration needs.

use std::path::Path;

use anyhow::Result;
use openclaw_testkit::GatewaySetup;
use serde_json::json;

use super::client::OwnClient;
use super::model;
use super::original::Original;
use super::report::Report;

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let mut gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    // On a port that it keeps, so that the client finds it again.
    gateway.keep_port();
    gateway.terminate().await?;
    gateway.start().await?;
    let mut client = OwnClient::open(original, &gateway)?;
    client.hello().await?;
    let now = client.request("config.get", json!({})).await?;
    let mut config = now["parsed"].clone();
    config["logging"]["level"] = json!("debug");
    client.request("config.set", json!({"raw": config.to_string(), "baseHash": now["hash"]})).await?;
    let closed = client.heard("the end of its connection", |line| line["closed"].is_number()).await?;
    report.check(
        "config.set restarts the gateway where that is needed",
        closed["closed"] == 1012,
        &closed.to_string(),
    );
    let again = client.hello().await;
    report.check("OpenClaw's client is back after the restart", again.is_ok(), &format!("{again:?}"));
    let set = original.run(&gateway, &["config", "get", "logging.level"]).await?.all();
    report.check("the change is there after the restart", set.contains("debug"), &set);
    Ok(())
}
