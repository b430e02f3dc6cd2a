//! Tools of a run, and the reasons for the missing ones (spec `tools.md` §8.2). Used by runs, and
//! by the explanation that works without a gateway.

use std::collections::BTreeMap;

mod unknown_names;

use openclaw_agent::tool_policy::{self, Candidate, PolicyCaller, PolicyStep, Removal, Selection};
use openclaw_channels::Platforms;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::{Config, ToolPolicy, WorkspaceAccess};
use openclaw_journal::rights::groups::{self, Spawner};
use openclaw_protocol::SessionKey;
use openclaw_sessions::{SessionEntry, SessionSettings};
use openclaw_tools::sandbox::{SandboxPolicy, SandboxSettings};
use openclaw_tools::{Absence, CATALOGUE, Conditions, Confinement, absences, apply_patch, memory_absence};

pub use unknown_names::{UnknownName, unknown_names};

/// Tools that a sandbox which may only read does not have.
pub const WRITING_TOOLS: [&str; 3] = ["write", "edit", "apply_patch"];

/// A run, as far as the choice of its tools goes.
#[derive(Debug, Clone, Copy)]
pub struct RunOf<'a> {
    /// The config in force.
    pub config: &'a Config,
    /// Agent of the run.
    pub agent: &'a ResolvedAgent,
    /// The model's provider.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// The session.
    pub session: &'a SessionKey,
    /// True if the owner asked for it.
    pub is_owner: bool,
    /// True if a model can be asked about images ([`openclaw_models::select::image_choice`]).
    pub has_image_model: bool,
}

/// The config path of a step.
type Label = &'static str;

/// Config path of a group's tools.
const GROUP: Label = "channels.*.groups.*.tools";

/// Config path of a sandbox's tools.
const SANDBOX: Label = "tools.sandbox.tools";

/// Availability of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The run has it.
    Offered,
    /// This gateway can't offer the tool there.
    Absent(Absence),
    /// A rule of the policy removed it.
    Removed(Removal),
}

/// Entry of the explanation for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAccess {
    /// Name of the tool.
    pub name: &'static str,
    /// Availability in the run.
    pub access: Access,
}

/// Explanation of a run's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Every tool that has a meaning by name, in the order in which a model is offered them.
    pub tools: Vec<ToolAccess>,
}

/// Tells of each tool whether a run of a session has it. `entry` is the session as it is stored; one that does not exist yet says nothing.
pub fn explain(run: RunOf<'_>, entry: &SessionEntry, platforms: &Platforms) -> Explanation {
    let groups = groups::of_session(run.config, run.session, entry, Spawner::Counts);
    let tools: Vec<Candidate<'_>> = CATALOGUE.facts().map(Candidate::from).collect();
    let is_held = is_held(run);
    let held = is_held.then(|| SandboxPolicy::of(run.config, &run.agent.id).lists());
    let Selection { verdicts } = select(run, &tools, &groups, held);
    let conditions = Conditions {
        has_sandbox: is_held,
        confinement: &Confinement::Host,
        has_channel: !platforms.usable(run.config).is_empty(),
        apply_patch: apply_patch::absence(&run.agent.exec.apply_patch, run.provider, run.model),
        web: &run.config.tools.web,
        has_image_model: run.has_image_model,
        has_gateway: true,
        memory: memory_absence(run.agent.memory_off.as_ref()),
    };
    let access = |absence, removed| match (absence, removed) {
        // No rule brings it back.
        (Some(Absence::NotBuiltIn), _) => Access::Absent(Absence::NotBuiltIn),
        (_, Some(removal)) => Access::Removed(removal),
        (Some(absence), None) => Access::Absent(absence),
        (None, None) => Access::Offered,
    };
    let is_read_only =
        is_held && SandboxSettings::of(run.config, &run.agent.id).access == WorkspaceAccess::ReadOnly;
    let kept_from_writing =
        |name: &str| (is_read_only && WRITING_TOOLS.contains(&name)).then_some(Absence::ReadOnlySandbox);
    let tools = absences(&conditions)
        .zip(verdicts)
        .map(|((facts, absence), verdict)| ToolAccess {
            name: facts.name,
            access: access(absence.or_else(|| kept_from_writing(facts.name)), verdict.removed),
        })
        .collect();
    Explanation { tools }
}

/// True if runs of the session are held to a sandbox.
fn is_held(run: RunOf<'_>) -> bool {
    let rules = SessionSettings::from(run.config).key_rules();
    let is_main = rules.is_main(run.session) && rules.agent_of(run.session) == run.agent.id;
    SandboxSettings::hold(run.config, &run.agent.id, is_main)
}

/// Runs the chain of the policy over some tools.
pub fn select<'a>(
    run: RunOf<'_>,
    tools: &[Candidate<'a>],
    groups: &[ToolPolicy],
    sandbox: Option<ToolPolicy>,
) -> Selection<'a> {
    let caller = PolicyCaller { is_owner: run.is_owner, is_subagent: run.session.is_subagent() };
    tool_policy::select(&CATALOGUE, tools, caller, &steps(run, groups, sandbox))
}

/// Steps of the policy as configured, in the order of the specification. Each narrows the result of
/// the ones before.
fn steps(run: RunOf<'_>, groups: &[ToolPolicy], sandbox: Option<ToolPolicy>) -> Vec<PolicyStep> {
    let RunOf { config, agent, provider, model, session, is_owner: _, has_image_model: _ } = run;
    let by = |policies: &BTreeMap<String, ToolPolicy>| {
        let keys: Vec<&str> = policies.keys().map(String::as_str).collect();
        policies.get(tool_policy::provider_key(&keys, provider, model)?).cloned()
    };
    let (shared, shared_by) = (&config.tools.policy, by(&config.tools.by_provider));
    let (own, own_by) = (&agent.tool_policy, by(&agent.tool_policy_by_provider));
    // Profile and `alsoAllow` are each the agent's, else everyone's.
    let profile_of = |own: Option<(Label, &ToolPolicy)>, shared: Option<(Label, &ToolPolicy)>| {
        let both = || own.into_iter().chain(shared);
        let (label, profile) = both().find_map(|(label, policy)| Some((label, policy.profile?)))?;
        let also_allow = both().find_map(|(_, policy)| policy.also_allow.clone());
        let policy = ToolPolicy { profile: Some(profile), also_allow, ..ToolPolicy::default() };
        Some(PolicyStep { label, policy })
    };
    let mut steps = Vec::new();
    steps.extend(profile_of(Some(("agents.list[].tools.profile", own)), Some(("tools.profile", shared))));
    steps.extend(profile_of(
        own_by.as_ref().map(|policy| ("agents.list[].tools.byProvider.profile", policy)),
        shared_by.as_ref().map(|policy| ("tools.byProvider.profile", policy)),
    ));
    steps.push(list_step("tools", shared));
    steps.extend(shared_by.iter().map(|policy| list_step("tools.byProvider", policy)));
    steps.push(list_step("agents.list[].tools", own));
    steps.extend(own_by.iter().map(|policy| list_step("agents.list[].tools.byProvider", policy)));
    steps.extend(groups.iter().map(|policy| PolicyStep { label: GROUP, policy: policy.clone() }));
    steps.extend(sandbox.map(|policy| PolicyStep { label: SANDBOX, policy }));
    if session.is_subagent() {
        steps.push(list_step("tools.subagents.tools", &config.tools.subagents.tools));
    }
    steps
}

/// The lists alone.
fn list_step(label: Label, policy: &ToolPolicy) -> PolicyStep {
    PolicyStep { label, policy: ToolPolicy { profile: None, ..policy.clone() } }
}

#[cfg(test)]
mod tests;
