//! Commands that people give themselves in a chat (`/bash`, spec `messages.md` §5): on this host,
//! one at a time. No approval is asked for them. The caller has made sure that their author may
//! have commands elevated.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::order_of;
use super::plan::ExecPlan;
use crate::args::Args;
use crate::command::session::{CommandEnding, CommandSession, Foreground, signal_name};
pub use crate::command::sessions::NotRun;
use crate::command::sessions::{CommandOwner, CommandSessions};
use crate::exec::environment;
use crate::exec::settings::{Elevated, ElevatedMode, ExecSettings};

/// Scope of these commands: no agent sees them.
const SCOPE: &str = "chat:bash";

/// A command that somebody gave, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsCommand {
    /// Two words.
    pub id: String,
    /// The command line.
    pub command: String,
    /// Outcome of the command; `None` while it runs.
    pub end: Option<PersonsEnd>,
    /// Time for which it has run.
    pub runtime: Duration,
    /// Output of the command; only the end of it if it was long.
    pub printed: String,
}

/// Outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonsEnd {
    /// The command exited with this code.
    Exited(i32),
    /// The command was killed by a signal of this name, or because its time was up.
    Killed(String),
}

impl From<&CommandSession> for PersonsCommand {
    fn from(session: &CommandSession) -> Self {
        let end = session.end().map(|end| match end.ending {
            CommandEnding::Exited(code) => PersonsEnd::Exited(code),
            CommandEnding::Signalled(signal) => PersonsEnd::Killed(signal_name(signal)),
            CommandEnding::TimedOut => PersonsEnd::Killed("timed out".to_owned()),
            CommandEnding::Killed => PersonsEnd::Killed("stopped".to_owned()),
        });
        Self {
            id: session.id.clone(),
            command: session.command.clone(),
            end,
            runtime: session.runtime(),
            printed: session.printed(),
        }
    }
}

/// Runs a command in `directory`, and waits for it no longer than `window`; it goes on in the
/// background then. A command that is cancelled before is dead.
///
/// # Errors
/// [`NotRun`].
pub async fn run(
    mut settings: ExecSettings,
    command: &str,
    directory: &Path,
    window: Duration,
    cancel: &CancellationToken,
) -> Result<PersonsCommand, NotRun> {
    settings.elevated = Elevated { mode: ElevatedMode::Full, refusal: None };
    settings.sandbox = None;
    let args = Args(json!({"command": command}));
    let plan = ExecPlan::of(&settings, &args).map_err(NotRun::Failed)?;
    let login_path = environment::login_path(&settings, cancel).await;
    let order = order_of(&settings, &plan, directory.to_owned(), login_path.as_deref());
    let told = settings.owner.clone().filter(|_| settings.notify_on_exit);
    let owner = CommandOwner { scope: SCOPE.to_owned(), is_elevated: true, told, kept: settings.kept };
    let session = settings.sessions.start_alone("chat-bash", &owner, order)?;
    let _foreground = Foreground(&session);
    tokio::select! { biased;
        () = session.ended() => {}
        () = cancel.cancelled() => {
            session.kill();
            session.ended().await;
        }
        () = sleep(window) => {
            settings.sessions.put_in_background(&session).await;
        }
    }
    Ok(PersonsCommand::from(&*session))
}

/// The command of an id; without one the one that runs, else the last one that went to the background.
pub fn find(sessions: &CommandSessions, id: Option<&str>) -> Option<PersonsCommand> {
    known(sessions, id).map(|session| PersonsCommand::from(&*session))
}

/// Ends the command of an id, else the one that runs, and waits until it is gone.
pub async fn stop(sessions: &CommandSessions, id: Option<&str>) -> Option<PersonsCommand> {
    let session = known(sessions, id)?;
    session.kill();
    session.ended().await;
    Some(PersonsCommand::from(&*session))
}

fn known(sessions: &CommandSessions, id: Option<&str>) -> Option<Arc<CommandSession>> {
    match id {
        Some(id) => sessions.find(SCOPE, id),
        None => sessions.running(SCOPE).or_else(|| sessions.list(SCOPE).into_iter().next()),
    }
}
