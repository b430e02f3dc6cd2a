//! Everything a run needs before its first model call.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::bootstrap::{BootstrapFile, BootstrapScope, Wanted};
use openclaw_agent::compaction::CompactionSettings;
use openclaw_agent::event::RunEnd;
use openclaw_agent::hooks::merge::StartChanges;
use openclaw_agent::hooks::{EventKind, HookBus, HookPoint, RunHooks};
use openclaw_agent::prompt::{
    self, PromptInputs, PromptMode, ReportFrame, RuntimeFacts, SkillsReport, SystemPromptReport,
};
use openclaw_agent::pruning::{PruneSettings, is_cached};
use openclaw_agent::skills::{self, Occasion, Snapshot};
use openclaw_agent::user_time::{user_zone, zone_name};
use openclaw_agent::workspace::Fill;
use openclaw_agent::{Limits, Outcome, ReasoningVisibility, Toolbox};
use openclaw_config::ResolvedAgent;
use openclaw_models::credentials::SessionState;
use openclaw_models::reference::ModelNames;
use openclaw_models::select::Skipped;
use openclaw_models::{Ask, AskedThinking, Candidate, Selected, ThinkingLevel};
use openclaw_protocol::SessionId;
use openclaw_protocol::message::{AssistantMessage, Message, StopReason};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::{Json, ReasoningLevel, VerboseLevel};
use openclaw_sessions::transcript::{
    Context, ModelSettings as TranscriptSettings, NewTranscript, Transcript, TranscriptError, TranscriptLock,
    TurnMessage,
};
use openclaw_tools::{Confinement, ExecSettings, Setup, toolbox};

use super::branch::{self, Prompted, RunBranch};
use super::context_settings;
use super::kept::Remembered;
use super::result::Figures;
use super::secrets::Shield;
use super::session::Session;
use super::wording::{self, Circumstances};
use super::{NotBegun, RunControl, Runner, history_limit, inject, memory_flush, protections, tools};
use crate::api::{AbortReason, RunOutcome};
use crate::beat::BeatAnswer;
use crate::events::Verbose;
use crate::hooks::{self, bootstrap::Bootstrap};
use crate::inbox::Row;
use crate::request::{Request, WEBCHAT};
use crate::session_model::RequestedModel;
use crate::session_model::profile_pin::Keep;
use crate::setup::Settings;
use crate::system_events;
use openclaw_sessions::time::now_ms;

/// A run that is ready to begin.
pub(super) struct Prepared {
    pub(super) session: Session,
    pub(super) models: Vec<Candidate>,
    /// What is told of models that were left out.
    pub(super) passed_over: Vec<String>,
    /// The credential profile the session goes on with.
    pub(super) pin: Keep,
    pub(super) tools: Toolbox,
    pub(super) shield: Arc<Shield>,
    pub(super) hooks: RunHooks,
    /// What the row keeps of the skills.
    pub(super) skills_mark: Option<Json>,
    pub(super) system_prompt: Arc<str>,
    /// What that was made of.
    pub(super) report: Json,
    pub(super) branch: RunBranch,
    /// What is remembered behind its transcript.
    pub(super) remembered: Remembered,
    pub(super) compaction: CompactionSettings,
    /// Tokens of the system prompt and the tools.
    pub(super) fixed_tokens: u64,
    pub(super) pruning: Option<Arc<PruneSettings>>,
    pub(super) reasoning: ReasoningVisibility,
    pub(super) limits: Limits,
    pub(super) history_limit: Option<NonZeroU32>,
    /// Until everything is stored.
    pub(super) lock: TranscriptLock,
}

/// What came of preparing a run.
pub(super) enum Preparation {
    /// It can begin.
    Ready(Box<Prepared>),
    /// It was stopped first.
    Stopped,
    /// The agent of this session is to save its memory first.
    FlushFirst(SessionId),
}

/// Whether memory may have to be saved before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// If it is due.
    IfDue,
    /// It was, or could not be.
    Done,
}

/// What a turn begins with.
#[derive(Clone, Copy)]
struct Beginning<'a> {
    session: &'a Session,
    lock: &'a TranscriptLock,
    first: &'a Candidate,
    hooks: &'a RunHooks,
}

/// A turn that has begun.
struct Begun {
    branch: RunBranch,
    remembered: Remembered,
    /// The system prompt, where a hook wants another.
    own_prompt: Option<Arc<str>>,
}

/// What a system prompt is made of besides settings.
pub(super) struct PromptParts<'a> {
    pub(super) files: &'a [BootstrapFile],
    pub(super) skills: &'a Snapshot,
    pub(super) tools: &'a Toolbox,
}

impl Prepared {
    /// Keeps the transcript open for the next run, and lets go of everything else.
    pub(super) fn keep(self, runner: &Runner) {
        runner.kept.put(self.branch.into_transcript(), self.remembered);
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
    pub(super) async fn leave_forgettable(&mut self, row: &Row, answer: Option<&BeatAnswer>) -> bool {
        if !answer.is_some_and(BeatAnswer::is_forgettable) {
            return false;
        }
        let left = self.branch.leave_turn(row).await;
        left.unwrap_or_else(|error| {
            tracing::warn!(run_id = %row.run_id, %error, "a heartbeat's acknowledgement stays in the conversation");
            false
        })
    }

    /// What the session's row learns.
    pub(super) fn figures(
        &self,
        ended: Outcome,
        row: &Row,
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
            report: Some(self.report.clone()),
            last_usage: ended.last_usage,
            tokens_after: ended.tokens_after,
            abort,
            said_at: row.payload.is_interaction().then_some(row.accepted_at),
            is_beat: row.payload.beat.is_some(),
            pin: self.pin.clone(),
            skills: self.skills_mark.clone(),
        }
    }
}

impl Runner {
    pub(super) async fn prepare(
        &self,
        row: &Row,
        control: &Arc<RunControl>,
        requested: Option<RequestedModel>,
        flush: Flush,
    ) -> Result<Preparation, NotBegun> {
        let settings = self.settings();
        let asked = asked_thinking(&row.payload)?;
        let session = self.session(row, &settings, requested).await?;
        // One run a transcript, whatever session keys lead to it.
        let lock = tokio::select! { biased;
            () = control.cancel.cancelled() => return Ok(Preparation::Stopped),
            lock = TranscriptLock::acquire_now(&self.deps.transcripts, &session.transcript) => lock?,
        };
        let ((), selected, files, skills) = tokio::try_join!(
            session.note(&*self.shared.journal, row),
            self.select(&settings, &session, asked),
            self.load_workspace(&session, &settings),
            async { Ok(self.skills_of(&session, &settings).await) },
        )?;
        let (Selected { candidates: models, skipped, secrets, .. }, pin) = selected;
        let passed_over = skipped.iter().map(Skipped::to_string).collect();
        let first = models.first().ok_or_else(|| NotBegun::because("Error: no model is configured"))?;
        if flush == Flush::IfDue && memory_flush::is_due(&settings, row, &session, first) {
            return Ok(Preparation::FlushFirst(session.id));
        }
        self.secrets.learn_keys(&skills.overlay);
        let shield = self.secrets.shield(&settings, secrets, self.secrets.of_devices())?;
        let model = (first.model.provider(), first.model.id());
        let tools = self.tools(&session, &settings, model, &shield, &skills);
        let parts = PromptParts { files: &files, skills: &skills, tools: &tools };
        let extra = row.payload.extra_system_prompt.clone();
        let (system_prompt, report) = self.system_prompt(extra, &session, &settings, first, parts);
        let fixed_tokens = context_settings::fixed_tokens(&report);
        let report = self.reports.keep(&session.key, report)?;
        let hooks = self.run_hooks(&settings, &session);
        let beginning = Beginning { session: &session, lock: &lock, first, hooks: &hooks };
        let Begun { branch, remembered, own_prompt } =
            self.begin_turn(row, control, &settings, beginning).await?;
        let system_prompt = own_prompt.unwrap_or(system_prompt);
        let compaction = context_settings::compaction(&settings, &session, first).await;
        let reasoning = reasoning(&session.entry);
        let max_tool_rounds = settings.config.agents.defaults.max_tool_rounds;
        let limits = Limits { timeout: row.payload.run_time(), max_tool_rounds, ..Limits::default() };
        let history_limit = history_limit::of(&settings.config.channels, &session.key, &session.entry);
        let _ = control.verbose.set(verbose(&session.entry, &settings));
        control.transcript.send_replace(Some(branch.injector()));
        Ok(Preparation::Ready(Box::new(Prepared {
            session,
            models,
            passed_over,
            pin,
            tools,
            shield,
            hooks,
            skills_mark: skills.mark.clone(),
            system_prompt,
            report,
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

    /// Opens the transcript, notes the run's settings, and begins the turn with its message, unless an earlier process did.
    /// Before clients hear that the run begins: on a full disk the message goes back to waiting.
    async fn begin_turn(
        &self,
        row: &Row,
        control: &Arc<RunControl>,
        settings: &Settings,
        beginning: Beginning<'_>,
    ) -> Result<Begun, NotBegun> {
        let Beginning { session, lock, first, hooks } = beginning;
        let kill = self.shared.kill.clone();
        if kill.is_cancelled() {
            return Err(NotBegun::because("the gateway is shutting down"));
        }
        let lines = match row.payload.is_memory_flush {
            true => Vec::new(),
            false => self.deps.system_events.waiting(&session.key),
        };
        let mut circumstances = circumstances(session);
        let zone = system_events::zone(&settings.config.agents.defaults);
        circumstances.system_block = system_events::block(&lines, &zone);
        let message = wording::message(row, &circumstances);
        let hooks = hooks.get().filter(|(bus, _)| bus.asks(HookPoint::BeforeAgentStart));
        // Hooks are shown what was said before, which is read first.
        let (mut known, new) = if row.recovered || hooks.is_some() {
            (Some(message), None)
        } else {
            (None, Some(Arc::new(Message::User(message))))
        };
        let turn = new.clone().map(|message| TurnMessage { message, ids: branch::first_ids(row) });
        let (transcript, mut context, remembered) =
            self.transcript(lock, session, first, settings.pruning.is_some(), turn).await?;
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
        let mut branch = RunBranch::new(transcript, context.messages, Arc::clone(control), kill);
        if let Some(message) = known {
            match branch.prompted(row, self.entries_since(row).await).await? {
                Prompted::Yes => return Ok(Begun { branch, remembered, own_prompt }),
                Prompted::Failed(why) => return Err(NotBegun::because(why)),
                Prompted::NotYet(entry_id) | Prompted::Overtaken(entry_id) => {
                    branch.begin_turn().await?;
                    branch.say(message, &entry_id).await?;
                }
            }
        }
        self.deps.system_events.mark_delivered(&session.key, &lines);
        Ok(Begun { branch, remembered, own_prompt })
    }

    /// What the run tells and asks.
    pub(super) fn run_hooks(&self, settings: &Arc<Settings>, session: &Session) -> RunHooks {
        match self.hooks(settings) {
            Some(bus) => RunHooks::new(bus, hooks::run::context_of(&session.agent, &session.key)),
            None => RunHooks::none(),
        }
    }

    /// The transcript, the run's settings noted and its message said, and what the model should see of what was there before.
    async fn transcript(
        &self,
        lock: &TranscriptLock,
        session: &Session,
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
        let (kept, remembered) = self.kept.take(&session.transcript).unzip();
        let (transcript, context) = lock.begin(kept, new, settings, message).await?;
        Ok((transcript, context, remembered.unwrap_or_default()))
    }

    pub(super) async fn select(
        &self,
        settings: &Settings,
        session: &Session,
        asked: Option<ThinkingLevel>,
    ) -> Result<(Selected, Keep), NotBegun> {
        let entry = &session.entry;
        let thinking = thinking(asked, entry);
        let asked_model = self.models.asked_for(&session.key, entry, session.requested.as_ref()).await;
        let ask = Ask {
            agent: &session.agent.id,
            agent_dir: &session.agent.agent_dir,
            model: asked_model.model.as_deref(),
            pin: asked_model.pin.as_ref(),
            session: SessionState {
                is_new: session.is_new,
                compactions: entry.compaction_count.unwrap_or(0),
            },
            thinking,
        };
        let selected = self.models.all.select(&settings.models, &ask).await?;
        if let Some(instead) = selected.candidates.first().filter(|_| selected.override_ignored) {
            self.models.drop_override(&session.key, &asked_model, &instead.reference).await;
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
    pub(super) async fn skills_of(&self, session: &Session, settings: &Settings) -> Arc<Snapshot> {
        let Session { agent, entry, is_new, .. } = session;
        let wanted =
            skills::Wanted { config: &settings.config, agent: &agent.id, workspace: &agent.workspace };
        let occasion =
            if *is_new { Occasion::Begins } else { Occasion::GoesOn(entry.skills_snapshot.as_ref()) };
        self.deps.skills.for_turn(wanted, occasion).await
    }

    /// The tools that the policy leaves where this model is used.
    pub(super) fn tools(
        &self,
        session: &Session,
        settings: &Settings,
        (provider, model): (&str, &str),
        shield: &Shield,
        skills: &Snapshot,
    ) -> Toolbox {
        let agent = &session.agent;
        let mut environment = settings.config.environment().clone();
        for (name, value) in &self.deps.command_variables {
            environment.set(name, value);
        }
        let mut exec = ExecSettings::new(&protections::exec_of(&session.entry, &agent.exec), environment);
        exec.approvals_file = Some(self.deps.state_dir.join("exec-approvals.json"));
        exec.withheld = Arc::clone(&shield.withheld);
        exec.overlay = Arc::clone(&skills.overlay);
        exec.lock = self.deps.command_lock.clone();
        let allowed = tools::allowed(&settings.config, agent, provider, model, &session.key);
        // A run that asks for a sandbox did not get here.
        toolbox(Setup { confinement: Confinement::Host, exec }, &allowed)
    }

    /// Makes the workspace ready and gives the files that go into the prompt.
    pub(super) async fn load_workspace(
        &self,
        session: &Session,
        settings: &Arc<Settings>,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        let agent = &session.agent;
        let wanted = Wanted {
            workspace: agent.workspace.clone(),
            scope: BootstrapScope::for_session(&session.key, &settings.sessions.key_rules().main_key),
            max_chars: usize::try_from(agent.bootstrap_max_chars).unwrap_or(usize::MAX),
            fill: if agent.skip_bootstrap { Fill::DirectoryOnly } else { Fill::Templates },
        };
        let hears = |bus: &HookBus| bus.set().hears(EventKind::AgentBootstrap);
        match self.hooks(settings).filter(hears) {
            Some(bus) => {
                let whose = Bootstrap { key: &session.key, session_id: session.id.as_str(), agent };
                Box::pin(self.hooked_workspace(&bus, settings, wanted, &whose)).await
            }
            None => Ok(self.workspace_files.load(wanted).await?),
        }
    }

    pub(super) fn system_prompt(
        &self,
        extra: Option<String>,
        session: &Session,
        settings: &Settings,
        first: &Candidate,
        PromptParts { files, skills, tools }: PromptParts<'_>,
    ) -> (Arc<str>, SystemPromptReport) {
        let agent = &session.agent;
        let model = format!("{}/{}", first.model.provider(), first.model.id());
        let mode = PromptMode::for_session(&session.key);
        let inputs = PromptInputs {
            mode,
            tools,
            skills: &skills.prompt,
            model_aliases: aliases(settings),
            time_zone: Some(zone_name(&user_zone(agent.user_timezone.as_deref())).to_owned()),
            workspace: agent.workspace.clone(),
            extra,
            files,
            heartbeat_prompt: heartbeat_prompt(agent, settings),
            reasoning_tags: openclaw_models::thinking::uses_tags(first.model.provider()),
            reasoning: reasoning(&session.entry),
            runtime: RuntimeFacts {
                agent: Some(agent.id.as_str().to_owned()),
                host: self.deps.host.clone(),
                repo: agent
                    .repo_root
                    .as_deref()
                    .map(PathBuf::from)
                    .or_else(|| self.repo_roots.find(&agent.workspace)),
                default_model: Some(agent.model_primary.clone().unwrap_or_else(|| model.clone())),
                model: Some(model),
                channel: Some(WEBCHAT.to_owned()),
                capabilities: Vec::new(),
                thinking: Some(first.thinking.as_str().to_owned()),
            },
            ..PromptInputs::default()
        };
        let built = prompt::build(&inputs);
        let frame = ReportFrame {
            session_id: Some(session.id.as_str().to_owned()),
            session_key: Some(session.key.clone()),
            provider: Some(first.model.provider().to_owned()),
            model: Some(first.model.id().to_owned()),
            workspace_dir: Some(agent.workspace.display().to_string()),
            bootstrap_max_chars: usize::try_from(agent.bootstrap_max_chars).ok(),
            ..ReportFrame::default()
        };
        let skills = if mode == PromptMode::Full { skills.report.clone() } else { SkillsReport::default() };
        let report = built.report(now_ms(), frame, files, skills, tools.specs());
        (built.text.into(), report)
    }
}

/// The level that the message asks for, or else its session.
pub(super) fn thinking(asked: Option<ThinkingLevel>, entry: &SessionEntry) -> AskedThinking {
    let stored = entry.thinking_level.as_deref().and_then(|level| level.parse().ok());
    match (asked, stored) {
        (Some(level), _) => AskedThinking::Explicit(level),
        (None, Some(level)) => AskedThinking::Stored(level),
        (None, None) => AskedThinking::Default,
    }
}

/// The level the message itself asks for.
fn asked_thinking(request: &Request) -> Result<Option<ThinkingLevel>, NotBegun> {
    let asked = request.thinking.as_deref().map(str::trim).filter(|level| !level.is_empty());
    // As the reference: `/think <level> ` is put before a chat message only when that is no command itself.
    let is_command = request.is_chat() && request.text.trim_start().starts_with('/');
    let Some(asked) = asked.filter(|_| !is_command) else { return Ok(None) };
    asked.parse().map(Some).map_err(|_| {
        NotBegun::refused("Error: Invalid thinking level. Use one of: off, minimal, low, medium, high.")
    })
}

fn circumstances(session: &Session) -> Circumstances {
    Circumstances {
        zone: user_zone(session.agent.user_timezone.as_deref()),
        after_abort: session.after_abort,
        reset: session.reset.clone(),
        system_block: String::new(),
    }
}

fn reasoning(entry: &SessionEntry) -> ReasoningVisibility {
    match entry.reasoning_level {
        Some(ReasoningLevel::On) => ReasoningVisibility::On,
        Some(ReasoningLevel::Stream) => ReasoningVisibility::Stream,
        None => ReasoningVisibility::Off,
    }
}

/// How much of the run's tool events clients see.
fn verbose(entry: &SessionEntry, settings: &Settings) -> Verbose {
    match entry.verbose_level {
        Some(VerboseLevel::On) => Verbose::On,
        Some(VerboseLevel::Full) => Verbose::Full,
        Some(VerboseLevel::Off) => Verbose::Off,
        None => {
            let configured = settings.config.agents.defaults.verbose_default.as_deref();
            configured.map(Verbose::parse).unwrap_or_default()
        }
    }
}

fn aliases(settings: &Settings) -> Vec<(String, String)> {
    let names = ModelNames::new(&settings.models.listed);
    names.aliases().map(|(alias, model)| (alias.to_owned(), model.to_string())).collect()
}

fn heartbeat_prompt(agent: &ResolvedAgent, settings: &Settings) -> Option<String> {
    agent.is_default.then(|| settings.config.heartbeat_of(&agent.id).prompt_text().to_owned())
}
