//! Starting over: a conversation that its model does not take any more begins anew (spec
//! `agent-runtime.md` §10.4, `messages.md` §10.5), because every further message would fail as the
//! last one did. The old transcript stays on disk, and the person is told.

use std::sync::Arc;

use openclaw_agent::compaction::Budget;
use openclaw_agent::hooks::CommandAction;
use openclaw_agent::reply::RunErrorKind;
use openclaw_agent::tokens::message_tokens;
use openclaw_agent::{Outcome, RunEnd, Transcript as _};
use openclaw_journal::inbox::InboxRow;
use openclaw_protocol::message::Message;
use openclaw_sessions::entry::{ResetKind, new_session_id};
use openclaw_sessions::store::{Edit, Refused};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::transcript::inject::injected;
use openclaw_sessions::{SessionStore, StoreError};
use tokio_util::sync::CancellationToken;

use super::inject::{AnsweredIn, TranscriptWords};
use super::prepare::Prepared;
use super::result::Figures;
use super::session::RunSession;
use crate::conversation_hooks::{ConversationHooks, Restart};
use crate::rows::SessionRows;

/// Google's error for a misplaced tool call; 2026.2.9 looks for the same words.
const MISPLACED_CALL: &str = "function call turn comes immediately after";

/// Reason for which a conversation can't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadEnd {
    /// The conversation does not fit the model's window, and compacting did not help.
    TooLarge,
    /// The provider refuses the order of its messages.
    Ordering,
    /// The provider takes its tool calls for misplaced.
    Corrupted,
}

impl DeadEnd {
    /// Returns the dead end at which a message's run has ended, if a new conversation would help:
    /// not if the message alone has no room, or if nothing else was said yet. A client of `agent`
    /// chose its session and is told the error alone, as in 2.9.
    pub(super) fn met(prepared: &Prepared, row: &InboxRow, ended: &Outcome) -> Option<Self> {
        if prepared.session.is_new || !row.payload.is_chat() {
            return None;
        }
        let met = Self::of(ended)?;
        let model = prepared.models.get(ended.candidate).or(prepared.models.first())?;
        let room = Budget::new(&prepared.compaction, model.model.context_window()).threshold();
        let said = prepared.branch.context().iter().rev().find(|said| matches!(&***said, Message::User(_)));
        let least = prepared.fixed_tokens + said.map_or(0, |said| message_tokens(said));
        (met != Self::TooLarge || least <= room).then_some(met)
    }

    fn of(ended: &Outcome) -> Option<Self> {
        let error = ended.meta.error.as_ref()?;
        let said = ended.failures.last().map(|failure| failure.message.to_ascii_lowercase());
        match error.kind {
            RunErrorKind::ContextOverflow | RunErrorKind::CompactionFailure => Some(Self::TooLarge),
            RunErrorKind::RoleOrdering => Some(Self::Ordering),
            _ => said.filter(|said| said.contains(MISPLACED_CALL)).map(|_| Self::Corrupted),
        }
    }

    /// Notice for the person; people and clients know the first sentences.
    fn notice(self) -> &'static str {
        match self {
            Self::TooLarge => {
                "⚠️ Context limit exceeded. I've reset our conversation to start fresh - please try again.\n\nIf this happens \
                 often, raise `agents.defaults.compaction.reserveTokensFloor`: then conversations are compacted earlier."
            }
            Self::Ordering => "⚠️ Message ordering conflict. I've reset the conversation - please try again.",
            Self::Corrupted => {
                "⚠️ Session history was corrupted. I've reset the conversation - please try again!"
            }
        }
    }

    /// Replaces the error by the notice. `meta.error` keeps the cause.
    pub(super) fn tell(self, ended: &mut Outcome) {
        self.notice().clone_into(match &mut ended.end {
            RunEnd::Failed(text) => text,
            RunEnd::Completed | RunEnd::Aborted | RunEnd::TimedOut => return,
        });
        if let Some(payload) = ended.payloads.iter_mut().rev().find(|payload| payload.is_error) {
            self.notice().clone_into(&mut payload.text);
        }
    }
}

/// Parts for beginning a conversation anew that no model can go on with.
pub(crate) struct FreshStarts {
    transcripts: Transcripts,
    words: Arc<TranscriptWords>,
    rows: Arc<SessionRows>,
    store: Arc<dyn SessionStore>,
    hooks: Arc<ConversationHooks>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl FreshStarts {
    pub(crate) fn new(
        transcripts: Transcripts,
        words: Arc<TranscriptWords>,
        rows: Arc<SessionRows>,
        store: Arc<dyn SessionStore>,
        hooks: Arc<ConversationHooks>,
        kill: CancellationToken,
    ) -> Self {
        Self { transcripts, words, rows, store, hooks, kill }
    }

    /// Starts a new conversation in the session, which begins with the notice. A crash before the
    /// row is written leaves the old one, with the error in it.
    pub(super) async fn start_over(
        &self,
        session: &RunSession,
        row: &InboxRow,
        figures: Figures,
        dead_end: DeadEnd,
    ) -> Result<(), StoreError> {
        let id = new_session_id();
        let Ok(transcript) = self.transcripts.of_conversation(&session.agent.id, &session.key, &id) else {
            return self.rows.store_figures(&session.key, figures).await;
        };
        let file = transcript.to_string();
        let place = AnsweredIn::new(transcript, &id, &session.agent.workspace);
        let notice = injected(dead_end.notice(), None, row.accepted_at);
        if self.words.put_once(row, &place, &notice, None).await.is_err() {
            tracing::warn!(session = %session.key, "the new conversation does not begin with the notice");
        }
        let previous = self.store.get(&session.key).await?.map(|found| found.entry);
        let fresh = id.clone();
        let change = Box::new(move |edit: Edit<'_>| {
            if edit.is_new || edit.entry.session_id.as_ref() != Some(&figures.session_id) {
                return Err(Refused("the session was deleted or reset while its run ended".to_owned()));
            }
            figures.apply(edit.entry, edit.now);
            *edit.entry = edit.entry.reset(fresh.clone(), edit.now, ResetKind::Chat);
            edit.entry.session_file = Some(file.clone().into());
            Ok(())
        });
        let current = match self.store.update(&session.key, change).await {
            Ok(written) => written.entry,
            Err(StoreError::Refused(reason)) => {
                tracing::debug!(session = %session.key, %reason, "a conversation is not begun anew");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        tracing::warn!(session = %session.key, from = %session.id, to = %id, why = ?dead_end, "a conversation begins anew");
        let restart = Restart {
            key: &session.key,
            previous: previous.as_deref(),
            current: &current,
            command: Some(CommandAction::New),
            source: "auto",
            sender: row.payload.sender_id(),
            chat: None,
        };
        Box::pin(self.hooks.restarted(restart, &self.kill)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openclaw_agent::reply::{AgentMeta, CandidateFailure, RunError};
    use openclaw_agent::{ReplyPayload, RunMeta};
    use openclaw_models::FailureKind;
    use openclaw_protocol::SessionId;

    use super::*;

    fn failed(kind: RunErrorKind, said: &str) -> Outcome {
        let message = "what happened".to_owned();
        let agent_meta = AgentMeta {
            session_id: SessionId::new("s"),
            provider: String::new(),
            model: String::new(),
            usage: None,
            compaction_count: None,
        };
        let payload = ReplyPayload { text: message.clone(), is_error: true, ..ReplyPayload::default() };
        let error = Some(RunError { kind, message: message.clone() });
        Outcome {
            started_at: 0,
            ended_at: 0,
            end: RunEnd::Failed(message),
            payloads: vec![ReplyPayload::default(), payload],
            meta: RunMeta { duration_ms: 0, agent_meta, aborted: false, stop_reason: None, error },
            last_usage: None,
            tokens_after: None,
            is_full: false,
            failures: vec![CandidateFailure {
                candidate: 0,
                kind: FailureKind::Other,
                message: said.to_owned(),
            }],
            candidate: 0,
            ran_out_of_time: false,
        }
    }

    /// The failure payloads of spec `messages.md` §10.5.
    #[test]
    fn three_failures_end_a_conversation_and_others_do_not() {
        let misplaced = "Please ensure that Function Call turn comes immediately after a user turn or after a function response turn.";
        let rows = [
            (
                RunErrorKind::ContextOverflow,
                "",
                Some("⚠️ Context limit exceeded. I've reset our conversation"),
            ),
            (RunErrorKind::CompactionFailure, "", Some("⚠️ Context limit exceeded.")),
            (
                RunErrorKind::RoleOrdering,
                "",
                Some("⚠️ Message ordering conflict. I've reset the conversation"),
            ),
            (RunErrorKind::Storage, misplaced, Some("⚠️ Session history was corrupted. I've reset")),
            (RunErrorKind::Storage, "disk full", None),
            (RunErrorKind::Timeout, "", None),
        ];
        for (kind, said, expect) in rows {
            let mut ended = failed(kind, said);
            let met = DeadEnd::of(&ended);
            assert_eq!(met.is_some(), expect.is_some(), "{kind:?} {said}");
            let (Some(met), Some(expect)) = (met, expect) else { continue };
            met.tell(&mut ended);
            let RunEnd::Failed(text) = &ended.end else { panic!("{ended:?}") };
            assert!(text.starts_with(expect), "{text}");
            assert_eq!((ended.payloads[0].text.as_str(), &ended.payloads[1].text), ("", text));
            assert_eq!(ended.meta.error.map(|error| error.message), Some("what happened".to_owned()));
        }
        let mut answered = failed(RunErrorKind::Storage, "");
        (answered.end, answered.meta.error) = (RunEnd::Completed, None);
        assert_eq!(DeadEnd::of(&answered), None);
    }
}
