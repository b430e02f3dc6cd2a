//! The names of the tools that the policy leaves to a run.

use openclaw_agent::tool_policy::Candidate;
use openclaw_config::settings::ToolPolicy;

use crate::tool_access::{self, RunOf};

/// The names that pass every step of the policy, in the order in which a model is offered them.
pub(super) fn allowed(run: RunOf<'_>, [group, sandbox]: [Option<ToolPolicy>; 2]) -> Vec<String> {
    let tools: Vec<Candidate<'_>> = openclaw_tools::built_in().map(Candidate::from).collect();
    let selection = tool_access::select(run, &tools, group, sandbox);
    for warning in &selection.warnings {
        tracing::warn!(agent = %run.agent.id, %warning, "tool policy");
    }
    selection.names().map(str::to_owned).collect()
}
