//! OpenClaw's own client of the gateway, the class of its terminal interface, on a connection that stays and hears events.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use openclaw_testkit::{GatewayUnderTest, TOKEN};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::original::{Original, PATIENCE, environment};
use crate::generate::root;

/// The name by which it is present.
pub(super) const INSTANCE: &str = "compat-instance";

/// A process that ends with this.
#[derive(Debug)]
pub(super) struct OwnClient {
    _child: Child,
    asks: ChildStdin,
    hears: Lines<BufReader<ChildStdout>>,
    /// Heard while something else was waited for.
    passed: Vec<Value>,
    asked: u64,
}

impl OwnClient {
    pub(super) fn open(original: &Original, gateway: &GatewayUnderTest) -> Result<Self> {
        let package = original.script.parent().context("no package")?;
        let mut command = Command::new(&original.node);
        command
            .arg(root().join("xtask/src/compat/client.mjs"))
            .arg(package.join("dist"))
            .arg(format!("ws://127.0.0.1:{}", gateway.port()))
            .args([TOKEN, INSTANCE]);
        environment(&mut command, gateway);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let asks = child.stdin.take().context("no input")?;
        let hears = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { _child: child, asks, hears, passed: Vec::new(), asked: 0 })
    }

    /// The answer to its `connect`; a later one where it has connected again.
    pub(super) async fn hello(&mut self) -> Result<Value> {
        Ok(self.heard("hello-ok", |line| line["hello"].is_object()).await?["hello"].take())
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        let line = json!({"id": id, "method": method, "params": params});
        self.asks.write_all(format!("{line}\n").as_bytes()).await?;
        let mut answer = self.heard(method, |line| line["id"] == id).await?;
        match &answer["error"] {
            Value::Null => Ok(answer["payload"].take()),
            error => bail!("{method}: {error}"),
        }
    }

    /// Says something in a session; the answer comes with [`Self::end`].
    pub(super) async fn say(&mut self, key: &str, text: &str, run: &str) -> Result<()> {
        let message = json!({"sessionKey": key, "message": text, "idempotencyKey": run});
        self.request("chat.send", message).await.map(drop)
    }

    /// The `chat` event that ends a run whose id ends in this.
    pub(super) async fn end(&mut self, run: &str) -> Result<Value> {
        let is_end = |line: &Value| {
            line["event"] == "chat"
                && line["payload"]["state"] != "delta"
                && line["payload"]["runId"].as_str().is_some_and(|id| id.ends_with(run))
        };
        Ok(self.heard(run, is_end).await?["payload"].take())
    }

    /// Waits for a line that it prints.
    pub(super) async fn heard(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(at) = self.passed.iter().position(&is) {
            return Ok(self.passed.remove(at));
        }
        let found = async {
            loop {
                let line = self.hears.next_line().await?.context("it has ended")?;
                let line: Value = serde_json::from_str(&line)?;
                if is(&line) {
                    return Ok(line);
                }
                self.passed.push(line);
                ensure!(self.passed.len() < 10_000, "it hears without an end");
            }
        };
        let found = timeout(PATIENCE, found).await.context("nothing comes").flatten();
        found.with_context(|| format!("OpenClaw's client never hears {what}: {:#?}", self.passed))
    }
}
