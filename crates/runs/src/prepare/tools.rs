//! The tools of a run, and how commands run for it.

use std::sync::Arc;

use openclaw_agent::Toolbox;
use openclaw_agent::place::off_limits::OffLimits;
use openclaw_agent::skills::{self, Snapshot};
use openclaw_channels::Address;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::Exec;
use openclaw_journal::caller::{Caller, CallerIdentity, CallerRights, Right};
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::{elevated, settle};
use openclaw_protocol::SessionKey;
use openclaw_runtime::session_exec;
use openclaw_runtime::setup::Settings;
use openclaw_runtime::tool_access::RunOf;
use openclaw_tools::sandbox::ActiveSandbox;
use openclaw_tools::{ExecSettings, ImageSetup, Setup, SkillBins, WebSettings, apply_patch, toolbox};

use crate::not_begun::NotBegun;
use crate::runner::Runner;
use crate::secrets::Shield;
use crate::session::RunSession;
use crate::{blocked_tools, sandbox, tools};
use openclaw_commands::CommandContext;

/// Origin of a run's message, and its wishes about commands.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunOrigin<'a> {
    /// Request of the run; `None` if there is none, and the tools of the session are shown.
    pub(crate) request: Option<&'a RunRequest>,
    /// Address of messages if there is no request.
    pub(crate) at: Option<&'a Address>,
    /// Inputs of the `image` tool; `None` if no model looks at images.
    pub(crate) image: Option<ImageSetup>,
}

impl Runner {
    /// Returns the tools that the policy leaves for this model.
    pub(crate) fn tools(
        &self,
        session: &RunSession,
        settings: &Settings,
        (provider, model): (&str, &str),
        (shield, skills, sandbox): (&Shield, &Snapshot, Option<&Arc<ActiveSandbox>>),
        RunOrigin { request, at, image }: RunOrigin<'_>,
    ) -> Toolbox {
        let agent = &session.agent;
        let hints = request
            .filter(|request| request.caller().may(Right::Approve))
            .and_then(|it| it.to_gateway().hints());
        let settled = session_exec::exec_of(&session.entry, &agent.exec);
        let wished = match hints.and_then(|hints| hints.exec.as_ref()) {
            Some(wish) => session_exec::exec_with(wish, &settled),
            None => settled,
        };
        let mut exec = self.exec_settings(settings, agent, &session.key, &wished, shield);
        exec.skill_bins = Self::skill_bins(settings);
        // A client that calls a tool without a model is a person too.
        let client =
            Caller { identity: CallerIdentity::Client, rights: CallerRights::of_client(false, false) };
        let caller = request.map_or(client, RunRequest::caller);
        let asked = elevated::Elevation { caller, agent: &agent.id, key: &session.key };
        let wish = hints.and_then(|hints| hints.elevated);
        exec.elevated = elevated::of(&settings.config, asked, &session.entry, wish);
        if !session.rights.may_elevate() {
            exec.elevated.refusal.get_or_insert_with(|| elevated::refusal_of_rights(asked));
        }
        exec.overlay = Arc::clone(&skills.overlay);
        exec.may_wake = request.is_none_or(|request| self.may_wake(request, session, settings));
        let groups = session.rights.tool_policies();
        let held = sandbox::policy(settings, agent, sandbox.map(Arc::as_ref));
        let run = RunOf {
            config: &settings.config,
            agent,
            provider,
            model,
            session: &session.key,
            is_owner: session.rights.are_owners(),
            has_image_model: image.is_some(),
        };
        let mut allowed = tools::allowed(run, groups, held);
        sandbox::without_writing(sandbox.map(Arc::as_ref), &mut allowed);
        if sandbox.is_some() {
            exec.outside_scope = Some(std::mem::replace(&mut exec.scope, format!("sandbox:{}", session.key)));
        }
        exec.sandbox = sandbox.cloned();
        exec.may_background = allowed.iter().any(|name| name == "process");
        let message = self.message_setup(&settings.config, request.map_or(at, RunRequest::conversation));
        let apply_patch = apply_patch::is_offered(&agent.exec.apply_patch, provider, model);
        let web =
            WebSettings::new(&settings.config.tools.web, settings.config.environment(), self.web.clone());
        let confinement = sandbox::confinement(sandbox.map(Arc::as_ref));
        let has_gateway = self.deps.surroundings.as_ref().is_some_and(|around| around.control().is_some());
        let absent = sandbox.map(|held| blocked_tools::explained(run, groups, held, &allowed));
        let off_limits = OffLimits::of(&settings.config);
        let setup = Setup { confinement, exec, message, apply_patch, web, image, has_gateway, off_limits };
        toolbox(setup, &allowed).explaining(absent.unwrap_or_default())
    }

    /// True if a run woken in the session would have no rights that this run lacks, as it is shown
    /// the output of this run's commands.
    fn may_wake(&self, request: &RunRequest, session: &RunSession, settings: &Settings) -> bool {
        // A sender in the session has at least the rights of a woken run. A request from elsewhere may have fewer.
        if request.source.provenance().is_none() {
            return true;
        }
        let started_with = self.child_runs.rights_of(&session.key);
        let of_session = (&session.key, &session.agent.id);
        let woken =
            settle::of_nobody(self.within(settings, of_session, &session.entry, started_with.as_ref()));
        session.rights.cover(&woken)
    }

    /// Returns the settings by which commands of an agent run, whoever gives them.
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
        exec.scope = format!("session:{}", key.as_str());
        exec.owner = Some(key.clone());
        exec
    }

    /// Returns the settings for a command that a person gives in a chat.
    pub fn exec_of_person(&self, context: &CommandContext<'_>) -> Result<ExecSettings, NotBegun> {
        let CommandContext { settings, agent, key, .. } = context;
        let shield = self.secrets.shield(settings, Vec::new(), self.secrets.of_devices())?;
        let mut exec = self.exec_settings(settings, agent, key, &agent.exec, &shield);
        exec.may_background = true;
        Ok(exec)
    }

    /// A text for a chat, without the secrets that this gateway knows.
    pub fn redacted(&self, settings: &Arc<Settings>, text: &str) -> Result<String, NotBegun> {
        let shield = self.secrets.shield(settings, Vec::new(), self.secrets.of_devices())?;
        Ok(shield.redactor.redact_text(text))
    }

    /// Finds the programs that skills name which no agent has written.
    fn skill_bins(settings: &Settings) -> SkillBins {
        let config = Arc::clone(&settings.config);
        SkillBins::by(move || skills::status::trusted_bins(&config))
    }
}
