//! `exec`: runs a shell command and waits for it (spec `tools.md` §3).
//!
//! `plan` decides from settings and arguments alone, `process` runs what was decided. There is no `process` tool yet, so
//! nothing is put in the background: a call that asks for it runs synchronously and is told so (spec §3.1 row 2).

pub mod approvals;
mod environment;
pub(crate) mod guard;
pub(crate) mod handler;
mod leftovers;
mod output;
mod plan;
mod process;
pub(crate) mod settings;
mod slug;

use std::sync::{Arc, LazyLock};

use openclaw_agent::tool::{Reach, ToolFuture};
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_config::clock::now_ms;
use openclaw_config::settings::ExecHost;
use openclaw_models::ToolSchema;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::row::{Setup, ToolRow};
use plan::Plan;
use process::{Ending, Finished, Order, RunError};
use settings::ExecSettings;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(Exec::new(setup)));

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:runtime"],
    description: "Run a shell command and wait for its output. Standard input is empty. Long output is cut to its \
                  end; a command that outlives its timeout is killed.",
    summary: "Run a shell command (pty for programs that need a terminal)",
    prompt_position: 8,
    emoji: "🛠️",
    label_arguments: &["command"],
    aliases: &["bash"],
    reach: Reach::Unconfined,
    ..ToolFacts::named("exec")
};

/// Runs the commands of one run.
#[derive(Debug)]
struct Exec {
    setup: Arc<Setup>,
    /// `PATH` of a login shell, asked for once, with the first command on host=gateway.
    login_path: OnceCell<Option<String>>,
}

impl Tool for Exec {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
            "type": "object",
            "properties": {
                "command": {"description": "The command line, run by the shell", "type": "string"},
                "workdir": {"description": "Directory to run in (default: the workspace)", "type": "string"},
                "env": {"type": "object"},
                "yieldMs": {"description": "Milliseconds before a command goes to the background", "type": "number"},
                "background": {"description": "Go to the background at once", "type": "boolean"},
                "timeout": {"description": "Seconds after which the command is killed", "type": "number"},
                "pty": {"description": "Run in a terminal, for programs that insist on one", "type": "boolean"},
                "elevated": {"description": "Run on the host with raised permissions, where allowed", "type": "boolean"},
                "host": {"description": "Where to run: sandbox, gateway or node", "type": "string"},
                "security": {"description": "Security mode: deny, allowlist or full", "type": "string"},
                "ask": {"description": "When to ask for approval: off, on-miss or always", "type": "string"},
                "node": {"description": "Node id or name, with host=node", "type": "string"},
            },
            "required": ["command"],
        })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(self.command(Args(args), context))
    }
}

impl Exec {
    fn new(setup: &Arc<Setup>) -> Self {
        Self { setup: Arc::clone(setup), login_path: OnceCell::new() }
    }

    async fn command(&self, args: Args, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let settings = &self.setup.exec;
        let mut plan = Plan::of(settings, &args).map_err(ToolError::Failed)?;
        if plan.host == ExecHost::Gateway && approvals_exist(settings).await {
            return Err(ToolError::Failed(plan::APPROVALS_FILE.into()));
        }
        let cwd = plan.directory(&self.setup.resolver(&context), &context.workspace).await;
        let login_path = match plan.host {
            ExecHost::Gateway => self.login_path(&context.cancel).await,
            ExecHost::Sandbox | ExecHost::Node => None,
        };
        let order = Order {
            shell: environment::shell(settings),
            command: plan.command.clone(),
            environment: environment::compose(settings, &plan.env, login_path.as_deref()),
            timeout: plan.timeout,
            max_output_chars: settings.max_output_chars,
            cwd: cwd.clone(),
            lock: settings.lock.clone(),
        };
        let started_at = now_ms();
        let session_id = slug::of(&context.call_id);
        let mut report = |pid: Option<u32>, tail: &str| {
            let details = json!({"status": "running", "sessionId": session_id, "pid": pid, "startedAt": started_at, "cwd": cwd, "tail": tail});
            let update = json!({"content": [{"type": "text", "text": tail}], "details": details});
            // A full queue drops the update; the result follows anyway.
            let _ = context.updates.try_send(update);
        };
        match process::run(order, &context.cancel, &mut report).await {
            Ok(finished) => conclude(&finished, &plan, &json!(cwd)),
            Err(RunError::Aborted) => Err(ToolError::Aborted),
            Err(RunError::Start(error)) => Err(ToolError::Failed(format!("cannot start the shell: {error}"))),
        }
    }

    async fn login_path(&self, cancel: &CancellationToken) -> Option<String> {
        self.login_path.get_or_init(|| environment::login_path(&self.setup.exec, cancel)).await.clone()
    }
}

async fn approvals_exist(settings: &ExecSettings) -> bool {
    match &settings.approvals_file {
        // A file that cannot be checked counts as present.
        Some(file) => tokio::fs::try_exists(file).await.unwrap_or(true),
        None => false,
    }
}

/// The result table of spec `tools.md` §3.2.
fn conclude(finished: &Finished, plan: &Plan, cwd: &Value) -> Result<ToolOutput, ToolError> {
    let aggregated = finished.output.trim();
    let mut warnings = plan.warnings.clone();
    if finished.stopped_leftovers {
        warnings.push(
            "Warning: background processes that still held the command's output were stopped. Redirect their output to \
             keep them."
                .into(),
        );
    }
    let notice = (!warnings.is_empty()).then(|| warnings.join("\n"));
    let reason = match finished.ending {
        Ending::Exited(0) => {
            let text = if aggregated.is_empty() { "(no output)" } else { aggregated };
            let mut out = ToolOutput { notice, ..ToolOutput::text(text) };
            let duration = u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX);
            out.details = Some(
                json!({"status": "completed", "exitCode": 0, "durationMs": duration, "aggregated": aggregated, "cwd": cwd}),
            );
            return Ok(out);
        }
        Ending::Exited(code) => format!("Command exited with code {code}"),
        Ending::Signalled(signal) => format!("Command aborted by signal {}", process::signal_name(signal)),
        Ending::TimedOut => {
            let seconds = plan.timeout.map_or(0.0, |timeout| timeout.as_secs_f64());
            format!("Command timed out after {seconds} seconds")
        }
    };
    let text = if aggregated.is_empty() { reason } else { format!("{aggregated}\n\n{reason}") };
    Err(match notice {
        Some(notice) => ToolError::FailedWithNotice { notice, error: text },
        None => ToolError::Failed(text),
    })
}

#[cfg(test)]
mod tests;
