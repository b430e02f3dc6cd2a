//! A sandbox and what lies around it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_agent::host::Host;
use openclaw_agent::place::off_limits::OffLimits;
use openclaw_agent::{ToolContext, Toolbox};
use openclaw_config::Environment;
use openclaw_config::settings::{Config, Exec, WebTools};
use openclaw_protocol::AgentId;
use openclaw_protocol::message::Block;
use openclaw_tools::sandbox::{ActiveSandbox, Level, Sandboxes, Wanted};
use openclaw_tools::{Confinement, ExecSettings, Setup, WebSettings, WebShared, toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Stands in every file outside.
pub(super) const SECRET: &str = "CANARY-7f3a91";

pub(super) struct Bench {
    pub(super) home: tempfile::TempDir,
    pub(super) sandbox: Arc<ActiveSandbox>,
    tools: Toolbox,
}

struct NoHost;

impl Host for NoHost {}

/// Attempt to escape: its command, and the answer that it must get.
pub(super) struct Attempt<'a> {
    pub(super) name: &'a str,
    pub(super) command: String,
    /// Accepted reasons for its failure: one of these must be in the answer.
    pub(super) reasons: &'a [&'a str],
}

pub(super) fn attempt<'a>(name: &'a str, command: impl Into<String>, reasons: &'a [&'a str]) -> Attempt<'a> {
    Attempt { name, command: command.into(), reasons }
}

/// Bench that uses at most this level of the kernel's means; `None`, and a loud line, where the
/// kernel has not even that.
pub(super) async fn bench(level: Level, sandbox: Value) -> Option<Bench> {
    bench_with(level, sandbox, |sandboxes| sandboxes).await
}

/// The same, with something set before.
#[expect(clippy::print_stderr, reason = "a test that checks nothing has to say so")]
pub(super) async fn bench_with(
    level: Level,
    sandbox: Value,
    set: impl FnOnce(Sandboxes) -> Sandboxes,
) -> Option<Bench> {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join(".openclaw");
    for file in [
        "secret.txt",
        ".ssh/id_ed25519",
        ".openclaw/openclaw.json",
        ".openclaw/exec-approvals.json",
        ".openclaw/credentials/oauth.json",
        ".openclaw/agents/main/agent/auth-profiles.json",
        ".openclaw/agents/main/sessions/s.jsonl",
        ".openclaw/workspace/MEMORY.md",
        ".openclaw/workspace/private.txt",
        ".openclaw/sandboxes/other/f.txt",
        "kept/deep/credentials/oauth.json",
    ] {
        let path = home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, SECRET).unwrap();
    }
    let credentials = home.path().join("kept/deep/credentials");
    let variables = [
        ("HOME", home.path().to_str().unwrap()),
        ("GATEWAY_TOKEN", SECRET),
        ("PATH", "/usr/bin:/bin"),
        ("OPENCLAW_OAUTH_DIR", credentials.to_str().unwrap()),
    ];
    let environment = Environment::new(variables, "/");
    let mut settings = json!({"mode": "all", "backend": "local"});
    settings.as_object_mut().unwrap().extend(sandbox.as_object().unwrap().clone());
    let document = json!({"agents": {"defaults": {"sandbox": settings}}}).to_string();
    let document = document.replace("{home}", home.path().to_str().unwrap());
    let config = Config::from_json5(&document, &environment).unwrap();
    let agent = AgentId::default();
    let sandboxes = set(Sandboxes::new(crate::program(), &state).at_level(level).await);
    let wanted = Wanted {
        config: &config,
        agent: &agent,
        agent_workspace: &state.join("workspace"),
        session_key: "agent:main:main",
        skills: &[],
    };
    let sandbox = match sandboxes.open(wanted).await {
        Ok(sandbox) => Arc::new(sandbox),
        Err(error) => {
            eprintln!("SKIPPED: this kernel gives no sandbox at level {}: {error}", level.as_str());
            return None;
        }
    };
    let mut exec = ExecSettings::new(&Exec::default(), environment);
    exec.sandbox = Some(Arc::clone(&sandbox));
    exec.may_background = true;
    exec.background = std::time::Duration::from_secs(120);
    let confinement = Confinement::Within(sandbox.workspace().to_owned());
    let names = ["exec", "process", "read", "write", "edit", "apply_patch"].map(str::to_owned);
    let web = WebSettings::new(&WebTools::default(), &Environment::default(), WebShared::default());
    let tools = toolbox(
        Setup {
            confinement,
            exec,
            message: None,
            apply_patch: true,
            web,
            image: None,
            has_gateway: false,
            writes: openclaw_tools::Writes::default(),
            memory_off: None,
            off_limits: OffLimits::of(&config),
        },
        &names,
    );
    Some(Bench { home, sandbox, tools })
}

impl Bench {
    pub(super) fn state(&self) -> PathBuf {
        self.home.path().join(".openclaw")
    }

    pub(super) fn box_dir(&self) -> &Path {
        self.sandbox.workspace()
    }

    /// Text that the model reads.
    pub(super) async fn call(&self, tool: &str, args: Value) -> String {
        let context = ToolContext {
            call_id: "c".to_owned(),
            // A gateway says the agent's own workspace.
            workspace: self.state().join("workspace"),
            cancel: CancellationToken::new(),
            updates: tokio::sync::mpsc::channel(1).0,
            host: Arc::new(NoHost),
        };
        let said = match self.tools.call(tool, args.clone(), context).await {
            Ok(output) => match output.content.as_slice() {
                [Block::Text(block)] => {
                    format!(
                        "{}{}",
                        output.notice.map(|notice| notice + "\n\n").unwrap_or_default(),
                        block.text
                    )
                }
                other => format!("{other:?}"),
            },
            Err(error) => format!("error: {error}"),
        };
        assert!(!said.contains(SECRET), "{tool} {args} told a secret: {said}");
        said
    }

    pub(super) async fn run(&self, command: &str) -> String {
        self.call("exec", json!({"command": command})).await
    }

    /// All are refused, and nothing outside has changed.
    pub(super) async fn refuses(&self, attempts: &[Attempt<'_>]) {
        let before = self.outside();
        let mut wrong = Vec::new();
        for each in attempts {
            let said = self.run(&each.command).await;
            if !each.reasons.iter().any(|reason| said.contains(reason)) {
                wrong.push(format!("{}: `{}` was told: {said}", each.name, each.command));
            }
        }
        assert!(wrong.is_empty(), "{} of {} attempts:\n{}", wrong.len(), attempts.len(), wrong.join("\n\n"));
        assert_eq!(self.outside(), before, "something outside has changed");
    }

    /// The files outside, with their content.
    pub(super) fn outside(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut left = vec![self.home.path().to_owned()];
        while let Some(dir) = left.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path == self.box_dir() {
                    continue;
                }
                match std::fs::symlink_metadata(&path).unwrap().is_dir() {
                    true => left.push(path),
                    false => found.push((path.clone(), std::fs::read_to_string(&path).unwrap_or_default())),
                }
            }
        }
        found.sort();
        found
    }
}
