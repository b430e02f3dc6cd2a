//! Compactions outside of runs: after one that has filled the model's window, once clients have heard its end, and when a person asks
//! for one (`/compact`). The transcript says that a conversation was compacted before its row does.

use std::sync::Arc;

use openclaw_agent::RunModel;
use openclaw_agent::compaction::work::{CompactError, Compacted, Compacting, compact};
use openclaw_agent::event::RunEvent;
use openclaw_channels::Address;
use openclaw_delivery::reply::prefix::PrefixContext;
use openclaw_models::Selected;
use openclaw_models::usage::short_count;
use openclaw_protocol::{RunId, SessionId, SessionKey};
use openclaw_runtime::global_lanes::LanePermit;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::Settings;
use openclaw_runtime::system_events::SystemEvents;
use openclaw_sessions::store::{Edit, Refused};
use openclaw_sessions::transcript::{NewTranscript, TranscriptLock, Transcripts};
use openclaw_sessions::{SessionEntry, SessionStore, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::branch::RunBranch;
use super::context_settings;
use super::kept::KeptTranscripts;
use super::prepare::{Prepared, select};
use super::result::{compacted, note_compactions};
use super::session::RunSession;
use crate::control::RunControl;
use crate::hooks::Hooks;
use crate::not_begun::NotBegun;
use crate::notices::{ChatNotice, Notices};
use crate::rows::SessionRows;
use crate::said::Destination;
use openclaw_sessions::time::now_ms;

/// A run that is over and whose conversation is to be compacted, with all that it holds.
pub struct AfterRun {
    pub(super) prepared: Prepared,
    /// The run's permit of its global lane.
    pub(super) permit: Option<LanePermit>,
    /// The candidate that answered last.
    pub(super) candidate: usize,
    /// Chat that is told everything.
    pub(super) chat: Option<ToldChat>,
}

/// A chat that is told of a compaction, and the run that it is about.
pub(super) struct ToldChat {
    pub(super) run_id: RunId,
    pub(super) to: Destination,
    pub(super) context: PrefixContext,
}

impl std::fmt::Debug for AfterRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AfterRun").field("session", &self.prepared.session.key).finish_non_exhaustive()
    }
}

/// Result of `/compact`.
enum CompactResult {
    Done { before: u64, after: Option<u64> },
    Skipped(String),
    Failed(String),
}

impl CompactResult {
    /// The line for the person; the agent is told the same.
    fn line(&self, entry: &SessionEntry, window: u64) -> String {
        let (done, now) = match self {
            Self::Done { before, after: Some(after) } => {
                (format!("Compacted ({} → {})", short_count(*before), short_count(*after)), Some(*after))
            }
            Self::Done { before, after: None } => {
                (format!("Compacted ({} before)", short_count(*before)), None)
            }
            Self::Skipped(why) => (format!("Compaction skipped: {why}"), None),
            Self::Failed(why) => (format!("Compaction failed: {why}"), None),
        };
        format!("{done} • Context {}", fill(now.or(entry.total_tokens), window))
    }
}

/// `15k/200k (8%)`
fn fill(tokens: Option<u64>, window: u64) -> String {
    let Some(tokens) = tokens else { return format!("?/{}", short_count(window)) };
    let percent = (tokens * 100 + window / 2).checked_div(window).unwrap_or(0).min(999);
    format!("{}/{} ({percent}%)", short_count(tokens), short_count(window))
}

/// Parts for compacting full conversations after runs.
pub struct AfterRuns {
    kept: Arc<KeptTranscripts>,
    store: Arc<dyn SessionStore>,
    rows: Arc<SessionRows>,
    notices: Arc<Notices>,
}

impl AfterRuns {
    pub(crate) fn new(
        kept: Arc<KeptTranscripts>,
        store: Arc<dyn SessionStore>,
        rows: Arc<SessionRows>,
        notices: Arc<Notices>,
    ) -> Self {
        Self { kept, store, rows, notices }
    }

    /// Compacts the conversation of a run that is over. What is said meanwhile waits.
    pub async fn compact(&self, after: AfterRun, control: &Arc<RunControl>, events: mpsc::Sender<RunEvent>) {
        let AfterRun { mut prepared, permit, candidate, chat } = after;
        control.transcript.send_replace(Some(prepared.branch.injector()));
        let mut models: Vec<RunModel<'_>> = prepared.models.iter().map(RunModel::from).collect();
        models.rotate_left(candidate.min(prepared.models.len()));
        let compacting = Compacting {
            session_id: &prepared.session.id,
            models: &models,
            settings: &prepared.compaction,
            fixed_tokens: prepared.fixed_tokens,
            focus: None,
            hooks: &prepared.hooks,
        };
        let compacted = compact(compacting, &mut prepared.branch, control.cancel.clone(), &events).await;
        let (key, id) = (&prepared.session.key, &prepared.session.id);
        match compacted {
            Ok(Compacted::Done { after, .. }) => {
                prepared.remembered.pruned.forget();
                note_compaction(&*self.store, key, id, after).await;
                if let Some(chat) = chat {
                    self.tell_compaction(key, chat).await;
                }
            }
            Ok(Compacted::Nothing(nothing)) => {
                tracing::debug!(session = %key, %nothing, "a full conversation is not compacted")
            }
            Err(CompactError::Stopped) => {}
            // The next run tries again before it asks its model.
            Err(error) => {
                tracing::warn!(session = %key, %error, "a full conversation could not be compacted")
            }
        }
        control.transcript.send_replace(None);
        prepared.branch.end_injections();
        prepared.keep(&self.kept);
        drop(permit);
    }

    /// Tells a chat that the conversation was compacted after a run that it has the answer of.
    async fn tell_compaction(&self, key: &SessionKey, chat: ToldChat) {
        let ToldChat { run_id, to, context } = chat;
        let count = self.rows.entry_or_none(key).await.and_then(|entry| entry.compaction_count).unwrap_or(1);
        let id = format!("{run_id}:tcompacted");
        let notice =
            ChatNotice { id: &id, run_id: &run_id, key, text: compacted(count), buttons: Vec::new() };
        if let Err(error) = self.notices.send(notice, to, &context).await {
            tracing::error!(delivery = id, %error, "the notice of a compaction was not taken");
        }
    }
}

/// Parts for compacting a conversation at somebody's request.
pub(crate) struct Compactions {
    models: Arc<SessionModels>,
    transcripts: Transcripts,
    kept: Arc<KeptTranscripts>,
    store: Arc<dyn SessionStore>,
    system_events: Arc<SystemEvents>,
    hooks: Arc<Hooks>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl Compactions {
    pub(crate) fn new(
        models: Arc<SessionModels>,
        transcripts: Transcripts,
        kept: Arc<KeptTranscripts>,
        store: Arc<dyn SessionStore>,
        system_events: Arc<SystemEvents>,
        hooks: Arc<Hooks>,
        kill: CancellationToken,
    ) -> Self {
        Self { models, transcripts, kept, store, system_events, hooks, kill }
    }

    /// Carries out `/compact` and returns the answer. `at` is the conversation in which it was
    /// said.
    pub(super) async fn compact_now(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        (focus, at): (&str, Option<&Address>),
        cancel: CancellationToken,
    ) -> Result<String, NotBegun> {
        let (selected, _) = select(&self.models, settings, session, None).await?;
        let window = selected.candidates.first().map_or(0, |candidate| candidate.model.context_window());
        let said = match self.compacted(session, settings, &selected, (focus, at), cancel).await {
            Ok(Compacted::Done { before, after, .. }) => {
                note_compaction(&*self.store, &session.key, &session.id, after).await;
                CompactResult::Done { before, after }
            }
            Ok(Compacted::Nothing(why)) => CompactResult::Skipped(why.to_string()),
            Err(Failed::NotBegun(error)) => return Err(error),
            Err(Failed::Compact(why)) => CompactResult::Failed(why),
        };
        let line = said.line(&session.entry, window);
        self.system_events.enqueue(&session.key, &line, None, now_ms());
        Ok(format!("⚙️ {line}"))
    }

    async fn compacted(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        selected: &Selected,
        (focus, at): (&str, Option<&Address>),
        cancel: CancellationToken,
    ) -> Result<Compacted, Failed> {
        let models: Vec<RunModel<'_>> = selected.candidates.iter().map(RunModel::from).collect();
        let compaction = context_settings::compaction(settings, session).await;
        let lock = TranscriptLock::acquire_now(&self.transcripts, &session.transcript).await?;
        let new = NewTranscript {
            session_id: session.id.as_str().to_owned(),
            cwd: session.agent.workspace.display().to_string(),
            parent: None,
        };
        let (kept, remembered) = self.kept.take(&session.transcript).unzip();
        let transcript = lock.reopen(kept, new).await?;
        let context = transcript.context().await?.messages;
        let mut branch = RunBranch::new(transcript, context, Arc::default(), self.kill.clone());
        let compacting = Compacting {
            session_id: &session.id,
            models: &models,
            settings: &compaction,
            fixed_tokens: context_settings::noted_fixed_tokens(&session.entry),
            focus: Some(focus.trim()).filter(|focus| !focus.is_empty()),
            hooks: &self.hooks.of_run(settings, (&session.agent, &session.key), at),
        };
        // Whoever asked is told the answer; nobody watches the work.
        let (events, _) = mpsc::channel(1);
        let compacted = compact(compacting, &mut branch, cancel, &events).await;
        let mut remembered = remembered.unwrap_or_default();
        if matches!(compacted, Ok(Compacted::Done { .. })) {
            remembered.pruned.forget();
        }
        branch.sync().await?;
        self.kept.put(branch.into_transcript(), remembered);
        compacted.map_err(|error| match error {
            CompactError::Transcript(error) => Failed::NotBegun(NotBegun::because(error.to_string())),
            error => Failed::Compact(error.to_string()),
        })
    }
}

/// Makes the session's row say that its conversation was compacted.
async fn note_compaction(
    store: &dyn SessionStore,
    key: &SessionKey,
    id: &SessionId,
    tokens_after: Option<u64>,
) {
    let of = id.clone();
    let change = Box::new(move |edit: Edit<'_>| {
        if edit.is_new || edit.entry.session_id.as_ref() != Some(&of) {
            return Err(Refused("the session was deleted or reset meanwhile".to_owned()));
        }
        note_compactions(edit.entry, 1, tokens_after);
        edit.entry.touch(edit.now);
        Ok(())
    });
    match store.record(key, change).await {
        Ok(_) | Err(StoreError::Refused(_)) => {}
        Err(error) => {
            tracing::error!(session = %key, %error, "a session's row does not say that it was compacted")
        }
    }
}

/// Reason for which a conversation was not compacted.
enum Failed {
    /// Compaction did not begin: an obstacle that passes, or a trouble with the transcript, which
    /// is told as such.
    NotBegun(NotBegun),
    /// Compaction failed, which is told as the answer.
    Compact(String),
}

impl<E: Into<NotBegun>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::NotBegun(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replies of spec `agent-runtime.md` §10.8.
    #[test]
    fn the_answers_are_those_clients_know() {
        let entry = SessionEntry { total_tokens: Some(118), ..SessionEntry::default() };
        let rows = [
            (
                CompactResult::Done { before: 120_000, after: Some(15_000) },
                "Compacted (120k → 15k) • Context 15k/200k (8%)",
            ),
            (
                CompactResult::Done { before: 12_000, after: Some(3_100) },
                "Compacted (12k → 3.1k) • Context 3.1k/200k (2%)",
            ),
            (
                CompactResult::Done { before: 127, after: None },
                "Compacted (127 before) • Context 118/200k (0%)",
            ),
            (CompactResult::Skipped("x".to_owned()), "Compaction skipped: x • Context 118/200k (0%)"),
            (CompactResult::Failed("y".to_owned()), "Compaction failed: y • Context 118/200k (0%)"),
        ];
        for (said, expect) in rows {
            assert_eq!(said.line(&entry, 200_000), expect);
        }
        assert_eq!(fill(None, 32_000), "?/32k");
        assert_eq!(fill(Some(5), 0), "5/0 (0%)");
    }
}
