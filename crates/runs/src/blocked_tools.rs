//! Explanations of tools that a run would have if it were not in a sandbox: they name the rule that
//! took the tool away, and the key that gives it back. The words are those of OpenClaw 2026.2.9.

use openclaw_agent::tool_policy::{self, Candidate, PolicyCaller, PolicyStep};
use openclaw_config::settings::{ToolPolicy, WorkspaceAccess};
use openclaw_protocol::SessionKey;
use openclaw_runtime::tool_access::{self, RunOf, WRITING_TOOLS};
use openclaw_tools::CATALOGUE;
use openclaw_tools::sandbox::{ActiveSandbox, SandboxPolicy, Source};

/// Returns the tools that only the sandbox keeps from a run, each with the text for a call of it.
pub(super) fn explained(
    run: RunOf<'_>,
    groups: &[ToolPolicy],
    sandbox: &ActiveSandbox,
    offered: &[String],
) -> Vec<(String, String)> {
    let tools: Vec<Candidate<'_>> = openclaw_tools::built_in().map(Candidate::from).collect();
    let free = tool_access::select(run, &tools, groups, None);
    let policy = SandboxPolicy::of(run.config, &run.agent.id);
    let mode = sandbox.settings().mode.as_str();
    let rules = openclaw_sessions::SessionSettings::from(run.config).key_rules();
    let main = rules.main(&run.agent.id);
    let blocked = free.names().filter(|name| !offered.iter().any(|offered| offered == name));
    let told = blocked.filter_map(|name| {
        let by_policy = told(name, &policy, mode, run.session, &main);
        let is_read_only = sandbox.settings().access == WorkspaceAccess::ReadOnly;
        let told = by_policy.or((is_read_only && WRITING_TOOLS.contains(&name)).then(|| read_only(name)))?;
        Some((name.to_owned(), told))
    });
    told.collect()
}

/// Explains the removal of a tool; `None` if the lists let it pass.
fn told(
    tool: &str,
    policy: &SandboxPolicy,
    mode: &str,
    session: &SessionKey,
    main: &SessionKey,
) -> Option<String> {
    let lists = policy.lists();
    let denied = removes(tool, ToolPolicy { allow: None, ..lists.clone() });
    let not_allowed = removes(tool, ToolPolicy { deny: None, ..lists });
    let mut reasons = Vec::new();
    let mut lines = Vec::new();
    if denied {
        reasons.push("deny list");
        lines.push(format!("- Remove \"{tool}\" from {}.", key(policy.deny_source, "deny")));
    }
    if not_allowed {
        reasons.push("allow list");
        let key = key(policy.allow_source, "allow");
        lines.push(format!("- Add \"{tool}\" to {key} (or set it to [] to allow all)."));
    }
    if reasons.is_empty() {
        return None;
    }
    if mode == "non-main" {
        lines.push(format!("- Use main session key (direct): {main}"));
    }
    Some(format!(
        "Tool \"{tool}\" blocked by sandbox tool policy (mode={mode}).\nSession: {session}\nReason: {}\nFix:\n\
         - agents.defaults.sandbox.mode=off (disable sandbox)\n{}\n- See: openclaw sandbox explain --session {session}",
        reasons.join(" + "),
        lines.join("\n")
    ))
}

fn read_only(tool: &str) -> String {
    format!(
        "Tool \"{tool}\" is not available: this sandbox may only read its workspace (workspaceAccess=ro).\nFix:\n\
         - agents.defaults.sandbox.workspaceAccess=none (a workspace of its own) or rw (the agent's own)"
    )
}

fn removes(tool: &str, policy: ToolPolicy) -> bool {
    let candidate =
        Candidate { name: tool, plugin: None, owner_only: false, for_subagents: true, needs: None };
    let step = PolicyStep { label: "tools.sandbox.tools", policy };
    tool_policy::select(&CATALOGUE, &[candidate], PolicyCaller::OWNER, &[step]).names().next().is_none()
}

fn key(source: Source, list: &str) -> String {
    match source {
        Source::Agent => format!("agents.list[].tools.sandbox.tools.{list}"),
        Source::Global | Source::Default => format!("tools.sandbox.tools.{list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_tool_is_told_with_the_keys_that_give_it_back() {
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let said = |tool: &str, allow: &[&str], deny: &[&str], mode: &str| {
            let policy = SandboxPolicy {
                allow: strings(allow),
                deny: strings(deny),
                allow_source: Source::Agent,
                deny_source: Source::Default,
            };
            let key = |text: &str| text.parse::<SessionKey>().unwrap();
            told(tool, &policy, mode, &key("agent:main:side"), &key("agent:main:main"))
        };
        const HEAD: &str = "Tool \"exec\" blocked by sandbox tool policy";
        const OFF: &str = "Fix:\n- agents.defaults.sandbox.mode=off (disable sandbox)";
        const SEE: &str = "- See: openclaw sandbox explain --session agent:main:side";
        const ADD: &str =
            "- Add \"exec\" to agents.list[].tools.sandbox.tools.allow (or set it to [] to allow all).";
        const REMOVE: &str = "- Remove \"exec\" from tools.sandbox.tools.deny.";
        const MAIN: &str = "- Use main session key (direct): agent:main:main";
        for (allow, deny, mode, expect) in [
            (
                &["read"][..],
                &[][..],
                "all",
                Some(format!(
                    "{HEAD} (mode=all).\nSession: agent:main:side\nReason: allow list\n{OFF}\n{ADD}\n{SEE}"
                )),
            ),
            (
                &["*"],
                &["group:runtime"],
                "non-main",
                Some(format!(
                    "{HEAD} (mode=non-main).\nSession: agent:main:side\nReason: deny list\n{OFF}\n{REMOVE}\n{MAIN}\n{SEE}"
                )),
            ),
            (
                &["read"],
                &["ex*"],
                "all",
                Some(format!(
                    "{HEAD} (mode=all).\nSession: agent:main:side\nReason: deny list + allow list\n{OFF}\n{REMOVE}\n{ADD}\n{SEE}"
                )),
            ),
            (&[], &[], "all", None),
            (&["exec"], &["read"], "all", None),
        ] {
            assert_eq!(said("exec", allow, deny, mode), expect);
        }
    }
}
