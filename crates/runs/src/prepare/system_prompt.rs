//! System prompt of a run, and the parts that it was made of.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::Toolbox;
use openclaw_agent::bootstrap::BootstrapFile;
use openclaw_agent::prompt::{
    self, HostFacts, InlineButtons, MemoryCitations, PromptInputs, PromptMode, ReactionLevel, Reactions,
    RepoRoots, ReportFrame, RuntimeFacts, SkillsReport, SystemPromptReport,
};
use openclaw_agent::skills::Snapshot;
use openclaw_agent::user_time::{user_zone, zone_name};
use openclaw_channels::access::{AccessSettings, Entry, written_owners};
use openclaw_channels::{Address, Platforms, Reacting};
use openclaw_config::settings::Citations;
use openclaw_config::{Config, ResolvedAgent};
use openclaw_journal::request::WEBCHAT;
use openclaw_models::Candidate;
use openclaw_models::reference::ModelNames;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::SessionKey;
use openclaw_sessions::time::now_ms;
use openclaw_tools::sandbox::ActiveSandbox;

use super::reasoning;
use crate::message_tool;
use crate::rows::SessionRows;
use crate::sandbox;
use crate::session::RunSession;

/// The capability of a channel that shows buttons, as OpenClaw names it.
const INLINE_BUTTONS: &str = "inlineButtons";
/// The action of the `message` tool that reacts.
const REACT: &str = "react";

/// Parts of a system prompt besides settings.
pub(crate) struct PromptParts<'a> {
    pub(crate) files: &'a [BootstrapFile],
    pub(crate) skills: &'a Snapshot,
    pub(crate) tools: &'a Toolbox,
    pub(crate) sandbox: Option<&'a ActiveSandbox>,
    /// The conversation of a chat platform that is answered, if it is one.
    pub(crate) at: Option<&'a Address>,
}

/// Parts of system prompts that all sessions share.
pub(crate) struct SystemPrompts {
    rows: Arc<SessionRows>,
    platforms: Arc<Platforms>,
    /// Facts about this machine.
    host: HostFacts,
    repo_roots: RepoRoots,
}

impl SystemPrompts {
    pub(crate) fn new(rows: Arc<SessionRows>, platforms: Arc<Platforms>, host: HostFacts) -> Self {
        Self { rows, platforms, host, repo_roots: RepoRoots::default() }
    }

    pub(crate) fn system_prompt(
        &self,
        extra: Option<String>,
        session: &RunSession,
        settings: &Settings,
        first: &Candidate,
        PromptParts { files, skills, tools, sandbox, at }: PromptParts<'_>,
    ) -> (Arc<str>, SystemPromptReport) {
        let agent = &session.agent;
        let model = format!("{}/{}", first.model.provider(), first.model.id());
        let mode = PromptMode::for_session(&session.key);
        let channel = at.map_or(WEBCHAT, |at| &at.channel);
        let message = message_tool::setup(&self.platforms, &settings.config, at);
        let current = message.as_ref().and_then(|message| message.current.as_ref());
        let inner_skills = sandbox.map(|held| sandbox::skills_prompt(held, agent, skills));
        let inputs = PromptInputs {
            mode,
            tools,
            skills: inner_skills.as_deref().unwrap_or(&skills.prompt),
            sandbox: sandbox.map(sandbox::note),
            model_aliases: aliases(settings),
            time_zone: Some(zone_name(&user_zone(agent.user_timezone.as_deref())).to_owned()),
            workspace: sandbox.map_or_else(|| agent.workspace.clone(), ActiveSandbox::inner_workspace),
            extra,
            files,
            memory_citations: match settings.config.memory.citations {
                Citations::Auto | Citations::On => MemoryCitations::Named,
                Citations::Off => MemoryCitations::Hidden,
            },
            heartbeat_prompt: heartbeat_prompt(agent, settings),
            deliverable_channels: message
                .iter()
                .flat_map(|message| &message.channels)
                .map(|id| (*id).to_owned())
                .collect(),
            docs_dir: self.host.docs_dir.clone().filter(|_| sandbox.is_none()),
            owner_numbers: self.owner_numbers(&settings.config, at),
            reactions: at.and_then(|at| self.reactions(&settings.config, at)),
            inline_buttons: current.map(|current| match current.has_buttons {
                true => InlineButtons::Enabled,
                false => InlineButtons::Available { channel: current.id.clone() },
            }),
            reasoning_tags: openclaw_models::thinking::uses_tags(first.model.provider()),
            reasoning: reasoning(None, &session.entry),
            runtime: RuntimeFacts {
                agent: Some(agent.id.as_str().to_owned()),
                host: self.host.clone(),
                repo: agent
                    .repo_root
                    .as_deref()
                    .map(PathBuf::from)
                    .or_else(|| self.repo_roots.find(&agent.workspace)),
                default_model: Some(agent.model_primary.clone().unwrap_or_else(|| model.clone())),
                model: Some(model),
                channel: Some(channel.to_owned()),
                capabilities: current
                    .filter(|current| current.has_buttons)
                    .map(|_| INLINE_BUTTONS.to_owned())
                    .into_iter()
                    .collect(),
                thinking: Some(first.thinking.as_str().to_owned()),
            },
            ..PromptInputs::default()
        };
        let built = prompt::build(&inputs);
        let frame = ReportFrame {
            session_id: Some(session.id.as_str().to_owned()),
            session_key: Some(self.reported_key(session)),
            provider: Some(first.model.provider().to_owned()),
            model: Some(first.model.id().to_owned()),
            workspace_dir: Some(agent.workspace.display().to_string()),
            sandbox: sandbox::report(settings, agent, sandbox),
            bootstrap_max_chars: usize::try_from(agent.bootstrap_max_chars).ok(),
        };
        let skills = if mode == PromptMode::Full { skills.report.clone() } else { SkillsReport::default() };
        let report = built.report(now_ms(), frame, files, skills, tools.specs());
        (built.text.into(), report)
    }
}

impl SystemPrompts {
    /// Returns the key of its session as a report has it: the global session counts as the agent's
    /// main session.
    fn reported_key(&self, session: &RunSession) -> SessionKey {
        match session.key.is_global() {
            true => SessionKey::main(&session.agent.id, &self.rows.key_rules().main_key),
            false => session.key.clone(),
        }
    }

    /// Returns the people that the agent regards as its users: the named owners, or else everybody
    /// who is let into the channel by name.
    fn owner_numbers(&self, config: &Config, at: Option<&Address>) -> Vec<String> {
        let Some(at) = at else { return written_owners(config) };
        let platforms = &self.platforms;
        let owners = platforms.owners(config, &at.channel, &at.account);
        if !owners.is_empty() {
            return owners;
        }
        let access = AccessSettings::of(config, &at.channel, &at.account);
        let listed = access.ok().and_then(|access| access.allow_from).unwrap_or_default();
        let at_work = platforms.at_work(&at.channel, &at.account);
        let id = |name: String| at_work.as_ref().and_then(|it| it.account.id_of_name(&name)).unwrap_or(name);
        listed.into_iter().map(|Entry(entry)| entry).filter(|entry| entry != "*").map(id).collect()
    }

    /// Returns how freely the agent is to react to messages; `None` if it can't or may not.
    fn reactions(&self, config: &Config, at: &Address) -> Option<Reactions> {
        let account = self.platforms.account(config, &at.channel, &at.account)?;
        let level = match account.reacting().filter(|_| account.permits(REACT).is_ok())? {
            Reacting::Seldom => ReactionLevel::Minimal,
            Reacting::Often => ReactionLevel::Extensive,
        };
        Some(Reactions { channel: at.channel.clone(), level })
    }
}

fn aliases(settings: &Settings) -> Vec<(String, String)> {
    let names = ModelNames::new(&settings.models.listed);
    names.aliases().map(|(alias, model)| (alias.to_owned(), model.to_string())).collect()
}

fn heartbeat_prompt(agent: &ResolvedAgent, settings: &Settings) -> Option<String> {
    agent.is_default.then(|| settings.config.heartbeat_of(&agent.id).prompt_text().to_owned())
}
