//! Memory flush: a turn before the turn (spec `agent-runtime.md` §10.7). When a conversation will
//! soon be compacted, its agent is asked once to write down what should last. People do not hear of
//! it, and if it fails the message has its turn all the same.

use std::sync::Arc;

use jiff::Timestamp;
use openclaw_agent::compaction::memory_flush::MemoryFlush;
use openclaw_agent::event::RunEnd;
use openclaw_agent::user_time::user_zone;
use openclaw_config::settings::QueueMode;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::Intent;
use openclaw_journal::journal::Journal;
use openclaw_journal::queue::QueueSettings;
use openclaw_journal::request::{Decisions, MAIN_LANE, RunRequest};
use openclaw_journal::rights::Rights;
use openclaw_journal::source::RequestSource;
use openclaw_protocol::{RunId, SessionId};
use openclaw_runtime::session_model::RequestedModel;
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_sessions::SessionStore;
use openclaw_sessions::store::{Edit, Refused};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::kept::KeptTranscripts;
use super::lent::LanePlace;
use super::prepare::{Flush, Preparation, Preparer};
use super::result;
use crate::agent_call::run_agent;
use crate::control::RunControl;
use crate::message_tool::message_turn;
use crate::not_begun::NotBegun;
use crate::run_host::HostLink;
use openclaw_sessions::time::now_ms;

/// The gateway's own message. It is in no inbox: a crash forgets it, and the next message brings another.
fn turn(row: &InboxRow, session_id: &SessionId, flush: &MemoryFlush, settings: &Settings) -> InboxRow {
    let accepted_at = now_ms();
    let zone = user_zone(settings.config.agents.defaults.user_timezone.as_deref());
    let now = Timestamp::from_millisecond(accepted_at).unwrap_or(Timestamp::UNIX_EPOCH);
    let extra =
        row.payload.extra_system_prompt.iter().map(String::as_str).chain([flush.system_prompt.as_str()]);
    let decided = Decisions {
        reset: None,
        intent: Intent::Prompt,
        queue: QueueSettings::with(QueueMode::Followup),
        time_limit: row.payload.run_time().map(|limit| limit.as_secs()),
    };
    let payload = RunRequest {
        source: RequestSource::MemoryFlush,
        text: flush.prompt(now, &zone),
        extra_system_prompt: Some(extra.collect::<Vec<_>>().join("\n\n")),
        agent_id: row.payload.agent_id.clone(),
        rights: row.payload.rights.as_ref().map(Rights::caused),
        decided: Some(decided),
        ..RunRequest::default()
    };
    let id = openclaw_sessions::ids::uuid().to_string();
    InboxRow {
        run_id: RunId::new(format!("memory-flush-{id}")),
        session_key: row.session_key.clone(),
        payload,
        accepted_at,
        entry_id: id.get(..8).unwrap_or(&id).to_owned(),
        fresh_id: SessionId::new(id),
        session_id: Some(session_id.clone()),
        abort: None,
        answered: None,
        recovered: false,
        gathering: None,
    }
}

/// Parts for saving memory ahead of a compaction, in a run of its own.
pub(crate) struct MemoryFlushes {
    settings: LiveSettings,
    preparer: Arc<Preparer>,
    host: Arc<HostLink>,
    journal: Arc<dyn Journal>,
    store: Arc<dyn SessionStore>,
    kept: Arc<KeptTranscripts>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl MemoryFlushes {
    pub(crate) fn new(
        settings: LiveSettings,
        preparer: Arc<Preparer>,
        host: Arc<HostLink>,
        journal: Arc<dyn Journal>,
        store: Arc<dyn SessionStore>,
        kept: Arc<KeptTranscripts>,
        kill: CancellationToken,
    ) -> Self {
        Self { settings, preparer, host, journal, store, kept, kill }
    }

    /// Asks the agent, with the model its next turn has.
    pub(super) async fn work(
        &self,
        row: &InboxRow,
        session_id: &SessionId,
        control: &RunControl,
        requested: Option<RequestedModel>,
    ) {
        let settings = self.settings.now();
        let Some(flush) = &settings.memory_flush else { return };
        let asking = turn(row, session_id, flush, &settings);
        // No message is steered into it; a stop of the message stops it too.
        let own = Arc::new(RunControl::new(control.cancel.child_token(), false));
        let asked = async || control.attempt.prepared(&*self.journal, &row.run_id).await;
        let worked = Box::pin(self.flush_memory(&asking, &own, requested, asked)).await;
        if let Err(NotBegun { message, .. }) = worked {
            tracing::warn!(session = %row.session_key, %message, "memory was not saved before the turn");
        }
    }

    async fn flush_memory(
        &self,
        row: &InboxRow,
        control: &Arc<RunControl>,
        requested: Option<RequestedModel>,
        about_to_ask: impl AsyncFnOnce(),
    ) -> Result<(), NotBegun> {
        let Preparation::Ready(mut prepared) =
            self.preparer.prepare(row, control, requested, Flush::Done).await?
        else {
            return Ok(());
        };
        about_to_ask().await;
        let (events, _) = mpsc::channel(1);
        let (turn, place) = (message_turn(row), Arc::new(LanePlace::new(MAIN_LANE, None)));
        let ended = run_agent(&self.host, &mut prepared, control, (row, &turn, &place), events).await;
        control.transcript.send_replace(None);
        prepared.branch.end_injections();
        if self.kill.is_cancelled() {
            return Err(NotBegun::because("the gateway is shutting down"));
        }
        let is_saved = ended.end == RunEnd::Completed;
        let outcome = result::outcome(&ended, None);
        let figures = prepared.figures(ended, row, &outcome, None);
        let change = Box::new(move |edit: Edit<'_>| {
            if edit.is_new || edit.entry.session_id.as_ref() != Some(&figures.session_id) {
                return Err(Refused("the session was deleted or reset meanwhile".to_owned()));
            }
            // Whoever stopped the run before did not stop this one.
            let aborted = edit.entry.aborted_last_run;
            figures.apply(edit.entry, edit.now);
            edit.entry.aborted_last_run = aborted;
            if is_saved {
                edit.entry.memory_flush_at = Some(edit.now);
                edit.entry.memory_flush_compaction_count = Some(edit.entry.compaction_count.unwrap_or(0));
            }
            Ok(())
        });
        self.store.record(&prepared.session.key, change).await?;
        prepared.branch.sync().await?;
        prepared.keep(&self.kept);
        Ok(())
    }
}
