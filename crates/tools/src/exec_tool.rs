//! `exec`: runs a shell command and waits for it, for a while (spec `tools.md` §3).
//!
//! `plan` decides from settings and arguments alone; `gate` judges the command by the rules, and
//! `asking` waits for people.

mod asking;
pub mod by_person;
mod gate;
mod plan;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use openclaw_agent::tool::{Reach, ToolFuture};
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_config::settings::ExecHost;
use openclaw_models::ToolSchema;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::approvals::{DEFAULT_WAIT, Question};
use crate::args::Args;
use crate::command::Launch;
use crate::command::session::{CommandEnding, CommandSession, CommandSpec, End, Foreground, signal_name};
use crate::command::sessions::{CommandOwner, CommandSessions, NotStarted};
use crate::exec::approvals::analysis::quoted;
use crate::exec::approvals::resolve::{ApprovalProgress, Decision, ToolValues};
use crate::exec::approvals::store::ApprovalsStore;
use crate::exec::environment;
use crate::exec::settings::ExecSettings;
use crate::path::{Confinement, Resolver};
use crate::row::ToolRow;
use crate::sandbox::Inside;
use crate::setup::Setup;
use asking::DeferredCommand;
use gate::{Case, Judged};
use plan::ExecPlan;

/// Updates come no faster than this.
const UPDATE_EVERY: Duration = Duration::from_millis(250);

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(Exec::new(setup)));

pub(crate) const FACTS: ToolFacts = ToolFacts {
    groups: &["group:runtime"],
    description: "Run a shell command and wait for its output. One that takes longer than yieldMs goes on in the background: \
                  see process. Standard input is empty unless background, yieldMs or pty is given. Long output is cut to its end; a \
                  command that outlives its timeout is killed.",
    summary: "Run a shell command (pty for programs that need a terminal)",
    prompt_position: 8,
    emoji: "🛠️",
    label_arguments: &["command"],
    flag_arguments: &["elevated", "pty"],
    aliases: &["bash"],
    reach: Reach::Sandboxed,
    ..ToolFacts::named("exec")
};

/// Runs the commands of one run.
#[derive(Debug)]
pub(crate) struct Exec {
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
    pub(crate) fn new(setup: &Arc<Setup>) -> Self {
        Self { setup: Arc::clone(setup), login_path: OnceCell::new() }
    }

    async fn command(&self, args: Args, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let settings = &self.setup.exec;
        let mut plan = ExecPlan::of(settings, &args).map_err(ToolError::Failed)?;
        let cwd = plan.directory(settings, &self.resolver(&plan, &context), &context.workspace).await;
        let login_path = match plan.host {
            ExecHost::Gateway => self.login_path(&context.cancel).await,
            ExecHost::Sandbox | ExecHost::Node => None,
        };
        let order = order_of(settings, &plan, cwd, login_path.as_deref());
        if let Some(values) = plan.rules {
            let case = Arc::new(case(settings, &plan, values, &order, &context.workspace));
            let judged = case.judge(ApprovalProgress::NotYet).await?;
            match &judged.decision {
                Decision::Run | Decision::RunAndRemember => {}
                Decision::Deny(why) => return Err(ToolError::Failed(why.clone())),
                Decision::Ask => return self.ask(case, &judged, order, &plan, &context.call_id).await,
            }
        }
        let session = self.start(&mut plan, order, login_path.as_deref(), &context.call_id)?;
        match wait(&settings.sessions, &session, plan.background, &context).await {
            CommandWait::Ended(end) => conclude(&session, end, &plan),
            CommandWait::InBackground => Ok(still_running(&session, &plan)),
            CommandWait::Aborted => Err(ToolError::Aborted),
        }
    }

    /// Finds the directory that a command runs in. A command that leaves the sandbox begins in the
    /// agent's workspace.
    fn resolver(&self, plan: &ExecPlan, context: &ToolContext) -> Resolver {
        let home = self.setup.exec.environment.home();
        match plan.host {
            ExecHost::Gateway => Resolver::new(home, context.workspace.clone(), Confinement::Host),
            ExecHost::Sandbox | ExecHost::Node => self.setup.resolver(context),
        }
    }

    /// Starts the command; without a terminal where none can be had.
    fn start(
        &self,
        plan: &mut ExecPlan,
        order: CommandSpec,
        login_path: Option<&str>,
        call_id: &str,
    ) -> Result<Arc<CommandSession>, ToolError> {
        let settings = &self.setup.exec;
        let told = settings.owner.clone().filter(|_| settings.notify_on_exit && settings.may_wake);
        let owner = CommandOwner { told, ..self.owner(plan) };
        let cwd = order.cwd.clone();
        let started = match settings.sessions.start(call_id, &owner, order) {
            Err(NotStarted::Io(error)) if plan.in_terminal => {
                plan.warnings
                    .push(format!("Warning: no terminal (pty) could be had ({error}); running without one."));
                plan.in_terminal = false;
                settings.sessions.start(call_id, &owner, order_of(settings, plan, cwd, login_path))
            }
            started => started,
        };
        started.map_err(|error| not_started(&error))
    }

    /// Returns the owner of the commands; no session is notified of their end.
    fn owner(&self, plan: &ExecPlan) -> CommandOwner {
        let settings = &self.setup.exec;
        let scope = settings.scope_of(plan.sandbox(settings).is_none());
        CommandOwner {
            scope: scope.to_owned(),
            is_elevated: plan.is_elevated,
            told: None,
            kept: settings.kept,
        }
    }

    /// Asks people; the command runs, or does not, when the call is over.
    async fn ask(
        &self,
        case: Arc<Case>,
        judged: &Judged,
        order: CommandSpec,
        plan: &ExecPlan,
        call_id: &str,
    ) -> Result<ToolOutput, ToolError> {
        let settings = &self.setup.exec;
        let asked = settings.people.ask(None, case.question(judged), DEFAULT_WAIT);
        let (question, deciding) = asked.map_err(|error| ToolError::Failed(error.to_string()))?;
        let pending = pending(&question, &case, plan);
        let waiting = DeferredCommand {
            case,
            question,
            order,
            call_id: call_id.to_owned(),
            owner: self.owner(plan),
            told: settings.owner.clone().filter(|_| settings.may_wake),
            notice: settings.running_notice,
            sessions: Arc::downgrade(&settings.sessions),
        };
        let (promised, is_promised) = oneshot::channel();
        settings.sessions.spawn(waiting.settle(deciding, promised));
        // Without an answer the gateway ends.
        let _ = is_promised.await;
        Ok(pending)
    }

    async fn login_path(&self, cancel: &CancellationToken) -> Option<String> {
        self.login_path.get_or_init(|| environment::login_path(&self.setup.exec, cancel)).await.clone()
    }
}

fn order_of(settings: &ExecSettings, plan: &ExecPlan, cwd: PathBuf, login_path: Option<&str>) -> CommandSpec {
    CommandSpec {
        launch: launch(settings, plan, &cwd, login_path),
        command: plan.command.clone(),
        timeout: plan.timeout,
        max_output_chars: settings.max_output_chars,
        max_pending_chars: settings.max_pending_chars,
        cwd,
        is_fed: plan.is_fed,
        in_terminal: plan.in_terminal,
        lock: settings.lock.clone(),
    }
}

/// Returns what is started: the command in the sandbox, or on this host.
fn launch(settings: &ExecSettings, plan: &ExecPlan, cwd: &Path, login_path: Option<&str>) -> Launch {
    const TERM: &str = "xterm-256color";
    let ExecPlan { command, env, in_terminal, .. } = plan;
    let terminal = |mut environment: Vec<(String, String)>| {
        if *in_terminal {
            environment::set(&mut environment, "TERM", TERM.to_owned());
        }
        environment
    };
    match plan.sandbox(settings) {
        Some(sandbox) => {
            let environment = &terminal(sandbox.environment(env, &settings.path_prepend));
            sandbox.launch(Inside { command, directory: cwd, environment, in_terminal: *in_terminal })
        }
        None => {
            let environment = terminal(environment::compose(settings, env, login_path));
            environment::on_host(settings, command, cwd, environment)
        }
    }
}

/// Collects the facts by which a command is judged.
fn case(
    settings: &ExecSettings,
    plan: &ExecPlan,
    values: ToolValues,
    order: &CommandSpec,
    workspace: &Path,
) -> Case {
    let state = settings.approvals.as_ref().and_then(ApprovalsStore::state_dir);
    let writable = [Some(workspace), state, Some(settings.environment.temp_dir())];
    let variables = &order.launch.environment;
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    Case {
        host: plan.host,
        command: order.command.clone(),
        agent: settings.agent.clone(),
        session_key: settings.owner.as_ref().map(ToString::to_string),
        values,
        shell: order.launch.program.clone().into(),
        path: path.unwrap_or_default(),
        cwd: order.cwd.clone(),
        home: settings.environment.home(),
        variables: assignments(&plan.env),
        safe_bins: Arc::clone(&settings.safe_bins),
        skill_bins: settings.skill_bins.clone(),
        store: settings.approvals.clone(),
        writable: writable.into_iter().flatten().map(Path::to_owned).collect(),
        shown: OnceLock::new(),
    }
}

/// Variables as they stand in front of a command, with a space behind each.
fn assignments(variables: &[(String, String)]) -> String {
    // A name may hold anything, also what looks like another command.
    let one = |(name, value): &(String, String)| format!("{}={} ", quoted(name), quoted(value));
    variables.iter().map(one).collect()
}

/// A person is asked; the call is over.
fn pending(question: &Question, case: &Case, plan: &ExecPlan) -> ToolOutput {
    let slug: String = question.id.chars().take(8).collect();
    // Nobody else may have been told: people in chats are asked by `approvals.exec` alone.
    let text = format!(
        "Approval required (id {slug}). Approve to run; updates will arrive after completion. Tell the person that the command \
         waits, and how it is decided: /approve {slug} allow-once|allow-always|deny, in a chat or by a client with \
         operator.approvals."
    );
    let details = json!({
        "status": "approval-pending",
        "approvalId": question.id,
        "approvalSlug": slug,
        "expiresAtMs": question.expires_at,
        "host": case.host.as_str(),
        "command": case.command,
        "cwd": case.cwd,
    });
    ToolOutput { notice: notice(&plan.warnings), details: Some(details), ..ToolOutput::text(text) }
}

fn not_started(error: &NotStarted) -> ToolError {
    ToolError::Failed(error.to_string())
}

/// Result of waiting for a command.
enum CommandWait {
    Ended(End),
    InBackground,
    /// The call was cancelled; the command is dead.
    Aborted,
}

async fn wait(
    sessions: &CommandSessions,
    session: &CommandSession,
    window: Option<Duration>,
    context: &ToolContext,
) -> CommandWait {
    let _foreground = Foreground(session);
    let begun = Instant::now();
    let yields_at = window.map(|window| begun + window);
    let mut next_update = begun + UPDATE_EVERY;
    loop {
        tokio::select! { biased;
            () = context.cancel.cancelled() => {
                session.kill();
                session.ended().await;
                return CommandWait::Aborted;
            }
            () = session.ended() => {}
            () = sleep_until(yields_at.unwrap_or(begun)), if yields_at.is_some() => {
                if sessions.put_in_background(session).await {
                    return CommandWait::InBackground;
                }
            }
            () = sleep_until(next_update) => {
                next_update = Instant::now() + UPDATE_EVERY;
                if let Some(tail) = session.fresh_tail() {
                    let update = json!({"content": [{"type": "text", "text": tail}], "details": running(session, &tail)});
                    // A full queue drops the update; the result follows anyway.
                    let _ = context.updates.try_send(update);
                }
            }
        }
        if let Some(end) = session.end() {
            return CommandWait::Ended(end);
        }
    }
}

fn running(session: &CommandSession, tail: &str) -> Value {
    json!({
        "status": "running",
        "sessionId": session.id,
        "pid": session.pid,
        "startedAt": session.started_at,
        "cwd": session.cwd,
        "tail": tail,
    })
}

fn still_running(session: &CommandSession, plan: &ExecPlan) -> ToolOutput {
    let pid = session.pid.map_or_else(|| "n/a".to_owned(), |pid| pid.to_string());
    let text = format!(
        "Command still running (session {}, pid {pid}). Use process (list/poll/log/write/kill/clear/remove) for follow-up.",
        session.id
    );
    let details = Some(running(session, &session.tail()));
    ToolOutput { notice: notice(&plan.warnings), details, ..ToolOutput::text(text) }
}

fn notice(warnings: &[String]) -> Option<String> {
    (!warnings.is_empty()).then(|| warnings.join("\n"))
}

/// The result table of spec `tools.md` §3.2.
fn conclude(session: &CommandSession, end: End, plan: &ExecPlan) -> Result<ToolOutput, ToolError> {
    let printed = session.printed();
    let aggregated = printed.trim();
    let mut warnings = plan.warnings.clone();
    if end.stopped_leftovers {
        warnings.push(
            "Warning: background processes that still held the command's output were stopped. Redirect their output to \
             keep them."
                .into(),
        );
    }
    let notice = notice(&warnings);
    let reason = match end.ending {
        CommandEnding::Exited(0) => {
            let text = if aggregated.is_empty() { "(no output)" } else { aggregated };
            let mut out = ToolOutput { notice, ..ToolOutput::text(text) };
            let duration = u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX);
            out.details = Some(
                json!({"status": "completed", "exitCode": 0, "durationMs": duration, "aggregated": aggregated, "cwd": session.cwd}),
            );
            return Ok(out);
        }
        CommandEnding::Exited(code) => format!("Command exited with code {code}"),
        CommandEnding::Signalled(signal) => format!("Command aborted by signal {}", signal_name(signal)),
        CommandEnding::Killed => "Command aborted by signal SIGKILL".to_owned(),
        CommandEnding::TimedOut => {
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
