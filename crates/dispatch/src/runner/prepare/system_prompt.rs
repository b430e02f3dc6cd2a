//! The system prompt of a run, and what it was made of.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::Toolbox;
use openclaw_agent::bootstrap::BootstrapFile;
use openclaw_agent::prompt::{
    self, InlineButtons, PromptInputs, PromptMode, ReportFrame, RuntimeFacts, SkillsReport,
    SystemPromptReport,
};
use openclaw_agent::skills::Snapshot;
use openclaw_agent::user_time::{user_zone, zone_name};
use openclaw_channels::Address;
use openclaw_config::ResolvedAgent;
use openclaw_models::Candidate;
use openclaw_models::reference::ModelNames;
use openclaw_sessions::time::now_ms;
use openclaw_tools::sandbox::ActiveSandbox;

use super::reasoning;
use crate::request::WEBCHAT;
use crate::runner::Runner;
use crate::runner::sandbox;
use crate::runner::session::Session;
use crate::setup::Settings;

/// What a system prompt is made of besides settings.
pub(in crate::runner) struct PromptParts<'a> {
    pub(in crate::runner) files: &'a [BootstrapFile],
    pub(in crate::runner) skills: &'a Snapshot,
    pub(in crate::runner) tools: &'a Toolbox,
    pub(in crate::runner) sandbox: Option<&'a ActiveSandbox>,
    /// The conversation of a chat platform that is answered, if it is one.
    pub(in crate::runner) at: Option<&'a Address>,
}

impl Runner {
    pub(in crate::runner) fn system_prompt(
        &self,
        extra: Option<String>,
        session: &Session,
        settings: &Settings,
        first: &Candidate,
        PromptParts { files, skills, tools, sandbox, at }: PromptParts<'_>,
    ) -> (Arc<str>, SystemPromptReport) {
        let agent = &session.agent;
        let model = format!("{}/{}", first.model.provider(), first.model.id());
        let mode = PromptMode::for_session(&session.key);
        let channel = at.map_or(WEBCHAT, |at| &at.channel);
        let message = self.message_setup(&settings.config, at);
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
            heartbeat_prompt: heartbeat_prompt(agent, settings),
            deliverable_channels: message
                .iter()
                .flat_map(|message| &message.channels)
                .map(|id| (*id).to_owned())
                .collect(),
            inline_buttons: current.map(|current| match current.has_buttons {
                true => InlineButtons::Enabled,
                false => InlineButtons::Available { channel: current.id.clone() },
            }),
            reasoning_tags: openclaw_models::thinking::uses_tags(first.model.provider()),
            reasoning: reasoning(None, &session.entry),
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
                channel: Some(channel.to_owned()),
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
            sandbox: sandbox::report(settings, agent, sandbox),
            bootstrap_max_chars: usize::try_from(agent.bootstrap_max_chars).ok(),
        };
        let skills = if mode == PromptMode::Full { skills.report.clone() } else { SkillsReport::default() };
        let report = built.report(now_ms(), frame, files, skills, tools.specs());
        (built.text.into(), report)
    }
}

fn aliases(settings: &Settings) -> Vec<(String, String)> {
    let names = ModelNames::new(&settings.models.listed);
    names.aliases().map(|(alias, model)| (alias.to_owned(), model.to_string())).collect()
}

fn heartbeat_prompt(agent: &ResolvedAgent, settings: &Settings) -> Option<String> {
    agent.is_default.then(|| settings.config.heartbeat_of(&agent.id).prompt_text().to_owned())
}
