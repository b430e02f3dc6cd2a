//! OpenClaw's text interface in a terminal, which `script` of util-linux makes.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedUsage};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::model;
use super::original::{Original, PATIENCE, environment};
use super::report::Report;
use super::state::turn;

/// Input to type: a command that the gateway answers at once, and a message to the model.
const TYPED: [&str; 2] = ["/context", "hello from the terminal"];
/// Status line when nothing is under way.
const IDLE: &str = "connected | idle";

/// Beginning of the line of `/status` that says where sessions are stored.
const STORE: &str = "Session store: ";

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    for scope in ["per-sender", "global"] {
        comes_to_rest(program, original, report, scope).await?;
    }
    is_told_of_a_compaction(program, original, report).await
}

/// Checks a verbose session: OpenClaw's gateway tells chats of a compaction, and the terminal nothing.
async fn is_told_of_a_compaction(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = ModelServer::answering(|request| match request.last_user_text() {
        text if text.starts_with("<conversation>") => Reply::text("## Goal\nTo fill the window."),
        text if text.contains("fill it") => {
            let usage = ScriptedUsage { input: 31_500, output: 7, ..ScriptedUsage::default() };
            Reply::text("It is full.").usage(usage)
        }
        _ => Reply::text("Go on."),
    })
    .await;
    let config = json!({
        "agents": {"defaults": {"verboseDefault": "on", "compaction": {"memoryFlush": {"enabled": false}}}},
        "tools": {"allow": ["read"]},
    });
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(config).start().await?;
    let mut client = gateway.client().await?;
    for n in 0..3 {
        turn(&mut client, "main", &"lorem ipsum ".repeat(3_400), &format!("pad-{n}")).await?;
    }
    let Ok(mut terminal) = Terminal::open(original, &gateway) else { return Ok(()) };
    let told = async {
        terminal.shows(IDLE).await?;
        terminal.types("fill it").await?;
        terminal.shows("Auto-compaction complete (count 1).").await
    };
    let told = told.await;
    report.check("a verbose terminal is told of a compaction", told.is_ok(), &terminal.seen);
    Ok(())
}

/// Checks a terminal with `session.scope: "global"`: it looks for the session by that name alone.
async fn comes_to_rest(program: &Path, original: &Original, report: &mut Report, scope: &str) -> Result<()> {
    let model = model().await;
    let config = json!({"session": {"scope": scope}});
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(config).start().await?;
    let Ok(mut terminal) = Terminal::open(original, &gateway) else {
        println!("pass the terminal: `script` is not installed");
        return Ok(());
    };
    let shown = terminal.shows(IDLE).await;
    report.check(&format!("the terminal connects (scope {scope})"), shown.is_ok(), &terminal.seen);
    for text in TYPED {
        terminal.types(text).await?;
        // The terminal is busy until the answer is there; where the end comes too soon it stays so.
        let idle = terminal.shows(IDLE).await;
        let what = format!("the terminal is idle after {text:?} (scope {scope})");
        report.check(&what, idle.is_ok(), &terminal.seen);
    }
    terminal.types("/status").await?;
    let told = terminal.shows(STORE).await;
    let what = format!("the terminal tells where sessions are stored (scope {scope})");
    report.check(&what, told.is_ok(), &terminal.seen);
    Ok(())
}

struct Terminal {
    _child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    seen: String,
}

impl Terminal {
    fn open(original: &Original, gateway: &GatewayUnderTest) -> Result<Self> {
        let line = format!("{} {} tui", original.node.display(), original.script.display());
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        environment(&mut command, gateway);
        command.env("TERM", "xterm-256color").env("COLUMNS", "120").env("LINES", "40");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let keys = child.stdin.take().context("no input")?;
        let screen = child.stdout.take().context("no output")?;
        Ok(Self { _child: child, keys, screen, seen: String::new() })
    }

    /// Types a line on a screen that counts as empty.
    async fn types(&mut self, text: &str) -> Result<()> {
        self.seen.clear();
        Ok(self.keys.write_all(format!("{text}\r").as_bytes()).await?)
    }

    /// Waits until the screen has shown a text.
    async fn shows(&mut self, text: &str) -> Result<()> {
        let mut piece = [0; 4096];
        let found = async {
            while !self.seen.contains(text) {
                let count = self.screen.read(&mut piece).await?;
                anyhow::ensure!(count > 0, "the terminal ended");
                self.seen.push_str(&String::from_utf8_lossy(piece.get(..count).unwrap_or_default()));
            }
            Ok(())
        };
        timeout(PATIENCE, found).await.context("never shown")?
    }
}
