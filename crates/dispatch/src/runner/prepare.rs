//! Everything a run needs before its first model call.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::bootstrap::{BootstrapFile, BootstrapScope, Wanted};
use openclaw_agent::event::RunEnd;
use openclaw_agent::prompt::{self, PromptInputs, PromptMode, ReportFrame, RuntimeFacts, SystemPromptReport};
use openclaw_agent::user_time::{user_zone, zone_name};
use openclaw_agent::workspace::Fill;
use openclaw_agent::{Limits, Outcome, ReasoningVisibility, Toolbox};
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::Heartbeat;
use openclaw_models::credentials::SessionState;
use openclaw_models::reference::ModelNames;
use openclaw_models::select::Skipped;
use openclaw_models::{Ask, AskedThinking, Candidate, Selected, ThinkingLevel};
use openclaw_protocol::message::{AssistantMessage, StopReason};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::{ReasoningLevel, VerboseLevel};
use openclaw_sessions::transcript::{
    Context, ModelSettings as TranscriptSettings, NewTranscript, Transcript, TranscriptError, TranscriptLock,
};
use openclaw_tools::{Confinement, ExecSettings, Setup, toolbox};

use super::branch::{Prompted, RunBranch};
use super::result::Figures;
use super::secrets::Shield;
use super::session::Session;
use super::wording::{self, Circumstances};
use super::{NotBegun, RunControl, Runner, history_limit, inject, protections, tools};
use crate::api::{AbortReason, RunOutcome};
use crate::events::Verbose;
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
    pub(super) system_prompt: String,
    pub(super) report: SystemPromptReport,
    pub(super) branch: RunBranch,
    pub(super) reasoning: ReasoningVisibility,
    pub(super) limits: Limits,
    pub(super) history_limit: Option<NonZeroU32>,
    /// Until everything is stored.
    _lock: TranscriptLock,
}

/// What came of preparing a run.
pub(super) enum Preparation {
    /// It can begin.
    Ready(Box<Prepared>),
    /// It was stopped first.
    Stopped,
}

impl Prepared {
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
            last_usage: ended.last_usage,
            abort,
            said_at: row.payload.is_interaction().then_some(row.accepted_at),
            pin: self.pin.clone(),
        }
    }
}

impl Runner {
    pub(super) async fn prepare(
        &self,
        row: &Row,
        control: &Arc<RunControl>,
        requested: Option<RequestedModel>,
    ) -> Result<Preparation, NotBegun> {
        let settings = self.settings();
        let asked = asked_thinking(&row.payload)?;
        let session = self.session(row, &settings, requested).await?;
        // One run a transcript, whatever session keys lead to it.
        let lock = tokio::select! { biased;
            () = control.cancel.cancelled() => return Ok(Preparation::Stopped),
            lock = TranscriptLock::acquire_now(&self.deps.transcripts, &session.transcript) => lock?,
        };
        let ((), selected, files) = tokio::try_join!(
            session.note(&*self.shared.journal, row),
            self.select(&settings, &session, asked),
            self.load_workspace(&session, &settings),
        )?;
        let (Selected { candidates: models, skipped, secrets, .. }, pin) = selected;
        let passed_over = skipped.iter().map(Skipped::to_string).collect();
        let first = models.first().ok_or_else(|| NotBegun::because("Error: no model is configured"))?;
        let shield = self.secrets.shield(&settings, secrets, self.secrets.of_devices())?;
        let tools = self.tools(&session, &settings, first, &shield);
        let (system_prompt, report) = self.system_prompt(row, &session, &settings, first, &files, &tools);
        let (transcript, mut context) = self.transcript(&lock, &session, first).await?;
        inject::without_preface(&mut context.messages);
        let kill = self.shared.kill.clone();
        let mut branch = RunBranch::new(transcript, context.messages, Arc::clone(control), kill);
        match branch.prompted(row, self.entries_since(row).await).await? {
            Prompted::Yes => {}
            Prompted::Failed(why) => return Err(NotBegun::because(why)),
            Prompted::NotYet(entry_id) | Prompted::Overtaken(entry_id) => {
                branch.begin_turn().await?;
                let lines = self.deps.system_events.waiting(&session.key);
                let mut circumstances = circumstances(&session);
                let zone = system_events::zone(&settings.config.agents.defaults);
                circumstances.system_block = system_events::block(&lines, &zone);
                // Before clients hear that the run begins: on a full disk the message goes back to waiting.
                branch.say(wording::message(row, &circumstances), &entry_id).await?;
                self.deps.system_events.mark_delivered(&session.key, &lines);
            }
        }
        let reasoning = reasoning(&session.entry);
        let limits = Limits { timeout: row.payload.run_time(), ..Limits::default() };
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
            system_prompt,
            report,
            branch,
            reasoning,
            limits,
            history_limit,
            _lock: lock,
        })))
    }

    /// The transcript, the run's settings noted, and what the model should see of it.
    async fn transcript(
        &self,
        lock: &TranscriptLock,
        session: &Session,
        first: &Candidate,
    ) -> Result<(Transcript, Context), TranscriptError> {
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
        };
        lock.begin(self.kept.take(&session.transcript), new, settings).await
    }

    async fn select(
        &self,
        settings: &Settings,
        session: &Session,
        asked: Option<ThinkingLevel>,
    ) -> Result<(Selected, Keep), NotBegun> {
        let entry = &session.entry;
        let stored = entry.thinking_level.as_deref().and_then(|level| level.parse().ok());
        let thinking = match (asked, stored) {
            (Some(level), _) => AskedThinking::Explicit(level),
            (None, Some(level)) => AskedThinking::Stored(level),
            (None, None) => AskedThinking::Default,
        };
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

    fn tools(&self, session: &Session, settings: &Settings, first: &Candidate, shield: &Shield) -> Toolbox {
        let agent = &session.agent;
        let mut environment = settings.config.environment().clone();
        for (name, value) in &self.deps.command_variables {
            environment.set(name, value);
        }
        let mut exec = ExecSettings::new(&protections::exec_of(&session.entry, &agent.exec), environment);
        exec.approvals_file = Some(self.deps.state_dir.join("exec-approvals.json"));
        exec.withheld = Arc::clone(&shield.withheld);
        exec.lock = self.deps.command_lock.clone();
        let model = &first.model;
        let allowed = tools::allowed(&settings.config, agent, model.provider(), model.id(), &session.key);
        // A run that asks for a sandbox did not get here.
        toolbox(Setup { confinement: Confinement::Host, exec }, &allowed)
    }

    /// Makes the workspace ready and gives the files that go into the prompt.
    async fn load_workspace(
        &self,
        session: &Session,
        settings: &Settings,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        let agent = &session.agent;
        let wanted = Wanted {
            workspace: agent.workspace.clone(),
            scope: BootstrapScope::for_session(&session.key, &settings.sessions.key_rules().main_key),
            max_chars: usize::try_from(agent.bootstrap_max_chars).unwrap_or(usize::MAX),
            fill: if agent.skip_bootstrap { Fill::DirectoryOnly } else { Fill::Templates },
        };
        Ok(self.workspace_files.load(wanted).await?)
    }

    fn system_prompt(
        &self,
        row: &Row,
        session: &Session,
        settings: &Settings,
        first: &Candidate,
        files: &[BootstrapFile],
        tools: &Toolbox,
    ) -> (String, SystemPromptReport) {
        let agent = &session.agent;
        let model = format!("{}/{}", first.model.provider(), first.model.id());
        let inputs = PromptInputs {
            mode: PromptMode::for_session(&session.key),
            tools,
            model_aliases: aliases(settings),
            time_zone: Some(zone_name(&user_zone(agent.user_timezone.as_deref())).to_owned()),
            workspace: agent.workspace.clone(),
            extra: row.payload.extra_system_prompt.clone(),
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
        let report = built.report(now_ms(), frame, files, "", tools.specs());
        (built.text, report)
    }
}

/// The level the message itself asks for.
fn asked_thinking(request: &Request) -> Result<Option<ThinkingLevel>, NotBegun> {
    let asked = request.thinking.as_deref().map(str::trim).filter(|level| !level.is_empty());
    // As the reference: `/think <level> ` is put before a chat message only when that is no command itself.
    let is_command = request.is_chat() && request.text.trim_start().starts_with('/');
    let Some(asked) = asked.filter(|_| !is_command) else { return Ok(None) };
    asked.parse().map(Some).map_err(|_| {
        NotBegun::because("Error: Invalid thinking level. Use one of: off, minimal, low, medium, high.")
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
    let configured = settings.config.agents.defaults.heartbeat.as_ref().and_then(|beat| beat.prompt.clone());
    agent.is_default.then(|| configured.unwrap_or_else(|| Heartbeat::PROMPT.to_owned()))
}
