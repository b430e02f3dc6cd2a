//! Rights of a message, settled when it is accepted: those of its caller, or those it carries from
//! its cause, limited by its session and by the maker of the button that says it.

use openclaw_config::settings::{Config, ToolPolicy};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::{KeyRules, SessionEntry};
use openclaw_tools::sandbox::SandboxSettings;

use super::elevated::{self, Elevation};
use super::groups::{self, Spawner};
use super::{Maker, Rights, Trust};
use crate::caller::{Caller, CallerIdentity, CallerRights};

/// The session of a message.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a> {
    /// The settings in force.
    pub config: &'a Config,
    /// Rules for the keys of sessions.
    pub rules: &'a KeyRules,
    /// Key of the session.
    pub key: &'a SessionKey,
    /// The agent whose run it is.
    pub agent: &'a AgentId,
    /// Row of the session; the default row if the session does not exist yet.
    pub entry: &'a SessionEntry,
    /// Rights that it was started with, if it is a sub-agent's session and they are known.
    pub started_with: Option<&'a Rights>,
}

/// Facts of a request that its rights depend on.
#[derive(Debug, Clone, Copy, Default)]
pub struct RightsFacts<'a> {
    /// Rights of the run that caused the request, if one did.
    pub carried: Option<&'a Rights>,
    /// Caller of the request.
    pub caller: Caller<'a>,
    /// Maker of the button, if the press of a button says it.
    pub button: Option<&'a Maker>,
}

/// Settles the rights of a message's run.
pub fn settled(asked: RightsFacts<'_>, within: Within<'_>) -> Rights {
    let own = match asked.carried {
        Some(carried) => carried.clone(),
        None => of_caller(asked, within),
    };
    let own = match asked.button {
        None => own,
        Some(Maker::Known(rights)) => own.least(rights),
        Some(Maker::Unknown) => own.least(&of_nobody(within)),
    };
    // A sender in the group already has the tools that the group gives them.
    let is_from_group = asked.caller.sender().is_some_and(|sender| !sender.is_direct);
    let tools = if is_from_group { Vec::new() } else { of_group(asked, within) };
    limited(&own, tools, within)
}

/// Returns the rights of the owner for a tool call without a run. `tools` are the policies of the session's group.
pub fn of_owner(tools: Vec<ToolPolicy>, within: Within<'_>) -> Rights {
    limited(&Rights::ALL, tools, within)
}

/// Returns the rights of a run that nobody asks for, such as one woken by the end of a command: anybody in the session may have caused it.
pub fn of_nobody(within: Within<'_>) -> Rights {
    settled(RightsFacts::default(), within)
}

/// Returns the same rights, confined to a sandbox if the current settings confine the session to one.
pub fn held(
    rights: Rights,
    (config, rules): (&Config, &KeyRules),
    (key, agent): (&SessionKey, &AgentId),
) -> Rights {
    let is_main = rules.is_main(key) && rules.agent_of(key) == *agent;
    if SandboxSettings::hold(config, agent, is_main) { rights.in_sandbox() } else { rights }
}

fn limited(asked: &Rights, tools: Vec<ToolPolicy>, within: Within<'_>) -> Rights {
    let in_group = asked.least(&Rights { tools, ..Rights::ALL });
    let limited = match within.started_with {
        Some(own) => in_group.least(own),
        None => in_group,
    };
    held(limited, (within.config, within.rules), (within.key, within.agent))
}

fn of_caller(asked: RightsFacts<'_>, within: Within<'_>) -> Rights {
    let Within { config, rules, key, agent, .. } = within;
    let caller = asked.caller;
    let CallerRights { is_owner, is_let_in, .. } = caller.rights;
    let trust = match (is_owner, is_let_in) {
        (true, _) => Trust::Owner,
        (false, true) => Trust::OnBehalf,
        (false, false) => Trust::Other,
    };
    Rights {
        trust,
        elevated: elevated::is_allowed(config, Elevation { caller, agent, key }),
        host: true,
        memory: is_owner || rules.is_main(key),
        tools: caller.sender().map(|sender| groups::of_sender(config, sender)).unwrap_or_default(),
    }
}

/// Returns the policies of the session's group, for a request that was not said in the group.
fn of_group(asked: RightsFacts<'_>, within: Within<'_>) -> Vec<ToolPolicy> {
    let Within { config, key, entry, started_with, .. } = within;
    let is_inherited = started_with.is_some() || asked.carried.is_some();
    let spawner = if is_inherited { Spawner::Counted } else { Spawner::Counts };
    match asked.caller.identity {
        CallerIdentity::Gateway => groups::of_everybody(config, key, entry, spawner),
        CallerIdentity::Program | CallerIdentity::Client | CallerIdentity::Sender(_) => {
            groups::of_session(config, key, entry, spawner)
        }
    }
}
