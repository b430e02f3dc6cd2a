//! The programs of OpenClaw 2026.2.9, run in the directory of a gateway under test.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use openclaw_testkit::GatewayUnderTest;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A configuration in the home directory for OpenClaw alone, without the keys it refuses; used where a check writes one.
pub(super) const OWN_CONFIG: &str = "of-openclaw.json";

/// Paths of OpenClaw's programs, and variables they are given besides the usual ones.
#[derive(Debug, Clone)]
pub(super) struct Original {
    pub(super) node: PathBuf,
    pub(super) script: PathBuf,
    pub(super) variables: Vec<(&'static str, String)>,
}

/// Time that a command may take: a Node.js program of this size needs seconds to load.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

/// Output of a command.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) good: bool,
}

impl Printed {
    pub(super) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

impl Original {
    /// The same with more variables.
    pub(super) fn with(&self, variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let mut with = self.clone();
        with.variables.extend(variables);
        with
    }

    /// A command in a gateway's directory, talking to the port it has or last had.
    pub(super) fn command(&self, gateway: &GatewayUnderTest) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script);
        environment(&mut command, gateway);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs one command to its end.
    pub(super) async fn run(&self, gateway: &GatewayUnderTest, args: &[&str]) -> Result<Printed> {
        let output = self.command(gateway).args(args).output();
        let output = timeout(PATIENCE, output).await.with_context(|| format!("{args:?} does not end"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Ok(Printed { out, err, good: output.status.success() })
    }

    /// The JSON that a command prints.
    pub(super) async fn json(&self, gateway: &GatewayUnderTest, args: &[&str]) -> Result<Value> {
        let printed = self.run(gateway, args).await?;
        serde_json::from_str(&printed.out)
            .with_context(|| format!("openclaw {}: {}", args.join(" "), printed.all()))
    }

    /// The answer to a method, asked by its command line.
    pub(super) async fn call(
        &self,
        gateway: &GatewayUnderTest,
        method: &str,
        params: &Value,
    ) -> Result<Value> {
        let params = params.to_string();
        self.json(gateway, &["gateway", "call", method, "--params", &params, "--json"]).await
    }

    /// Starts OpenClaw's gateway, on the port that the gateway under test had. Killed when dropped.
    pub(super) async fn gateway(&self, gateway: &GatewayUnderTest) -> Result<Child> {
        let port = gateway.port();
        let child = self
            .command(gateway)
            .args(["gateway", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let listens = async {
            let mut looks = tokio::time::interval(Duration::from_millis(100));
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                looks.tick().await;
            }
        };
        timeout(PATIENCE, listens).await.context("the original gateway does not listen")?;
        Ok(child)
    }
}

/// The environment in which a program meets the state directory of a gateway.
pub(super) fn environment(command: &mut Command, gateway: &GatewayUnderTest) {
    command
        .env_clear()
        .env("HOME", gateway.home())
        .env("OPENCLAW_STATE_DIR", gateway.state_dir())
        .env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("NO_COLOR", "1")
        // A single process, not two of which the second outlives the first when it is killed.
        .env("OPENCLAW_NO_RESPAWN", "1")
        .current_dir(gateway.home())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let own = gateway.home().join(OWN_CONFIG);
    if own.is_file() {
        command.env("OPENCLAW_CONFIG_PATH", own);
    }
}
