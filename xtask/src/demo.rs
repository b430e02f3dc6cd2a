//! The main job in one command: a gateway, one message, the streamed reply with a tool call in it, the web chat's address.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use openclaw_testkit::{Login, Received, WsClient};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const TOKEN: &str = "demo-token";

/// A message that makes the built-in responder call a tool.
const MESSAGE: &str = "list";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let once = match args.as_slice() {
        [] => false,
        [flag] if flag == "--once" => true,
        _ => bail!("usage: cargo xtask demo [--once]"),
    };
    tokio::runtime::Runtime::new()?.block_on(demo(&gateway()?, once))
}

/// Path of the binary that `main.rs` built with this example.
fn gateway() -> Result<PathBuf> {
    let examples = std::env::current_exe()?;
    let target = examples.parent().and_then(Path::parent).context("the example is in no target directory")?;
    Ok(target.join("openclaw"))
}

async fn demo(program: &Path, once: bool) -> Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target/demo");
    prepare(&home)?;
    let (mut gateway, port) = start(program, &home).await?;
    println!("gateway is up on port {port}\n");
    converse(port).await?;
    println!("\nweb chat: http://127.0.0.1:{port}/#token={TOKEN}");
    println!("files:    {}", home.join("state").display());
    if once {
        gateway.kill().await?;
        return Ok(());
    }
    println!("\nThe gateway keeps running; Ctrl-C ends it.");
    gateway.wait().await?;
    Ok(())
}

fn prepare(home: &Path) -> Result<()> {
    let state = home.join("state");
    std::fs::create_dir_all(&state)?;
    let config = json!({
        "gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}},
        "agents": {"defaults": {"workspace": home.join("workspace")}},
    });
    std::fs::write(state.join("openclaw.json"), serde_json::to_string_pretty(&config)?)?;
    Ok(())
}

/// Starts the gateway on a free port with nothing of this environment, so that no key of the owner's is used.
async fn start(program: &Path, home: &Path) -> Result<(Child, u16)> {
    let mut gateway = Command::new(program)
        .args(["gateway", "run", "--port", "0"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("OPENCLAW_STATE_DIR", home.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the gateway")?;
    let mut lines = BufReader::new(gateway.stdout.take().context("no output")?).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(port) = announced_port(&line) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok((gateway, port));
        }
    }
    bail!("the gateway ended before it listened")
}

fn announced_port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("listening on ws://127.0.0.1:")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

async fn converse(port: u16) -> Result<()> {
    let login = Login::token(TOKEN).with("caps", json!(["tool-events"]));
    let (mut client, _) = WsClient::connect(port, login).await?;
    client.request("sessions.patch", json!({"key": "main", "verboseLevel": "full"})).await?;
    let run = format!("demo-{}", std::time::UNIX_EPOCH.elapsed()?.as_millis());
    println!("you: {MESSAGE}");
    client
        .request("chat.send", json!({"sessionKey": "main", "message": MESSAGE, "idempotencyKey": run}))
        .await?;
    print!("agent: ");
    let mut shown = HashSet::new();
    loop {
        let Received::Frame(frame) = client.receive().await? else {
            bail!("the gateway closed the connection")
        };
        match step(&frame, &mut shown) {
            Step::Text(text) => print!("{text}"),
            Step::Line(line) => println!("\n  [{line}]"),
            Step::Done => break,
            Step::Failed(why) => bail!("the run failed: {why}"),
            Step::Nothing => {}
        }
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}

enum Step {
    Text(String),
    Line(String),
    Done,
    Failed(String),
    Nothing,
}

fn step(frame: &Value, shown: &mut HashSet<String>) -> Step {
    let payload = &frame["payload"];
    let data = &payload["data"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (frame["event"].as_str(), payload["stream"].as_str(), payload["state"].as_str()) {
        (Some("agent"), Some("assistant"), _) => Step::Text(text(&data["delta"])),
        (Some("agent"), Some("tool"), _)
            if shown.insert(format!("{}{}", data["toolCallId"], data["phase"])) =>
        {
            match data["phase"].as_str() {
                Some("start") => Step::Line(format!("calls {} {}", text(&data["name"]), data["args"])),
                Some("result") => Step::Line(format!("{} answered", text(&data["name"]))),
                _ => Step::Nothing,
            }
        }
        (Some("chat"), _, Some("final")) => Step::Done,
        (Some("chat"), _, Some("error")) => Step::Failed(text(&payload["errorMessage"])),
        _ => Step::Nothing,
    }
}
