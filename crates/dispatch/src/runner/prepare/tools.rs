//! The tools of a run, and how commands run for it.

use std::sync::Arc;

use openclaw_agent::Toolbox;
use openclaw_agent::skills::{self, Snapshot};
use openclaw_channels::Address;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::Exec;
use openclaw_protocol::SessionKey;
use openclaw_tools::sandbox::ActiveSandbox;
use openclaw_tools::{ExecSettings, ImageSetup, Setup, SkillBins, WebSettings, apply_patch, toolbox};

use crate::commands::Context;
use crate::request::Request;
use crate::runner::secrets::Shield;
use crate::runner::session::Session;
use crate::runner::{NotBegun, Runner, blocked_tools, elevated, group_tools, protections, sandbox, tools};
use crate::session_tools::invoke::CallerChannel;
use crate::setup::Settings;
use crate::tool_access::{RunOf, sender_of};
use openclaw_agent::tool_policy::Sender;

/// Where the message of a run comes from, and what it says of commands.
#[derive(Clone, Copy, Default)]
pub(in crate::runner) struct Asking<'a> {
    /// What is asked; `None` where nothing is, and the tools of the session are shown.
    pub(in crate::runner) request: Option<&'a Request>,
    /// Where messages go if nothing is asked.
    pub(in crate::runner) at: Option<&'a Address>,
    /// Where a client speaks that calls a tool by itself.
    pub(in crate::runner) caller: Option<&'a CallerChannel>,
    /// What the `image` tool is made from; `None` where no model looks at images.
    pub(in crate::runner) image: Option<ImageSetup>,
}

impl Runner {
    /// The tools that the policy leaves where this model is used.
    pub(in crate::runner) fn tools(
        &self,
        session: &Session,
        settings: &Settings,
        (provider, model): (&str, &str),
        (shield, skills, sandbox): (&Shield, &Snapshot, Option<&Arc<ActiveSandbox>>),
        Asking { request, at, caller, image }: Asking<'_>,
    ) -> Toolbox {
        let agent = &session.agent;
        let origin = request.and_then(|request| request.origin.as_deref());
        let hints = request.filter(|request| request.may_set_guards()).and_then(|it| it.to_gateway().hints());
        let settled = protections::exec_of(&session.entry, &agent.exec);
        let wished = match hints.and_then(|hints| hints.exec.as_ref()) {
            Some(wish) => protections::exec_with(wish, &settled),
            None => settled,
        };
        let mut exec = self.exec_settings(settings, agent, &session.key, &wished, shield);
        exec.skill_bins = Self::skill_bins(settings);
        let by_person = request.is_none_or(Request::is_persons);
        let asker = elevated::Asker { agent: &agent.id, key: &session.key, origin, by_person };
        let wish = hints.and_then(|hints| hints.elevated);
        exec.elevated = elevated::of(&settings.config, asker, &session.entry, wish);
        exec.overlay = Arc::clone(&skills.overlay);
        let group = match caller {
            Some(caller) => {
                group_tools::policy_for_client(&settings.config, &session.key, &session.entry, caller)
            }
            None => group_tools::policy(&settings.config, &session.key, &session.entry, origin),
        };
        let held = sandbox::policy(settings, agent, sandbox.map(Arc::as_ref));
        let run = RunOf {
            config: &settings.config,
            agent,
            provider,
            model,
            session: &session.key,
            sender: request.map_or(Sender::Owner, sender_of),
            has_image_model: image.is_some(),
        };
        let mut allowed = tools::allowed(run, [group.clone(), held]);
        sandbox::without_writing(sandbox.map(Arc::as_ref), &mut allowed);
        if let Some(sandbox) = sandbox {
            exec.scope = sandbox::scope_of(sandbox, agent, &session.key);
            exec.outside_scope = Some(format!("outside:{}", session.key));
        }
        exec.sandbox = sandbox.cloned();
        exec.may_background = allowed.iter().any(|name| name == "process");
        let message = self.message_setup(&settings.config, request.map_or(at, Request::conversation));
        let apply_patch = apply_patch::is_offered(&agent.exec.apply_patch, provider, model);
        let web =
            WebSettings::new(&settings.config.tools.web, settings.config.environment(), self.web.clone());
        let confinement = sandbox::confinement(sandbox.map(Arc::as_ref));
        let has_gateway = self.deps.surroundings.as_ref().is_some_and(|around| around.control().is_some());
        let absent = sandbox.map(|held| blocked_tools::explained(run, group, held, &allowed));
        toolbox(Setup { confinement, exec, message, apply_patch, web, image, has_gateway }, &allowed)
            .explaining(absent.unwrap_or_default())
    }

    /// How commands of an agent run, whoever gives them.
    fn exec_settings(
        &self,
        settings: &Settings,
        agent: &ResolvedAgent,
        key: &SessionKey,
        wished: &Exec,
        shield: &Shield,
    ) -> ExecSettings {
        let mut environment = settings.config.environment().clone();
        for (name, value) in &self.deps.command_variables {
            environment.set(name, value);
        }
        let mut exec = ExecSettings::new(wished, environment);
        exec.approvals = Some(self.deps.approvals_store());
        exec.people = Arc::clone(&self.deps.approvals);
        exec.agent = agent.id.to_string();
        exec.withheld = Arc::clone(&shield.withheld);
        exec.lock = self.deps.command_lock.clone();
        exec.sessions = Arc::clone(&self.deps.command_sessions);
        exec.scope = format!("agent:{}", agent.id);
        exec.owner = Some(key.clone());
        exec
    }

    /// How the command runs that a person gives in a chat.
    pub(crate) fn exec_of_person(&self, context: &Context<'_>) -> Result<ExecSettings, NotBegun> {
        let Context { settings, agent, key, .. } = context;
        let shield = self.secrets.shield(settings, Vec::new(), self.secrets.of_devices())?;
        let mut exec = self.exec_settings(settings, agent, key, &agent.exec, &shield);
        exec.may_background = true;
        Ok(exec)
    }

    /// A text for a chat, without the secrets that this gateway knows.
    pub(crate) fn redacted(&self, settings: &Arc<Settings>, text: &str) -> Result<String, NotBegun> {
        let shield = self.secrets.shield(settings, Vec::new(), self.secrets.of_devices())?;
        Ok(shield.redactor.redact_text(text))
    }

    /// Finds the programs that skills name which no agent has written.
    fn skill_bins(settings: &Settings) -> SkillBins {
        let config = Arc::clone(&settings.config);
        SkillBins::by(move || skills::status::trusted_bins(&config))
    }
}
