//! Findings about the config. It is reported, never written.

use openclaw_agent::hooks::not_loaded;
use openclaw_config::gateway_options::{GatewayFlags, gateway_options};
use openclaw_config::settings::{GatewayMode, MemoryBackend};
use openclaw_config::{Config, ConfigIssueKind, ExposedState, Issue, exposed_state};
use openclaw_models::ModelSettings;
use openclaw_models::catalog::Catalog;
use openclaw_models::select::fallbacks_left_out;
use openclaw_protocol::AgentId;
use openclaw_protocol::params::memory::AgentMemoryStatus;
use openclaw_runtime::memory::{NoMemory, qmd_program};
use openclaw_runtime::tool_access::unknown_names;
use openclaw_sessions::checkup::{Finding, Severity};

use super::super::memory;
use super::unknown_keys;
use crate::client::{GatewayTarget, TargetFlags};
use crate::context::{CliContext, Mistakes};
use crate::output;

/// Finding about a fault that keeps a gateway from starting, if there is one.
pub(super) fn of(context: &CliContext) -> Option<Finding> {
    if let Some((id, message)) = unusable(context) {
        return Some(Finding { id, severity: Severity::Error, message, repairs: Vec::new() });
    }
    let (id, severity, message) = match unset_variables(context) {
        Some(message) => ("config.variables", Severity::Warning, message),
        None => match remote(context) {
            Some(message) => ("config.remote", Severity::Error, message),
            None => ("config.gateway", Severity::Error, refused(context)?),
        },
    };
    Some(Finding { id, severity, message, repairs: Vec::new() })
}

/// Findings about settings that are valid and do something else than they seem to.
pub(super) fn warnings(context: &CliContext) -> impl Iterator<Item = Finding> {
    let warnings = context.loaded.snapshot.warnings.iter();
    warnings.map(|warning| Finding {
        id: "config.warning",
        severity: Severity::Warning,
        message: warning.line(),
        repairs: Vec::new(),
    })
}

/// Reports fallback models that no run would ask.
pub(super) fn fallbacks(context: &CliContext) -> impl Iterator<Item = Finding> {
    let settings = ModelSettings::from(&*context.config_or_default());
    let left_out = fallbacks_left_out(&settings, &Catalog::new(&settings));
    left_out.into_iter().map(|message| Finding {
        id: "models.fallback",
        severity: Severity::Warning,
        message,
        repairs: Vec::new(),
    })
}

/// Reports workspaces that expose the gateway's state to tools, and names in tool policies that no tool has.
pub(super) fn of_tools(context: &CliContext) -> Vec<Finding> {
    let config = context.config_or_default();
    let exposed = exposed_state(&config).into_iter();
    let exposed = exposed.map(|found| ("config.workspace", format!("{found} {}", ExposedState::REMEDY)));
    let unknown = unknown_names(&config).into_iter().map(|name| ("config.tools", name.to_string()));
    let finding = |(id, message)| Finding { id, severity: Severity::Warning, message, repairs: Vec::new() };
    exposed.chain(unknown).map(finding).collect()
}

/// Reports hooks that are on and can't be loaded.
pub(super) fn hooks(context: &CliContext) -> impl Iterator<Item = Finding> {
    not_loaded(&context.config_or_default()).into_iter().map(|problem| Finding {
        id: "config.hooks",
        severity: Severity::Warning,
        message: format!("Hook not loaded: {}: {}", problem.path.display(), problem.text),
        repairs: Vec::new(),
    })
}

/// Reports agents whose memory would be one file, and providers and programs of memory that can't be used.
pub(super) fn of_memory(context: &CliContext) -> Vec<Finding> {
    let config = context.config_or_default();
    let agents: Vec<AgentId> =
        config.agent_ids().into_iter().filter(|agent| config.memory_off(agent).is_none()).collect();
    let shared = agents.iter().find_map(|agent| {
        let other = config.agent_with_same_memory(agent)?;
        let reason = NoMemory::SharedStore { agent: agent.clone(), other };
        Some(format!("Memory is not searched: {reason}."))
    });
    let finding = |(id, severity, message)| Finding { id, severity, message, repairs: Vec::new() };
    let shared = shared.map(|message| ("memory.store", Severity::Error, message));
    let found = memory::status_here(context, &agents, false, false).unwrap_or_default();
    let wordy = found.agents.into_iter().filter_map(|AgentMemoryStatus { agent_id, status, .. }| {
        let is_named = !matches!(status.requested_provider.as_str(), "auto" | "none");
        let lacks = is_named && status.vector.enabled && !status.vector.available;
        let notes = status.notes.join(" ").replace('\n', " ");
        lacks
            .then(|| ("memory.embeddings", Severity::Warning, format!("Memory of agent {agent_id}: {notes}")))
    });
    shared.into_iter().chain(wordy).map(finding).chain(missing_qmd(&config)).collect()
}

fn missing_qmd(config: &Config) -> Option<Finding> {
    let is_asked = |agent: &AgentId| config.memory_off(agent).is_none();
    let is_chosen = config.memory.backend == MemoryBackend::Qmd && config.agent_ids().iter().any(is_asked);
    let reason = if is_chosen { qmd_program(config).err()? } else { return None };
    let message =
        format!("memory.backend is qmd, and the index of this program is searched in its place: {reason}.");
    Some(Finding { id: "memory.qmd", severity: Severity::Warning, message, repairs: Vec::new() })
}

/// Returns a sentence about variables that the config names and that are not set here. The service may have them.
fn unset_variables(context: &CliContext) -> Option<String> {
    let error = context.loaded.config().err()?;
    let list: Vec<&str> = error.issues.iter().map(|issue| issue.message.as_str()).collect();
    Some(format!("{}. A gateway that is started from here does not start without them.", list.join("; ")))
}

/// Reason why the config can't be used: there is none, or it has mistakes.
fn unusable(context: &CliContext) -> Option<(&'static str, String)> {
    let snapshot = &context.loaded.snapshot;
    let path = snapshot.path.display();
    if !snapshot.exists {
        let setup = context.hint_command("openclaw setup");
        return Some(("config.missing", format!("Missing config: run {setup} first. It makes {path}.")));
    }
    if context.loaded.config_for_reading().is_ok() {
        return None;
    }
    let Mistakes { issues, moved } = Mistakes::of(&snapshot.issues);
    let lines: String =
        issues.iter().map(|issue| format!("\n  - {}", output::one_line(&issue.line()))).collect();
    let moved = moved.map(|told| format!(" {told}")).unwrap_or_default();
    let id = if snapshot.is_parsable() { "config.invalid" } else { "config.unreadable" };
    let is_unknown = |issue: &Issue| issue.kind == ConfigIssueKind::UnknownKey;
    let fix = match unknown_keys::told(context).filter(|_| snapshot.is_parsable()) {
        Some(told) if issues.iter().all(|issue| is_unknown(issue)) => told,
        Some(told) => format!("{told} Fix the rest by hand."),
        None => format!("Fix it by hand{}.", context.or_put_back()),
    };
    let message = format!(
        "The config {path} cannot be used and is left as it is:{lines}\n{fix}{moved} Until then stores and transcripts are not \
         looked at, because it says where they are.",
    );
    Some((id, message))
}

/// Reason why no command reaches the gateway of another machine.
fn remote(context: &CliContext) -> Option<String> {
    let target =
        GatewayTarget::of(&context.config_or_default(), context.env(), &TargetFlags::default()).ok()?;
    let note = target.note.as_ref()?;
    let fix = target.misconfigured(context).and_then(|failure| failure.hint).unwrap_or_default();
    Some(format!("No command reaches a gateway: {note}. {fix}"))
}

/// Settings with which a gateway of this host does not start.
pub(super) fn refused(context: &CliContext) -> Option<String> {
    let config = context.config_or_default();
    if config.gateway.mode == Some(GatewayMode::Remote) {
        return None;
    }
    let refusal = gateway_options(&config, context.env(), &GatewayFlags::default()).err()?;
    Some(refusal.to_string().replace('\n', " "))
}
