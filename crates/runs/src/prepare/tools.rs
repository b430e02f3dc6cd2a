//! The tools of a run, and how commands run for it.

use std::sync::Arc;

use openclaw_agent::Toolbox;
use openclaw_agent::place::off_limits::OffLimits;
use openclaw_agent::skills::{self, Snapshot};
use openclaw_channels::{Address, Platforms};
use openclaw_journal::caller::{Caller, CallerIdentity, CallerRights, Right};
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::{elevated, settle};
use openclaw_journal::source::RequestSource;
use openclaw_runtime::session_exec;
use openclaw_runtime::setup::Settings;
use openclaw_runtime::surroundings::Surroundings;
use openclaw_runtime::tool_access::RunOf;
use openclaw_tools::sandbox::ActiveSandbox;
use openclaw_tools::{ImageSetup, Setup, SkillBins, WebSettings, WebShared, Writes, apply_patch, toolbox};

use super::exec::CommandSetup;
use crate::secrets::Shield;
use crate::session::RunSession;
use crate::session_rights::SessionRights;
use crate::{blocked_tools, message_tool, sandbox, tools};

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

/// Parts for making the tools of runs.
pub(crate) struct ToolMaker {
    commands: Arc<CommandSetup>,
    rights: Arc<SessionRights>,
    platforms: Arc<Platforms>,
    /// Services of the gateway; `None` if there is no gateway.
    surroundings: Option<Arc<dyn Surroundings>>,
    /// State that the web tools of all runs share.
    web: WebShared,
}

impl ToolMaker {
    pub(crate) fn new(
        commands: Arc<CommandSetup>,
        rights: Arc<SessionRights>,
        platforms: Arc<Platforms>,
        surroundings: Option<Arc<dyn Surroundings>>,
    ) -> Self {
        Self { commands, rights, platforms, surroundings, web: WebShared::default() }
    }

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
        let mut exec = self.commands.settings_for(settings, agent, &session.key, &wished, shield);
        exec.skill_bins = skill_bins(settings);
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
        let message = message_tool::setup(
            &self.platforms,
            &settings.config,
            request.map_or(at, RunRequest::conversation),
        );
        let apply_patch = apply_patch::is_offered(&agent.exec.apply_patch, provider, model);
        let web =
            WebSettings::new(&settings.config.tools.web, settings.config.environment(), self.web.clone());
        let confinement = sandbox::confinement(sandbox.map(Arc::as_ref));
        let has_gateway = self.surroundings.as_ref().is_some_and(|around| around.control().is_some());
        let absent = sandbox.map(|held| blocked_tools::explained(run, groups, held, &allowed));
        let off_limits = OffLimits::of(&settings.config);
        let is_flush = request.is_some_and(|request| matches!(request.source, RequestSource::MemoryFlush));
        let writes = if is_flush { Writes::AddToMemory } else { Writes::Whole };
        let setup = Setup {
            confinement,
            exec,
            message,
            apply_patch,
            web,
            image,
            has_gateway,
            writes,
            memory_off: agent.memory_off.clone(),
            off_limits,
        };
        toolbox(setup, &allowed).explaining(absent.unwrap_or_default())
    }

    /// True if a run woken in the session would have no rights that this run lacks, as it is shown
    /// the output of this run's commands.
    fn may_wake(&self, request: &RunRequest, session: &RunSession, settings: &Settings) -> bool {
        // A sender in the session has at least the rights of a woken run. A request from elsewhere may have fewer.
        if request.source.provenance().is_none() {
            return true;
        }
        let started_with = self.rights.started_with(&session.key);
        let of_session = (&session.key, &session.agent.id);
        let woken = settle::of_nobody(self.rights.within(
            settings,
            of_session,
            &session.entry,
            started_with.as_ref(),
        ));
        session.rights.cover(&woken)
    }
}

/// Finds the programs that skills name which no agent has written.
fn skill_bins(settings: &Settings) -> SkillBins {
    let config = Arc::clone(&settings.config);
    SkillBins::by(move || skills::status::trusted_bins(&config))
}
