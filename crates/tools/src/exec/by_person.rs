//! Commands that people give themselves in a chat (`/bash`, spec `messages.md` §5): on this host, one at a time. Nobody is asked about
//! them. The caller has made sure that their author may have commands elevated.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::session::{Ending, Session, signal_name};
use super::sessions::{CommandSessions, Owner};
use super::settings::{Elevated, ElevatedMode, ExecSettings};
use super::{Foreground, environment, order_of};
use crate::args::Args;
use crate::exec::plan::Plan;

/// Whose they are: no agent sees them.
const SCOPE: &str = "chat:bash";

/// A command that somebody gave, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsCommand {
    /// Two words.
    pub id: String,
    /// The command line.
    pub command: String,
    /// How it ended; nothing while it runs.
    pub end: Option<PersonsEnd>,
    /// How long it has run.
    pub runtime: Duration,
    /// What it printed, the last of it where that was much.
    pub printed: String,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonsEnd {
    /// With its exit code.
    Exited(i32),
    /// By a signal of this name, or because its time was up.
    Killed(String),
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// Another one, of this id, still runs.
    #[error("{0} still runs")]
    Busy(String),
    /// It can't be started; the text says why.
    #[error("{0}")]
    Failed(String),
}

impl From<&Session> for PersonsCommand {
    fn from(session: &Session) -> Self {
        let end = session.end().map(|end| match end.ending {
            Ending::Exited(code) => PersonsEnd::Exited(code),
            Ending::Signalled(signal) => PersonsEnd::Killed(signal_name(signal)),
            Ending::TimedOut => PersonsEnd::Killed("timed out".to_owned()),
            Ending::Killed => PersonsEnd::Killed("stopped".to_owned()),
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

/// Runs a command in `directory`, and waits for it no longer than `window`; it goes on in the background then. One that is cancelled
/// before is dead.
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
    let plan = Plan::of(&settings, &args).map_err(NotRun::Failed)?;
    let login_path = environment::login_path(&settings, cancel).await;
    let order = order_of(&settings, &plan, directory.to_owned(), login_path.as_deref());
    let told = settings.owner.clone().filter(|_| settings.notify_on_exit);
    let owner = Owner { scope: SCOPE.to_owned(), told, kept: settings.kept };
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

fn known(sessions: &CommandSessions, id: Option<&str>) -> Option<Arc<Session>> {
    match id {
        Some(id) => sessions.find(SCOPE, id),
        None => sessions.running(SCOPE).or_else(|| sessions.list(SCOPE).into_iter().next()),
    }
}
