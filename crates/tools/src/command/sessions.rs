//! The commands of a gateway that run, and those in the background that have ended a while ago (spec `tools.md` §3.2, §4).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::SessionKey;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::promise::{Notices, OnExit, Promise, Promised, Unkept, tail_behind};
use super::session::{CommandEnding, CommandSession, CommandSpec, signal_name};
use super::slug;
use super::start::{Input, start};

/// Commands that may run at once. Each costs a process, its guard, a task and some files.
const MOST_RUNNING: usize = 256;
/// Commands that have ended and are remembered.
const MOST_ENDED: usize = 128;
/// Characters of what they printed, all in all.
const MOST_PRINTED: usize = 8 << 20;
/// Commands that ended with an earlier gateway and are remembered.
const MOST_LOST: usize = 512;
/// Allowed range in seconds for remembering finished commands (spec `tools.md` §4).
const CLEANUP: std::ops::RangeInclusive<u64> = 60..=3 * 3600;

/// The commands of one gateway. Dropping it ends them.
pub struct CommandSessions {
    known: Arc<CommandRegistry>,
    _all: DropGuard,
}

struct CommandRegistry {
    sessions: Mutex<Vec<Arc<CommandSession>>>,
    /// Lock that is held while a command is started beside which no other of its scope may run.
    alone: Mutex<()>,
    notices: Arc<dyn Notices>,
    /// Scopes and ids of commands that ended with an earlier gateway.
    lost: Mutex<VecDeque<(String, String)>>,
    /// Ends all of them.
    kill: CancellationToken,
}

/// Owner of a command, and what happens when it ends in the background.
#[derive(Debug, Clone)]
pub(crate) struct CommandOwner {
    /// Scope that sees the command.
    pub(crate) scope: String,
    /// True if it is elevated.
    pub(crate) is_elevated: bool,
    /// Session that is told of its end.
    pub(crate) told: Option<SessionKey>,
    /// Time for which it is remembered after its end.
    pub(crate) kept: Duration,
}

/// Reason why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// Another command, of this id, still runs.
    #[error("{0} still runs")]
    Busy(String),
    /// The command could not be started; the text says why.
    #[error("{0}")]
    Failed(String),
}

/// Reason why a command did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    #[error("Too many commands run at once. Wait for some, or end them with process action=kill.")]
    TooMany,
    #[error("cannot start the shell: {0}")]
    Io(io::Error),
}

impl std::fmt::Debug for CommandSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandSessions").finish_non_exhaustive()
    }
}

impl CommandSessions {
    /// Creates an empty list, of which nothing outlives this process.
    pub fn new(on_exit: OnExit) -> Self {
        Self::keeping(Arc::new(Unkept(on_exit)))
    }

    /// Creates an empty list, whose promises are kept in `notices`.
    pub fn keeping(notices: Arc<dyn Notices>) -> Self {
        let kill = CancellationToken::new();
        let known = CommandRegistry {
            sessions: Mutex::default(),
            alone: Mutex::default(),
            notices,
            lost: Mutex::default(),
            kill: kill.clone(),
        };
        Self { known: Arc::new(known), _all: kill.drop_guard() }
    }

    /// Commands that ended with an earlier gateway: their scopes and ids, the oldest first.
    pub fn remember_lost(&self, commands: impl IntoIterator<Item = (String, String)>) {
        let mut lost = self.known.lost.lock();
        lost.extend(commands);
        let too_many = lost.len().saturating_sub(MOST_LOST);
        lost.drain(..too_many);
    }

    /// Returns true if a command of this id ended with an earlier gateway.
    pub(crate) fn is_lost(&self, scope: &str, id: &str) -> bool {
        self.known.lost.lock().iter().any(|(of, lost)| of == scope && lost == id)
    }

    /// Stores what the commands in the background have printed so far, because this process, and
    /// the commands with it, is about to end.
    pub async fn note_output(&self) {
        let running: Vec<Arc<CommandSession>> = {
            let sessions = self.known.sessions.lock();
            sessions.iter().filter(|session| session.end().is_none()).cloned().collect()
        };
        let promises = running.iter().filter_map(|session| {
            let promised = session.promised.lock().clone()?;
            Some(promised.with_tail(session)).filter(|promise| promise.notice.is_some())
        });
        let promises: Vec<Promise> = promises.collect();
        if !promises.is_empty() {
            self.known.notices.amend(promises).await;
        }
    }

    /// Puts a command in the background, and its owner will hear of its end; `false`: it has ended already.
    pub(crate) async fn put_in_background(&self, session: &CommandSession) -> bool {
        let promised = Promised::of(session);
        let promise = promised.promise().clone();
        let id = promise.id.clone();
        // Before it is made: whoever ends the command from here on withdraws it.
        *session.promised.lock() = Some(promised);
        self.known.notices.promise(promise).await;
        let is_running = session.put_in_background();
        if !is_running {
            self.withdraw(&id).await;
        }
        is_running
    }

    /// An agent is promised something, before it is told so.
    pub(crate) async fn promise(&self, promise: Promise) {
        self.known.notices.promise(promise).await;
    }

    /// A promise stands differently now.
    pub(crate) async fn amend(&self, promise: Promise) {
        self.known.notices.amend(vec![promise]).await;
    }

    /// Tells an agent something of its commands. `fulfils`: the promise that is fulfilled with it.
    pub(crate) async fn tell(&self, key: &SessionKey, line: &str, fulfils: Option<&str>) {
        self.known.notices.tell(key, line, fulfils).await;
    }

    /// Withdraws a promise because nothing is left to report.
    pub(crate) async fn withdraw(&self, id: &str) {
        self.known.withdraw(id).await;
    }

    /// Does something beside all calls, until the commands of the gateway are ended.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let kill = self.known.kill.clone();
        tokio::spawn(async move { kill.run_until_cancelled(work).await });
    }

    /// Returns the time for which finished commands are remembered: `tools.exec.cleanupMs` within
    /// its bounds; 30 minutes by default.
    pub(crate) fn kept(cleanup_ms: Option<u64>) -> Duration {
        let seconds = cleanup_ms.map_or(30 * 60, |ms| ms / 1000);
        Duration::from_secs(seconds.clamp(*CLEANUP.start(), *CLEANUP.end()))
    }

    /// Starts a command; it is driven to its end whoever waits for it.
    pub(crate) fn start(
        &self,
        call_id: &str,
        owner: &CommandOwner,
        order: CommandSpec,
    ) -> Result<Arc<CommandSession>, NotStarted> {
        if self.known.sessions.lock().iter().filter(|session| session.end().is_none()).count() >= MOST_RUNNING
        {
            return Err(NotStarted::TooMany);
        }
        let mut started = start(&order).map_err(NotStarted::Io)?;
        let input = std::mem::replace(&mut started.input, Input::Closed);
        let mut sessions = self.known.sessions.lock();
        let id = slug::free(call_id, |id| sessions.iter().any(|session| session.id == id));
        let kill = self.known.kill.child_token();
        let session = CommandSession::new(id, owner, &order, started.child.id(), input, kill);
        let session = Arc::new(session);
        sessions.push(Arc::clone(&session));
        drop(sessions);
        let (known, driven, kept) = (Arc::downgrade(&self.known), Arc::clone(&session), owner.kept);
        tokio::spawn(async move {
            driven.drive(order, started).await;
            let all = match known.upgrade() {
                Some(known) if known.has_ended(&driven).await => known.kill.clone(),
                Some(_) | None => return,
            };
            tokio::select! {
                () = tokio::time::sleep(kept) => {}
                () = all.cancelled() => {}
            }
            if let Some(known) = known.upgrade() {
                known.forget(&driven);
            }
        });
        Ok(session)
    }

    /// Starts a command, unless another one of its scope runs.
    pub(crate) fn start_alone(
        &self,
        call_id: &str,
        owner: &CommandOwner,
        order: CommandSpec,
    ) -> Result<Arc<CommandSession>, NotRun> {
        let _alone = self.known.alone.lock();
        if let Some(other) = self.running(&owner.scope) {
            return Err(NotRun::Busy(other.id.clone()));
        }
        self.start(call_id, owner, order).map_err(|error| NotRun::Failed(error.to_string()))
    }

    /// Returns a running command of a scope.
    pub(crate) fn running(&self, scope: &str) -> Option<Arc<CommandSession>> {
        let sessions = self.known.sessions.lock();
        sessions.iter().find(|session| session.scope == scope && session.end().is_none()).cloned()
    }

    /// Returns the commands of a scope that are or were in the background, newest first.
    pub(crate) fn list(&self, scope: &str) -> Vec<Arc<CommandSession>> {
        let sessions = self.known.sessions.lock();
        let seen = sessions.iter().filter(|session| session.scope == scope && session.is_in_background());
        seen.rev().cloned().collect()
    }

    /// Returns a command of a scope by its id.
    pub(crate) fn find(&self, scope: &str, id: &str) -> Option<Arc<CommandSession>> {
        let sessions = self.known.sessions.lock();
        sessions.iter().find(|session| session.scope == scope && session.id == id).cloned()
    }

    /// Forgets a command.
    pub(crate) fn forget(&self, session: &Arc<CommandSession>) {
        self.known.forget(session);
    }
}

impl CommandRegistry {
    /// A command has ended; whether it is remembered.
    async fn has_ended(&self, session: &Arc<CommandSession>) -> bool {
        let is_remembered = session.is_in_background();
        if is_remembered {
            self.make_room();
        } else {
            self.forget(session);
        }
        let promised = session.promised.lock().clone();
        match promised {
            None | Some(Promised::Allowed(_)) => {}
            Some(Promised::Background(promise)) => {
                match session.told.as_ref().zip(told(session)).filter(|_| is_remembered) {
                    Some((key, line)) => self.notices.tell(key, &line, Some(&promise.id)).await,
                    None => self.withdraw(&promise.id).await,
                }
            }
        }
        is_remembered
    }

    /// Withdraws a promise, unless the command ends because this process does: the next process
    /// reports such an end.
    async fn withdraw(&self, id: &str) {
        if !self.kill.is_cancelled() {
            self.notices.withdraw(id).await;
        }
    }

    /// The oldest of those that ended go where there are too many.
    fn make_room(&self) {
        let mut sessions = self.sessions.lock();
        let (mut count, mut printed) = (0, 0);
        let mut stays: Vec<bool> = Vec::with_capacity(sessions.len());
        for session in sessions.iter().rev() {
            let has_ended = session.end().is_some();
            count += usize::from(has_ended);
            printed += if has_ended { session.size().0 } else { 0 };
            stays.push(!has_ended || count == 1 || (count <= MOST_ENDED && printed <= MOST_PRINTED));
        }
        let mut stays = stays.into_iter().rev();
        sessions.retain(|_| stays.next().unwrap_or(true));
    }

    fn forget(&self, session: &Arc<CommandSession>) {
        self.sessions.lock().retain(|other| !Arc::ptr_eq(other, session));
    }
}

/// Returns the report of an end for the agent; `None` if the agent caused it itself.
fn told(session: &CommandSession) -> Option<String> {
    let (what, how) = match session.end()?.ending {
        CommandEnding::Exited(0) => ("completed", "code 0".to_owned()),
        CommandEnding::Exited(code) => ("failed", format!("code {code}")),
        CommandEnding::Signalled(signal) => ("failed", format!("signal {}", signal_name(signal))),
        CommandEnding::TimedOut => ("failed", "timed out, signal SIGKILL".to_owned()),
        CommandEnding::Killed => return None,
    };
    let id: String = session.id.chars().take(8).collect();
    Some(format!("Exec {what} ({id}, {how}){}", tail_behind(session)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_kept_within_bounds() {
        let rows = [(None, 1800), (Some(0), 60), (Some(120_000), 120), (Some(u64::MAX), 3 * 3600)];
        for (cleanup, seconds) in rows {
            assert_eq!(CommandSessions::kept(cleanup), Duration::from_secs(seconds), "{cleanup:?}");
        }
    }
}
