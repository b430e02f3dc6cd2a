//! The names of the tools that the policy leaves to a run.

use openclaw_agent::tool_policy::Candidate;
use openclaw_config::settings::ToolPolicy;
use openclaw_runtime::tool_access::{self, RunOf};

/// Returns the names that pass every step of the policy, in the order in which a model is offered
/// them.
pub(super) fn allowed(run: RunOf<'_>, groups: &[ToolPolicy], sandbox: Option<ToolPolicy>) -> Vec<String> {
    let tools: Vec<Candidate<'_>> = openclaw_tools::built_in().map(Candidate::from).collect();
    tool_access::select(run, &tools, groups, sandbox).names().map(str::to_owned).collect()
}
