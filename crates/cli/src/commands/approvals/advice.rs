//! Advice beside the approvals file: entries that can't do what is meant, and rules that are not
//! enforced.

use std::path::Path;

use openclaw_config::settings::GatewayMode;
use openclaw_config::unheeded_approvals;
use openclaw_protocol::AgentId;
use openclaw_tools::exec_approvals::command_runners::is_command_runner;
use openclaw_tools::exec_approvals::file::ApprovalsFile;
use openclaw_tools::exec_approvals::pattern;

use super::EVERY_AGENT;
use crate::context::CliContext;

/// Programs that run any other. A pattern that matches one of them allows everything.
const SHELLS: [&str; 4] = ["/bin/sh", "/bin/bash", "/usr/bin/env", "/usr/bin/python3"];

/// Warnings about a new entry.
pub(super) fn of_entry(context: &CliContext, agent: &str, pattern: &str) -> Vec<String> {
    let home = context.env().home();
    [no_match(pattern), runs_others(pattern, &home), no_agent(context, agent)].into_iter().flatten().collect()
}

/// Reason why a pattern matches no program.
fn no_match(pattern: &str) -> Option<String> {
    let begins = ["/", "~/", "**", "*/"].iter().any(|start| pattern.starts_with(start));
    let why = if !pattern.contains(['/', '\\', '~']) {
        "it has no path"
    } else if !begins {
        "it does not begin with / or ~/"
    } else if pattern.split('/').any(|part| part == "..") {
        "it has .. in it"
    } else {
        return None;
    };
    Some(format!(
        "Warning: \"{pattern}\" matches no program: {why}. Give the whole path, such as /usr/bin/rg or ~/bin/*."
    ))
}

fn runs_others(pattern: &str, home: &Path) -> Option<String> {
    let program = Path::new(pattern);
    let is_one = pattern.contains('/') && !pattern.contains(['*', '?']) && is_command_runner(program);
    let shell = SHELLS.into_iter().find(|shell| pattern::matches(pattern, Path::new(shell), home));
    let named = if is_one { pattern } else { shell? };
    Some(format!(
        "Warning: {named} runs whatever it is given. With it on the list, every command may run without being asked about."
    ))
}

fn no_agent(context: &CliContext, agent: &str) -> Option<String> {
    if agent == EVERY_AGENT || !context.is_config_readable() {
        return None;
    }
    let config = context.config_or_default();
    let known = config.agent_ids();
    if known.contains(&AgentId::normalize(agent)) {
        return None;
    }
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    Some(format!(
        "Warning: there is no agent \"{agent}\" (there is: {}). The entry holds once there is one.",
        known.join(", ")
    ))
}

/// Fields that mean nothing.
pub(super) fn of_unknown_fields(file: &ApprovalsFile) -> Option<String> {
    let fields = file.unknown_fields();
    (!fields.is_empty()).then(|| {
        format!(
            "Warning: these fields are no settings of this version and do nothing: {}.",
            fields.join(", ")
        )
    })
}

/// Warning that the rules are not enforced, where the config of this host makes it so.
pub(super) fn of_config(context: &CliContext) -> Option<String> {
    let config = context.config_or_default();
    let is_elsewhere = config.gateway.mode == Some(GatewayMode::Remote);
    if is_elsewhere || !context.is_config_readable() {
        return None;
    }
    let command = context.hint_command("openclaw config set tools.exec.host gateway");
    unheeded_approvals(&config).map(|says| format!("{says} To change that: {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn entries_that_do_not_do_what_is_meant_are_told() {
        let context = testing::context("{agents: {list: [{id: 'main'}, {id: 'work'}]}}", &[]);
        for (agent, pattern, says) in [
            ("*", "/usr/bin/rg", ""),
            ("work", "~/bin/*", ""),
            ("*", "**/rg", ""),
            ("*", "rg", "it has no path"),
            ("*", "../bin/rg", "does not begin with /"),
            ("*", "bin/rg", "does not begin with /"),
            ("*", "/usr/../bin/rg", "it has .. in it"),
            ("*", "/usr/bin/env", "/usr/bin/env runs whatever"),
            ("*", "/opt/homebrew/bin/python3.12", "/opt/homebrew/bin/python3.12 runs whatever"),
            ("*", "/usr/bin/xargs", "/usr/bin/xargs runs whatever"),
            ("*", "/usr/bin/*", "/usr/bin/env runs whatever"),
            ("*", "/**", "/bin/sh runs whatever"),
            ("*", "**", "it has no path"),
            ("wrok", "/usr/bin/rg", "there is no agent \"wrok\" (there is: main, work)"),
        ] {
            let told = of_entry(&context, agent, pattern).join("\n");
            assert!(told.contains(says) && told.is_empty() == says.is_empty(), "{agent} {pattern}: {told}");
        }
    }
}
