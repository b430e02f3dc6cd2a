//! The beginning of a turn: the transcript is open, and the message is in it.

use std::sync::Arc;

use openclaw_agent::hooks::merge::StartChanges;
use openclaw_agent::hooks::{HookPoint, RunHooks};
use openclaw_agent::pruning::is_cached;
use openclaw_agent::user_time::user_zone;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::journal::Journal;
use openclaw_journal::source::RequestSource;
use openclaw_models::Candidate;
use openclaw_protocol::message::{Block, Message};
use openclaw_runtime::events::Hub;
use openclaw_runtime::setup::Settings;
use openclaw_runtime::system_events::{self, SystemEvents};
use openclaw_sessions::transcript::{
    Context, KeptTranscript, ModelSettings as TranscriptSettings, NewTranscript, Transcript, TranscriptError,
    TranscriptLock, Transcripts, TurnMessage,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::branch::{self, Prompted, RunBranch};
use crate::compaction_note::CompactionNotes;
use crate::control::RunControl;
use crate::hooks;
use crate::inject;
use crate::kept::{KeptTranscripts, Remembered};
use crate::not_begun::NotBegun;
use crate::session::RunSession;
use crate::stored_messages::entries_since;
use crate::taken;
use crate::wording::{self, Circumstances};

/// A transcript that is read while a run is prepared.
pub(super) type ReadAhead = JoinHandle<Option<KeptTranscript>>;

/// Inputs for the beginning of a turn.
pub(super) struct Beginning<'a> {
    pub(super) session: &'a RunSession,
    pub(super) lock: &'a TranscriptLock,
    /// Transcript read ahead, if it was not kept from a run before.
    pub(super) ahead: Option<ReadAhead>,
    pub(super) first: &'a Candidate,
    pub(super) hooks: &'a RunHooks,
    /// Pictures that the message names.
    pub(super) pictures: Vec<Block>,
}

/// A turn that has begun.
pub(super) struct Begun {
    pub(super) branch: RunBranch,
    pub(super) remembered: Remembered,
    /// System prompt, if a hook wants another.
    pub(super) own_prompt: Option<Arc<str>>,
}

/// Parts for beginning the turn of a message in the transcript of its session.
pub(crate) struct TurnOpener {
    transcripts: Transcripts,
    kept: Arc<KeptTranscripts>,
    journal: Arc<dyn Journal>,
    system_events: Arc<SystemEvents>,
    hub: Arc<Hub>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl TurnOpener {
    pub(crate) fn new(
        transcripts: Transcripts,
        kept: Arc<KeptTranscripts>,
        journal: Arc<dyn Journal>,
        system_events: Arc<SystemEvents>,
        hub: Arc<Hub>,
        kill: CancellationToken,
    ) -> Self {
        Self { transcripts, kept, journal, system_events, hub, kill }
    }

    /// Locks the transcript, so that it has one run at a time, whatever session keys lead to it;
    /// meanwhile the message is noted to be in that session. A transcript that was not kept is read
    /// while all else is prepared. `None` if the run is stopped before. A message that is noted
    /// while another run, or another process, has the transcript belongs there all the same.
    pub(super) async fn lock_and_note(
        &self,
        session: &RunSession,
        row: &InboxRow,
        control: &RunControl,
    ) -> Result<Option<(TranscriptLock, Option<ReadAhead>)>, NotBegun> {
        let lock = async {
            let lock = TranscriptLock::acquire_now(&self.transcripts, &session.transcript).await?;
            let ahead = (!self.kept.has(&session.transcript)).then(|| lock.read_ahead());
            Ok((lock, ahead))
        };
        let begun = async { tokio::try_join!(lock, session.note(&*self.journal, row)) };
        tokio::select! { biased;
            () = control.cancel.cancelled() => Ok(None),
            begun = begun => begun.map(|(lock, ())| Some(lock)),
        }
    }

    /// Opens the transcript, notes the run's settings, and begins the turn with its message, unless an earlier process did.
    /// Before clients hear that the run begins: on a full disk the message goes back to waiting.
    pub(super) async fn begin_turn(
        &self,
        row: &InboxRow,
        control: &Arc<RunControl>,
        settings: &Settings,
        beginning: Beginning<'_>,
    ) -> Result<Begun, NotBegun> {
        let Beginning { session, lock, ahead, first, hooks, pictures } = beginning;
        let kill = self.kill.clone();
        if kill.is_cancelled() {
            return Err(NotBegun::because("the gateway is shutting down"));
        }
        let lines = match row.payload.source {
            RequestSource::MemoryFlush => Vec::new(),
            _ => self.system_events.waiting_for(&session.key, &row.run_id),
        };
        let mut circumstances = circumstances(session);
        let zone = system_events::zone(&settings.config.agents.defaults);
        circumstances.system_block = system_events::block(&lines, &zone);
        let mut message = wording::message(row, &circumstances);
        wording::show(&mut message, pictures);
        let hooks = hooks.get().filter(|(bus, _)| bus.asks(HookPoint::BeforeAgentStart));
        // Hooks are shown what was said before, which is read first.
        let (mut known, new) = if row.recovered || hooks.is_some() {
            (Some(message), None)
        } else {
            (None, Some(Arc::new(Message::User(message))))
        };
        let turn = new.clone().map(|message| TurnMessage { message, ids: branch::first_ids(row) });
        let (transcript, mut context, remembered) =
            self.transcript((lock, ahead), session, first, settings.pruning.is_some(), turn).await?;
        inject::without_preface(&mut context.messages);
        let mut own_prompt = None;
        if let (Some((bus, place)), Some(message)) = (hooks, &mut known) {
            let changes = tokio::select! { biased;
                () = control.cancel.cancelled() => StartChanges::default(),
                changes = hooks::run::changes(bus, place, row.payload.words(), &context.messages) => changes,
            };
            own_prompt = changes.system_prompt.map(Arc::from);
            if let Some(preface) = changes.prepend_context {
                wording::put_before(message, &preface);
            }
        }
        context.messages.extend(new);
        let branch = RunBranch::new(transcript, context.messages, Arc::clone(control), kill);
        let branch = branch.telling(CompactionNotes::of(&self.hub, row, session));
        let mut branch = branch.noting(Arc::clone(&self.journal), row.run_id.clone());
        if let Some(message) = known {
            match branch.prompted(row, entries_since(&*self.journal, row).await).await? {
                Prompted::Yes => {
                    taken::takes_on(&*self.journal, row, branch.steered()).await;
                    self.system_events.were_told(&row.run_id);
                    return Ok(Begun { branch, remembered, own_prompt });
                }
                Prompted::Failed(why) => return Err(NotBegun::because(why)),
                Prompted::NotYet(entry_id) | Prompted::Overtaken(entry_id) => {
                    if row.recovered {
                        taken::own(&*self.journal, row).await;
                    }
                    branch.begin_turn().await?;
                    branch.say(message, &entry_id).await?;
                }
            }
        }
        self.system_events.mark_delivered(&session.key, &row.run_id, &lines).await;
        Ok(Begun { branch, remembered, own_prompt })
    }

    /// Opens the transcript, notes the run's settings in it, writes its message, and returns it
    /// with the earlier messages that the model should see.
    async fn transcript(
        &self,
        (lock, ahead): (&TranscriptLock, Option<ReadAhead>),
        session: &RunSession,
        first: &Candidate,
        prunes: bool,
        message: Option<TurnMessage>,
    ) -> Result<(Transcript, Context, Remembered), TranscriptError> {
        let new = NewTranscript {
            session_id: session.id.as_str().to_owned(),
            cwd: session.agent.workspace.display().to_string(),
            parent: None,
        };
        let settings = TranscriptSettings {
            provider: first.model.provider().to_owned(),
            model_id: first.model.id().to_owned(),
            api: first.model.api().to_owned(),
            thinking_level: first.thinking.as_str().to_owned(),
            touches_cache: prunes && is_cached(first.model.provider(), first.model.id()),
        };
        let (mut kept, remembered) = self.kept.take(&session.transcript).unzip();
        if let Some(ahead) = ahead {
            // A failure there happens here again, and is told.
            kept = kept.or(ahead.await.ok().flatten());
        }
        let (transcript, context) = lock.begin(kept, new, settings, message).await?;
        Ok((transcript, context, remembered.unwrap_or_default()))
    }
}

/// Returns the circumstances that are told with a message besides its words; system events are to
/// be added.
pub(crate) fn circumstances(session: &RunSession) -> Circumstances {
    Circumstances {
        zone: user_zone(session.agent.user_timezone.as_deref()),
        after_abort: session.after_abort,
        is_first: session.is_new,
        reset: session.reset.clone(),
        system_block: String::new(),
    }
}
