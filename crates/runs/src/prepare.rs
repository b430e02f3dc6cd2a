//! Preparation of a run before its first model call: [`system_prompt`] builds the prompt, [`begin`]
//! opens the transcript.

mod begin;
pub(crate) mod equipment;
pub(crate) mod exec;
mod pictures;
mod system_prompt;
mod tools;
mod workspace;

use std::num::NonZeroU32;
use std::sync::Arc;

use openclaw_agent::compaction::CompactionSettings;
use openclaw_agent::event::RunEnd;
use openclaw_agent::hooks::RunHooks;
use openclaw_agent::prompt::SystemPromptReport;
use openclaw_agent::pruning::PruneSettings;
use openclaw_agent::skills::{self, Occasion, SkillBook, Snapshot};
use openclaw_agent::{Limits, Outcome, ReasoningVisibility, Toolbox};
use openclaw_journal::api::{AbortReason, RunOutcome};
use openclaw_journal::beat::BeatAnswer;
use openclaw_journal::caller::Right;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::{Hints, Reasoning};
use openclaw_journal::request::RunRequest;
use openclaw_models::credentials::{AgentFlag, SessionState};
use openclaw_models::select::Skipped;
use openclaw_models::{Ask, Candidate, Selected, ThinkingLevel};
use openclaw_protocol::SessionId;
use openclaw_protocol::message::{AssistantMessage, StopReason};
use openclaw_runtime::events::Verbose;
use openclaw_runtime::session_model::profile_pin::Keep;
use openclaw_runtime::session_model::thinking;
use openclaw_runtime::session_model::{RequestedModel, SessionModels};
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_runtime::verbosity::verbose;
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::Json;
use openclaw_sessions::transcript::TranscriptLock;
use openclaw_tools::ImageSetup;

use super::branch::RunBranch;
use super::context_settings;
use super::kept::{KeptTranscripts, Remembered};
use super::result::Figures;
use super::secrets::Shield;
use super::session::{RunSession, SessionOpener};
use super::{flush_due, history_limit};
use crate::control::RunControl;
use crate::hooks::Hooks;
use crate::not_begun::NotBegun;
use begin::{Beginning, Begun};
pub(crate) use begin::{TurnOpener, circumstances};
use equipment::Equipment;
use openclaw_sessions::time::now_ms;
use pictures::Sight;
pub(crate) use system_prompt::{PromptParts, SystemPrompts};
pub(crate) use tools::{RunOrigin, ToolMaker};
pub(crate) use workspace::WorkspaceLoader;

/// A run that is ready to begin.
pub(super) struct Prepared {
    pub(super) session: RunSession,
    pub(super) models: Vec<Candidate>,
    /// Notices about models that were left out.
    pub(super) passed_over: Vec<String>,
    /// Flag with which commands mean the agent.
    pub(super) agent_flag: AgentFlag,
    /// The credential profile the session goes on with.
    pub(super) pin: Keep,
    pub(super) tools: Toolbox,
    pub(super) shield: Arc<Shield>,
    pub(super) hooks: RunHooks,
    /// Mark of the skills that the row keeps.
    pub(super) skills_mark: Option<Json>,
    pub(super) system_prompt: Arc<str>,
    /// Parts that the system prompt was made of, until they are put into words for the row while
    /// the model is asked.
    pub(super) report: Option<SystemPromptReport>,
    /// Report in the form that the row keeps.
    pub(super) kept_report: Option<Json>,
    pub(super) branch: RunBranch,
    /// State kept together with its transcript.
    pub(super) remembered: Remembered,
    pub(super) compaction: CompactionSettings,
    /// Tokens of the system prompt and the tools.
    pub(super) fixed_tokens: u64,
    pub(super) pruning: Option<Arc<PruneSettings>>,
    pub(super) reasoning: ReasoningVisibility,
    pub(super) limits: Limits,
    pub(super) history_limit: Option<NonZeroU32>,
    /// Lock on the transcript, held until everything is stored.
    pub(super) lock: TranscriptLock,
}

/// Result of preparing a run.
pub(super) enum Preparation {
    /// The run can begin.
    Ready(Box<Prepared>),
    /// The run was stopped first.
    Stopped,
    /// The agent of this session has to save its memory first.
    FlushFirst(SessionId),
}

/// Tells if memory may have to be saved before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Memory is saved if it is due.
    IfDue,
    /// Memory was saved, or could not be.
    Done,
}

impl Prepared {
    /// Keeps the transcript open for the next run, and lets go of everything else.
    pub(super) fn keep(self, kept: &KeptTranscripts) {
        kept.put(self.branch.into_transcript(), self.remembered);
        self.lock.linger();
    }

    /// Tells in the transcript that time was up.
    pub(super) async fn close_timed_out(&mut self, candidate: usize, why: String) {
        let model = self.models.get(candidate).or(self.models.first()).map(|candidate| &candidate.model);
        let said = AssistantMessage {
            api: model.map(|model| model.api().to_owned()).unwrap_or_default(),
            provider: model.map(|model| model.provider().to_owned()).unwrap_or_default(),
            model: model.map(|model| model.id().to_owned()).unwrap_or_default(),
            stop_reason: StopReason::Aborted,
            error_message: Some(why),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        };
        if let Err(error) = self.branch.close_timed_out(said).await {
            tracing::warn!(%error, "the transcript does not say that time was up");
        }
    }

    /// Leaves the turn of a heartbeat that needs no attention behind, so that the conversation does not fill with them. `false`:
    /// it stays, because it did something or somebody spoke in it.
    pub(super) async fn leave_forgettable(&mut self, row: &InboxRow, answer: Option<&BeatAnswer>) -> bool {
        if !answer.is_some_and(BeatAnswer::is_forgettable) {
            return false;
        }
        let left = self.branch.leave_turn(row).await;
        left.unwrap_or_else(|error| {
            tracing::warn!(run_id = %row.run_id, %error, "a heartbeat's acknowledgement stays in the conversation");
            false
        })
    }

    /// Returns the figures that the session's row learns.
    pub(super) fn figures(
        &self,
        ended: Outcome,
        row: &InboxRow,
        outcome: &RunOutcome,
        reason: Option<AbortReason>,
    ) -> Figures {
        let last = self.models.get(ended.candidate);
        if let Some(candidate) = last.filter(|_| ended.ran_out_of_time) {
            candidate.ran_out_of_time();
        }
        let window = last.or(self.models.first());
        let abort = match outcome {
            RunOutcome::Aborted { .. } if ended.end == RunEnd::TimedOut => Some(AbortReason::Timeout),
            RunOutcome::Aborted { .. } => reason,
            RunOutcome::Ok { .. } | RunOutcome::Error { .. } => None,
        };
        Figures {
            session_id: self.session.id.clone(),
            window: window.map_or(0, |candidate| candidate.model.context_window()),
            meta: ended.meta,
            report: self.kept_report.clone(),
            last_usage: ended.last_usage,
            tokens_after: ended.tokens_after,
            abort,
            said_at: row.payload.is_interaction().then_some(row.accepted_at),
            is_beat: row.payload.source.beat().is_some(),
            pin: self.pin.clone(),
            skills: self.skills_mark.clone(),
            adds_up: self.session.key.is_subagent(),
        }
    }
}

/// Parts for preparing runs.
pub(crate) struct Preparer {
    settings: LiveSettings,
    sessions: Arc<SessionOpener>,
    models: Arc<SessionModels>,
    equipment: Arc<Equipment>,
    hooks: Arc<Hooks>,
    opener: TurnOpener,
}

impl Preparer {
    pub(crate) fn new(
        settings: LiveSettings,
        sessions: Arc<SessionOpener>,
        models: Arc<SessionModels>,
        equipment: Arc<Equipment>,
        hooks: Arc<Hooks>,
        opener: TurnOpener,
    ) -> Self {
        Self { settings, sessions, models, equipment, hooks, opener }
    }

    pub(super) async fn prepare(
        &self,
        row: &InboxRow,
        control: &Arc<RunControl>,
        requested: Option<RequestedModel>,
        flush: Flush,
    ) -> Result<Preparation, NotBegun> {
        let settings = self.settings.now();
        may_have_hints(&row.payload)?;
        let asked = asked_thinking(&row.payload)?;
        let session = self.sessions.session(row, &settings, requested, &control.cancel).await?;
        let (lock, selected, files, skills) = tokio::try_join!(
            self.opener.lock_and_note(&session, row, control),
            select(&self.models, &settings, &session, asked),
            self.equipment.own_files(&session, &settings, &control.cancel),
            async { Ok(self.equipment.skills_of(&session, &settings).await) },
        )?;
        let Some((lock, ahead)) = lock else { return Ok(Preparation::Stopped) };
        let (Selected { candidates: models, images, skipped, secrets, .. }, pin) = selected;
        let passed_over = skipped.iter().map(Skipped::to_string).collect();
        let first = models.first().ok_or_else(|| NotBegun::because("Error: no model is configured"))?;
        if flush == Flush::IfDue && flush_due::is_due(&settings, row, &session, first) {
            return Ok(Preparation::FlushFirst(session.id));
        }
        self.equipment.learn_keys(&skills);
        let shield = self.equipment.shield(&settings, secrets)?;
        let model = (first.model.provider(), first.model.id());
        let origin = row.payload.source.origin();
        let skills = match origin.and_then(|origin| origin.skills.as_deref()) {
            Some(offered) => Arc::new(skills.only(offered, &settings.config)),
            None => skills,
        };
        let image = images.map(|_| ImageSetup { model_sees: first.sees });
        let from = RunOrigin { request: Some(&row.payload), image, ..RunOrigin::default() };
        let sandbox = self.equipment.sandbox(&session, &settings, &skills).await?;
        let files = self
            .equipment
            .files_told(&session, &settings, sandbox.as_deref(), files, &control.cancel)
            .await?;
        let tools =
            self.equipment.tools(&session, &settings, model, (&shield, &skills, sandbox.as_ref()), from);
        let parts = PromptParts {
            files: &files,
            skills: &skills,
            tools: &tools,
            sandbox: sandbox.as_deref(),
            at: row.payload.conversation(),
        };
        let extra = row.payload.extra_system_prompt.clone();
        let (system_prompt, report) = self.equipment.system_prompt(extra, &session, &settings, first, parts);
        let fixed_tokens = context_settings::fixed_tokens(&report);
        let whose = (&session.agent, &session.key);
        let hooks = self.hooks.of_run(&settings, whose, row.payload.conversation());
        let sight = Sight {
            session: &session,
            settings: &settings,
            first,
            tools: &tools,
            sandbox: sandbox.as_deref(),
        };
        let pictures = sight.pictures(&row.payload, &control.cancel).await;
        let beginning = Beginning { session: &session, lock: &lock, ahead, first, hooks: &hooks, pictures };
        let Begun { branch, remembered, own_prompt } =
            self.opener.begin_turn(row, control, &settings, beginning).await?;
        let system_prompt = own_prompt.unwrap_or(system_prompt);
        let compaction = context_settings::compaction(&settings, &session).await;
        let hints = row.payload.to_gateway().hints();
        let reasoning = reasoning(hints, &session.entry);
        let guard = settings.config.tools.loop_guard;
        let limits = Limits {
            timeout: row.payload.run_time(),
            max_tool_rounds: settings.config.agents.defaults.max_tool_rounds,
            identical_calls_warn: guard.warn_after.get(),
            identical_calls_stop: guard.stop_after.get(),
            expects: row.payload.expected(),
            ..Limits::default()
        };
        let history_limit = history_limit::of(&settings.config.channels, &session.key, &session.entry);
        let _ = control.verbose.set(verbose(hints, &session.entry, &settings));
        control.transcript.send_replace(Some(branch.injector()));
        Ok(Preparation::Ready(Box::new(Prepared {
            agent_flag: AgentFlag::of(&settings.models, &session.agent.id),
            session,
            models,
            passed_over,
            pin,
            tools,
            shield,
            hooks,
            skills_mark: skills.mark.clone(),
            system_prompt,
            report: Some(report),
            kept_report: None,
            branch,
            remembered,
            compaction,
            fixed_tokens,
            pruning: settings.pruning.clone(),
            reasoning,
            limits,
            history_limit,
            lock,
        })))
    }
}

pub(super) async fn select(
    models: &SessionModels,
    settings: &Settings,
    session: &RunSession,
    asked: Option<ThinkingLevel>,
) -> Result<(Selected, Keep), NotBegun> {
    let entry = &session.entry;
    let thinking = thinking(asked, entry);
    let asked_model = models.asked_for(&session.key, entry, session.requested.as_ref()).await;
    let ask = Ask {
        agent: &session.agent.id,
        agent_dir: &session.agent.agent_dir,
        model: asked_model.model.as_deref(),
        pin: asked_model.pin.as_ref(),
        session: SessionState { is_new: session.is_new, compactions: entry.compaction_count.unwrap_or(0) },
        thinking,
        chosen_at: models.chosen_at(&session.key, &asked_model),
    };
    let selected = models.all.select(&settings.models, &ask).await;
    let selected = selected.map_err(|error| NotBegun::from(error).for_instance(&settings.models.instance))?;
    if let Some(instead) = selected.candidates.first().filter(|_| selected.override_ignored) {
        models.drop_override(&session.key, &asked_model, &instead.reference).await;
    }
    for warning in &selected.warnings {
        tracing::warn!(agent = %session.agent.id, %warning, "models");
    }
    for skipped in &selected.skipped {
        tracing::warn!(model = %skipped.model, "left out: {skipped}");
    }
    let pin = if asked_model.by_message { Keep::AsItIs } else { Keep::This(selected.pin.clone()) };
    Ok((selected, pin))
}

/// The skills of a turn.
pub(super) async fn skills_of(
    skills: &SkillBook,
    session: &RunSession,
    settings: &Settings,
) -> Arc<Snapshot> {
    let RunSession { agent, entry, is_new, .. } = session;
    let wanted = skills::Wanted { config: &settings.config, agent: &agent.id, workspace: &agent.workspace };
    let occasion = if *is_new { Occasion::Begins } else { Occasion::GoesOn(entry.skills_snapshot.as_ref()) };
    skills.for_turn(wanted, occasion).await
}

/// Refuses hints about guards from a sender without that right, as for the commands alone, and
/// hints that can't be understood.
fn may_have_hints(request: &RunRequest) -> Result<(), NotBegun> {
    let Some(hints) = request.to_gateway().hints() else { return Ok(()) };
    match openclaw_commands::guard_directive(hints).filter(|_| !request.caller().may(Right::Approve)) {
        Some(name) => Err(NotBegun::refused(openclaw_commands::needs_scope(name, "operator.approvals"))),
        None => hints
            .exec
            .as_ref()
            .and_then(openclaw_commands::exec_refusal)
            .map_or(Ok(()), |why| Err(NotBegun::refused(why))),
    }
}

/// The level the message itself asks for: in its words, or else beside them.
fn asked_thinking(request: &RunRequest) -> Result<Option<ThinkingLevel>, NotBegun> {
    if let Some(level) = request.to_gateway().hints().and_then(|hints| hints.thinking) {
        return Ok(Some(level));
    }
    let asked = request.thinking.as_deref().map(str::trim).filter(|level| !level.is_empty());
    // As the reference: `/think <level> ` is put before a chat message only when that is no command itself.
    let is_command = request.is_chat() && request.text.trim_start().starts_with('/');
    let Some(asked) = asked.filter(|_| !is_command) else { return Ok(None) };
    asked.parse().map(Some).map_err(|_| {
        NotBegun::refused("Error: Invalid thinking level. Use one of: off, minimal, low, medium, high.")
    })
}

/// Returns the visibility of the model's thoughts, as the message asks or else its session.
fn reasoning(hints: Option<&Hints>, entry: &SessionEntry) -> ReasoningVisibility {
    let hint = hints.and_then(|hints| hints.reasoning);
    match hint.unwrap_or_else(|| Reasoning::of_row(entry.reasoning_level)) {
        Reasoning::On => ReasoningVisibility::On,
        Reasoning::Stream => ReasoningVisibility::Stream,
        Reasoning::Off => ReasoningVisibility::Off,
    }
}

/// Returns the level of notes about tools that a chat is shown. Notes name files and commands, so a group is shown only the level that an
/// owner has set in it (decision 55).
pub(super) fn notes(row: &InboxRow, entry: &SessionEntry, verbose: Verbose) -> Verbose {
    let Some(group) = row.payload.source.origin().filter(|origin| !origin.is_direct()) else {
        return verbose;
    };
    let asked = row.payload.to_gateway().hints().and_then(|hints| hints.verbose);
    asked.filter(|_| group.rights.is_owner).or(entry.verbose_level).map(Verbose::from).unwrap_or_default()
}
