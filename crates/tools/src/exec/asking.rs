//! A command that waits for a person's word. The call that asked has ended by then: what becomes of it is told to the session it belongs
//! to (spec `tools.md` §3.3).

use std::sync::{Arc, Weak};
use std::time::Duration;

use openclaw_protocol::SessionKey;

use super::approvals::resolve::{Asked, Decision};
use super::gate::Case;
use super::session::{Ending, Order, Session, signal_name};
use super::sessions::{CommandSessions, NotStarted, Owner};
use crate::approvals::{Decision as Word, Question};

/// Characters of the output that the agent is told.
const TOLD: usize = 400;

/// All that is needed to run the command later.
pub(super) struct Waiting {
    pub(super) case: Arc<Case>,
    pub(super) question: Arc<Question>,
    pub(super) order: Order,
    pub(super) call_id: String,
    pub(super) owner: Owner,
    pub(super) told: Option<SessionKey>,
    /// After how long it is told that the command runs.
    pub(super) notice: Duration,
    pub(super) sessions: Weak<CommandSessions>,
}

impl Waiting {
    /// Waits for the word, then runs the command or does not.
    pub(super) async fn settle(self, deciding: impl Future<Output = Option<Word>>) {
        let asked = deciding.await.map_or(Asked::TimedOut, Asked::Answered);
        let decision = match self.case.judge(asked).await {
            Ok(judged) => judged.decision,
            Err(error) => Decision::Deny(error.to_string()),
        };
        match decision {
            Decision::Run | Decision::RunAndRemember => self.run().await,
            Decision::Deny(reason) => self.tell(&self.line("denied", &reason)),
            // It was asked, and is not asked again.
            Decision::Ask => self.tell(&self.line("denied", "approval-timeout")),
        }
    }

    async fn run(self) {
        let Some(sessions) = self.sessions.upgrade() else { return };
        let Self { case, question, order, call_id, owner, told, notice, sessions: weak } = self;
        let started = sessions.start(&call_id, owner, order);
        drop(sessions);
        let tell = |line: &str| tell(&weak, told.as_ref(), line);
        let line = |what: &str, why: &str| line(&case, &question, what, why);
        let session = match started {
            Ok(session) => session,
            Err(error) => {
                let why = match error {
                    NotStarted::TooMany => "too many commands run".to_owned(),
                    NotStarted::Io(error) => format!("cannot start: {error}"),
                };
                return tell(&line("denied", &why));
            }
        };
        session.put_in_background();
        if tokio::time::timeout(notice, session.ended()).await.is_err() {
            tell(&line("running", &format!("session={}, >{}s", session.id, notice.as_secs())));
            session.ended().await;
        }
        if let Some(how) = how(&session) {
            let head = format!(
                "Exec finished ({} id={}, session={}, {how})",
                case.host.as_str(),
                question.id,
                session.id
            );
            let tail = tail(&session);
            tell(&if tail.is_empty() { head } else { format!("{head}\n{tail}") });
        }
    }

    fn line(&self, what: &str, why: &str) -> String {
        line(&self.case, &self.question, what, why)
    }

    fn tell(&self, line: &str) {
        tell(&self.sessions, self.told.as_ref(), line);
    }
}

/// `Exec denied (gateway id=…, user-denied): ls`
fn line(case: &Case, question: &Question, what: &str, why: &str) -> String {
    format!("Exec {what} ({} id={}, {why}): {}", case.host.as_str(), question.id, case.command)
}

fn tell(sessions: &Weak<CommandSessions>, told: Option<&SessionKey>, line: &str) {
    if let (Some(sessions), Some(key)) = (sessions.upgrade(), told) {
        sessions.tell(key, line);
    }
}

/// Nothing of one that the agent ended itself.
fn how(session: &Session) -> Option<String> {
    Some(match session.end()?.ending {
        Ending::Exited(code) => format!("code {code}"),
        Ending::Signalled(signal) => format!("signal {}", signal_name(signal)),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::Killed => return None,
    })
}

fn tail(session: &Session) -> String {
    let printed = session.printed();
    let printed = printed.trim();
    let start = printed.char_indices().rev().nth(TOLD - 1).map_or(0, |(at, _)| at);
    printed.get(start..).unwrap_or_default().to_owned()
}
