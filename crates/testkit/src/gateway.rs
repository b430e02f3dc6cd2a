//! The real binary, running as a gateway in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{DEADLINE, Login, WsClient};

/// The shared token of gateways under test.
pub const TOKEN: &str = "test-token-0123456789";

/// Time to go on reading the output of a gateway that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The line in which a gateway says where it listens.
const ANNOUNCEMENT: &str = "listening on ws://127.0.0.1:";

/// Settings that a gateway under test is started with.
#[derive(Debug, Clone)]
pub struct GatewaySetup {
    program: PathBuf,
    config: Value,
    args: Vec<String>,
    environment: Vec<(String, String)>,
}

impl GatewaySetup {
    /// The binary at `program` (a test passes `env!("CARGO_BIN_EXE_openclaw")`), token authentication, nothing that
    /// reaches out of the machine.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let config = json!({
            "gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}},
            "discovery": {"mdns": {"mode": "off"}},
            "browser": {"enabled": false},
            "agents": {"defaults": {"skipBootstrap": true, "heartbeat": {"every": "0m"}}},
        });
        Self { program: program.into(), config, args: Vec::new(), environment: Vec::new() }
    }

    /// Sets part of `openclaw.json`: objects are merged, `null` removes, anything else replaces.
    #[must_use]
    pub fn config(mut self, part: Value) -> Self {
        merge(&mut self.config, part);
        self
    }

    /// Replaces the whole of `openclaw.json`; `null` starts without the file.
    #[must_use]
    pub fn whole_config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// Uses an OpenAI-compatible model server as provider `fake` with model `fake/fake-1`.
    #[must_use]
    pub fn fake_model(self, base_url: &str) -> Self {
        let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0});
        let model = json!({
            "id": "fake-1", "name": "Fake One", "reasoning": false, "input": ["text"], "cost": cost,
            "contextWindow": 32000, "maxTokens": 4096,
        });
        let provider = json!({"baseUrl": base_url, "apiKey": "fake-key", "api": "openai-completions", "models": [model]});
        self.config(json!({
            "agents": {"defaults": {"model": {"primary": "fake/fake-1"}}},
            "models": {"mode": "merge", "providers": {"fake": provider}},
        }))
    }

    /// Adds a command-line argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Writes the directory and starts the gateway.
    ///
    /// # Errors
    /// When it does not come up; the text holds its log.
    pub async fn start(self) -> Result<GatewayUnderTest> {
        let mut gateway = self.prepare()?;
        gateway.start().await?;
        Ok(gateway)
    }

    /// Writes the directory and starts nothing, so that a test can put more into it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn prepare(self) -> Result<GatewayUnderTest> {
        let home = TempDir::new()?;
        let state = home.path().join(".openclaw");
        std::fs::create_dir(&state)?;
        if !self.config.is_null() {
            std::fs::write(state.join("openclaw.json"), serde_json::to_string_pretty(&self.config)?)?;
        }
        Ok(GatewayUnderTest {
            setup: self,
            home,
            log: Log::default(),
            process: None,
            port: 0,
            wanted_port: 0,
        })
    }
}

/// A gateway in a directory of its own. Dropping it kills the process and removes the directory.
#[derive(Debug)]
pub struct GatewayUnderTest {
    setup: GatewaySetup,
    home: TempDir,
    log: Log,
    process: Option<Process>,
    port: u16,
    /// Port that the next start listens on; 0 is any free port.
    wanted_port: u16,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Copies what the process prints; ends with it.
    readers: JoinSet<()>,
}

impl GatewayUnderTest {
    /// Starts the gateway, which must not be running, and waits until it listens.
    ///
    /// # Errors
    /// When it does not come up; the text holds its log.
    pub async fn start(&mut self) -> Result<()> {
        let mut announced = self.launch()?;
        let port = {
            // Ends without a port when the process closes its outputs without having said one.
            let listening = async { announced.wait_for(Option::is_some).await.ok().and_then(|port| *port) };
            timeout(DEADLINE, listening).await.ok().flatten()
        };
        self.port = port.ok_or_else(|| anyhow!("the gateway does not listen:\n{}", self.log()))?;
        Ok(())
    }

    /// Starts the gateway, which must not be running, and waits for nothing. The channel tells the port once it listens.
    ///
    /// # Errors
    /// When the program can't be started.
    pub fn launch(&mut self) -> Result<watch::Receiver<Option<u16>>> {
        if self.process.is_some() {
            bail!("the gateway is running");
        }
        let mut child = self
            .command()
            .args(["gateway", "run", "--port", &self.wanted_port.to_string()])
            .args(&self.setup.args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.setup.program.display()))?;
        let (announce, announced) = watch::channel(None);
        let mut readers = JoinSet::new();
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            readers.spawn(self.log.clone().copy(stdout, announce.clone()));
            readers.spawn(self.log.clone().copy(stderr, announce));
        }
        self.process = Some(Process { child, readers });
        Ok(announced)
    }

    /// Lets later starts listen where this one does, for clients that come back by themselves.
    pub fn keep_port(&mut self) {
        self.wanted_port = self.port;
    }

    /// Leaves the directory where it is when this is dropped.
    pub fn keep(&mut self) {
        self.home.disable_cleanup(true);
    }

    /// A command line of the same binary in the same directory, with nothing of this process's environment but `PATH`.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.setup.program);
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("OPENCLAW_STATE_DIR", self.state_dir())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            // Programs on this machine are no part of a test that does not say so.
            .env("OPENCLAW_LOCAL_MODELS", "off")
            .envs(self.setup.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(|process| process.child.id())
    }

    /// `HOME`.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// `~/.openclaw`.
    pub fn state_dir(&self) -> PathBuf {
        self.home.path().join(".openclaw")
    }

    /// All it printed so far, over all starts.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until it has printed a line that holds `text`.
    ///
    /// # Errors
    /// When the deadline passes first.
    pub async fn logged(&self, text: &str) -> Result<()> {
        let mut length = self.log.length.subscribe();
        let found = timeout(DEADLINE, length.wait_for(|_| self.log.text().contains(text))).await;
        match found.is_ok_and(|found| found.is_ok()) {
            true => Ok(()),
            false => bail!("the gateway never printed \"{text}\":\n{}", self.log()),
        }
    }

    /// A client with the shared token.
    ///
    /// # Errors
    /// When it is refused; the text holds the gateway's log.
    pub async fn client(&self) -> Result<WsClient> {
        let connected = WsClient::connect(self.port, Login::token(TOKEN)).await;
        connected.map(|(client, _)| client).with_context(|| format!("gateway log:\n{}", self.log()))
    }

    /// Number of messages that met each fate, by the name of the fate, once all of them are
    /// settled. The last answer reaches the platform a moment before its message is settled.
    ///
    /// # Errors
    /// When the gateway can't be asked, or a message still waits at the deadline; the text holds the fates.
    pub async fn fates(&self) -> Result<Value> {
        let mut client = self.client().await?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            let fates = client.request("trace", json!({})).await?;
            let fates = fates.get("tally").cloned().context("the answer to trace has no tally")?;
            if fates.get("waiting").is_none() {
                return Ok(fates);
            }
            if Instant::now() > deadline {
                bail!("some messages still wait: {fates}");
            }
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// `SIGKILL`, and waits until it is gone.
    ///
    /// # Errors
    /// When it is not running.
    pub async fn kill(&mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.exited().await.map(drop)
    }

    /// `SIGTERM`, and waits until it is gone.
    ///
    /// # Errors
    /// When it is not running or does not end.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.exited().await
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it is not running.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.pid().context("the gateway is not running")?;
        Ok(kill(Pid::from_raw(i32::try_from(pid)?), signal)?)
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it does not.
    pub async fn exited(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("the gateway is not running")?;
        let status = timeout(DEADLINE, process.child.wait()).await;
        // The last words are read too; a child left behind may hold the outputs open.
        let printed = async { while process.readers.join_next().await.is_some() {} };
        let _ = timeout(LAST_WORDS, printed).await;
        Ok(status.with_context(|| format!("the gateway does not end:\n{}", self.log()))??)
    }

    /// `SIGKILL` and a new start in the same directory.
    ///
    /// # Errors
    /// When it does not come up again.
    pub async fn crash_and_restart(&mut self) -> Result<()> {
        self.kill().await?;
        self.start().await
    }
}

/// Output of the process, line by line.
#[derive(Debug, Clone)]
struct Log {
    text: Arc<Mutex<String>>,
    length: watch::Sender<usize>,
}

impl Default for Log {
    fn default() -> Self {
        Self { text: Arc::default(), length: watch::Sender::new(0) }
    }
}

impl Log {
    fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, line: &str) {
        let length = {
            let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(line);
            text.push('\n');
            text.len()
        };
        self.length.send_replace(length);
    }

    async fn copy(self, stream: impl AsyncRead + Unpin, announce: watch::Sender<Option<u16>>) {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            self.push(&line);
            if let Some((_, rest)) = line.split_once(ANNOUNCEMENT) {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                announce.send_replace(digits.parse().ok());
            }
        }
    }
}

fn merge(into: &mut Value, part: Value) {
    match (into, part) {
        (Value::Object(into), Value::Object(part)) => {
            for (key, value) in part {
                if value.is_null() {
                    into.shift_remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, part) => *into = part,
    }
}
