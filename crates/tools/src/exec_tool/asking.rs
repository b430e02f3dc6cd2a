//! A command that waits for a person's word. The call that asked has ended by then: what becomes of it is told to the session it belongs
//! to (spec `tools.md` §3.3).

use std::sync::{Arc, Weak};
use std::time::Duration;

use openclaw_protocol::SessionKey;
use tokio::sync::oneshot;

use super::gate::Case;
use crate::approvals::{Decision as Word, Question};
use crate::command::promise::{Notice, Promise, PromiseKind, Promised, tail_below};
use crate::command::session::{CommandEnding, CommandSession, CommandSpec, signal_name};
use crate::command::sessions::{CommandOwner, CommandSessions, NotStarted};
use crate::exec::approvals::resolve::{ApprovalProgress, Decision};

/// All that is needed to run the command later.
pub(super) struct DeferredCommand {
    pub(super) case: Arc<Case>,
    pub(super) question: Arc<Question>,
    pub(super) order: CommandSpec,
    pub(super) call_id: String,
    pub(super) owner: CommandOwner,
    pub(super) told: Option<SessionKey>,
    /// Time after which the agent is told that the command runs.
    pub(super) notice: Duration,
    pub(super) sessions: Weak<CommandSessions>,
}

impl DeferredCommand {
    /// Waits for the word, then runs the command or does not. `promised` is told when it is stored that the agent will hear of it.
    pub(super) async fn settle(
        self,
        deciding: impl Future<Output = Option<Word>>,
        promised: oneshot::Sender<()>,
    ) {
        let Some(sessions) = self.sessions.upgrade() else { return };
        sessions.promise(self.promise()).await;
        drop(sessions);
        // The call may be over already.
        let _ = promised.send(());
        let asked = deciding.await.map_or(ApprovalProgress::TimedOut, ApprovalProgress::Answered);
        let (decision, not_kept) = match self.case.judge(asked).await {
            Ok(judged) => (judged.decision, judged.not_kept),
            Err(error) => (Decision::Deny(error.to_string()), None),
        };
        if let Some(why) = not_kept {
            // The clients have been told that it was decided by now.
            self.tell(&self.line("allowed this once, the rule for the future was not kept", &why)).await;
        }
        match decision {
            Decision::Run | Decision::RunAndRemember => self.run().await,
            Decision::Deny(reason) => self.conclude(Some(self.line("denied", &reason))).await,
            // The person was asked already, and is not asked again.
            Decision::Ask => self.conclude(Some(self.line("denied", "approval-timeout"))).await,
        }
    }

    async fn run(self) {
        let Some(sessions) = self.sessions.upgrade() else { return };
        // Before it begins: from here on nobody may hear that it did not run.
        sessions.amend(self.allowed(None)).await;
        let session = match sessions.start(&self.call_id, &self.owner, self.order.clone()) {
            Ok(session) => session,
            Err(error) => {
                let why = match error {
                    NotStarted::TooMany => "too many commands run".to_owned(),
                    NotStarted::Io(error) => format!("cannot start: {error}"),
                };
                return self.conclude(Some(self.line("denied", &why))).await;
            }
        };
        let promise = self.allowed(Some(&session));
        *session.promised.lock() = Some(Promised::Allowed(promise.clone()));
        session.put_in_background();
        sessions.amend(promise).await;
        drop(sessions);
        let notice = self.notice;
        if tokio::time::timeout(notice, session.ended()).await.is_err() {
            let line = self.line("running", &format!("session={}, >{}s", session.id, notice.as_secs()));
            self.tell(&line).await;
            session.ended().await;
        }
        let told = how(&session)
            .map(|how| format!("{}{}", self.finished(Some(&session), &how), tail_below(&session)));
        self.conclude(told).await;
    }

    fn line(&self, what: &str, why: &str) -> String {
        line(&self.case, &self.question, what, why)
    }

    /// `Exec finished (gateway id=…, session=…, code 0)`
    fn finished(&self, session: Option<&CommandSession>, how: &str) -> String {
        let session = session.map(|session| format!("session={}, ", session.id)).unwrap_or_default();
        format!("Exec finished ({} id={}, {session}{how})", self.case.host.as_str(), self.question.id)
    }

    /// Promises that the agent is told the decision.
    fn promise(&self) -> Promise {
        self.promise_to_tell(
            PromiseKind::Approval,
            &self.question.id,
            self.line("denied", "gateway-restarted"),
        )
    }

    /// Promises that the agent is told the result of the allowed command.
    fn allowed(&self, session: Option<&CommandSession>) -> Promise {
        let name = session.map_or(self.question.id.as_str(), |session| session.id.as_str());
        self.promise_to_tell(PromiseKind::Command, name, self.finished(session, "gateway restarted"))
    }

    fn promise_to_tell(&self, kind: PromiseKind, name: &str, line: String) -> Promise {
        Promise {
            id: self.question.id.clone(),
            kind,
            scope: self.owner.scope.clone(),
            name: name.to_owned(),
            notice: self.told.clone().map(|session_key| Notice { session_key, line }),
        }
    }

    async fn tell(&self, line: &str) {
        if let (Some(sessions), Some(key)) = (self.sessions.upgrade(), &self.told) {
            sessions.tell(key, line, None).await;
        }
    }

    /// Reports the final line; `None` if the agent knows already.
    async fn conclude(&self, line: Option<String>) {
        let Some(sessions) = self.sessions.upgrade() else { return };
        match self.told.as_ref().zip(line) {
            Some((key, line)) => sessions.tell(key, &line, Some(&self.question.id)).await,
            None => sessions.withdraw(&self.question.id).await,
        }
    }
}

/// `Exec denied (gateway id=…, user-denied): ls`
fn line(case: &Case, question: &Question, what: &str, why: &str) -> String {
    format!("Exec {what} ({} id={}, {why}): {}", case.host.as_str(), question.id, case.command)
}

/// Describes how a command ended; `None` if the agent ended it itself.
fn how(session: &CommandSession) -> Option<String> {
    Some(match session.end()?.ending {
        CommandEnding::Exited(code) => format!("code {code}"),
        CommandEnding::Signalled(signal) => format!("signal {}", signal_name(signal)),
        CommandEnding::TimedOut => "timed out".to_owned(),
        CommandEnding::Killed => return None,
    })
}
