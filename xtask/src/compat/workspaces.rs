//! Workspace paths: the gateway reports the place that OpenClaw's `agents list` works out for
//! itself.

use std::path::Path;

use anyhow::{Context, Result};
use openclaw_testkit::GatewaySetup;
use serde_json::json;

use super::model;
use super::original::Original;
use super::report::Report;

const CONFIG: &str = "~/.openclaw/openclaw.json";

/// Name of each place, and the variables to set: the second is what `--profile job` makes of
/// itself.
const PLACES: &[(&str, &[(&str, &str)])] = &[
    ("its usual place", &[]),
    ("OPENCLAW_STATE_DIR", &[("OPENCLAW_STATE_DIR", "~/elsewhere"), ("OPENCLAW_CONFIG_PATH", CONFIG)]),
    (
        "--profile job",
        &[
            ("OPENCLAW_PROFILE", "job"),
            ("OPENCLAW_STATE_DIR", "~/.openclaw-job"),
            ("OPENCLAW_CONFIG_PATH", CONFIG),
        ],
    ),
];

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let agents = json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "ops"}]}});
    for (place, variables) in PLACES {
        let setup = GatewaySetup::new(program).fake_model(&model.v1()).config(agents.clone());
        let setup = variables.iter().fold(setup, |setup, (name, value)| setup.env(*name, *value));
        let gateway = setup.start().await?;
        let original = original.with(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let listed = original.json(&gateway, &["agents", "list", "--json"]).await?;
        for agent in listed.as_array().context("no list of agents")? {
            let files =
                original.call(&gateway, "agents.files.list", &json!({"agentId": agent["id"]})).await?;
            let same = files["workspace"].is_string() && files["workspace"] == agent["workspace"];
            let what = format!("the workspace of {} is where OpenClaw has it with {place}", agent["id"]);
            report.check(&what, same, &format!("{agent:#}\n{files:#}"));
        }
    }
    Ok(())
}
