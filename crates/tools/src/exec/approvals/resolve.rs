//! Resolves the policy of an agent, and the decision for a command.

use openclaw_config::settings::{ExecAsk, ExecHost, ExecSecurity};

use super::allowlist::Evaluation;
use super::file::{AgentApprovals, AllowlistEntry, ApprovalsFile, Policy};
use crate::approvals::Decision as Answer;

/// Combined values of `tools.exec`, the session and the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolValues {
    /// Security mode: which commands may run.
    pub security: ExecSecurity,
    /// Ask mode: when a person is asked.
    pub ask: ExecAsk,
}

/// Effective policy of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectivePolicy {
    /// The stricter of tool and file.
    pub security: ExecSecurity,
    /// The stricter of tool and file.
    pub ask: ExecAsk,
    /// Security mode that applies if no person answers.
    pub ask_fallback: ExecSecurity,
    /// True if programs of skills count as allowed.
    pub auto_allow_skills: bool,
    /// Entries of all agents, then those of this one.
    pub allowlist: Vec<AllowlistEntry>,
}

/// Returns the effective policy of an agent: the file's policy for it, then for all agents, then by
/// default; else the tool's values, else the strictest fallback. The file can narrow what the tool
/// allows and never widen it.
pub fn resolve(file: &ApprovalsFile, agent: &str, tool: ToolValues) -> EffectivePolicy {
    let (own, all) = (file.agent(agent), file.agents.get("*"));
    let levels = || own.into_iter().chain(all).map(|agent| &agent.policy).chain([&file.defaults]);
    EffectivePolicy {
        security: first(levels(), |policy| policy.security).unwrap_or(tool.security).min(tool.security),
        ask: first(levels(), |policy| policy.ask).unwrap_or(tool.ask).max(tool.ask),
        ask_fallback: first(levels(), |policy| policy.ask_fallback).unwrap_or(ExecSecurity::Deny),
        auto_allow_skills: first(levels(), |policy| policy.auto_allow_skills).unwrap_or(false),
        allowlist: all.into_iter().chain(own).flat_map(entries).cloned().collect(),
    }
}

fn first<'p, T>(
    mut levels: impl Iterator<Item = &'p Policy>,
    field: impl Fn(&Policy) -> Option<T>,
) -> Option<T> {
    levels.find_map(field)
}

fn entries(agent: &AgentApprovals) -> &[AllowlistEntry] {
    &agent.allowlist
}

/// Progress of asking for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalProgress {
    /// No person was asked yet.
    NotYet,
    /// A person answered.
    Answered(Answer),
    /// No person answered in time.
    TimedOut,
}

/// Decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The command runs.
    Run,
    /// The command runs, and [`Evaluation::to_allow_always`] is added to the allowlist.
    RunAndRemember,
    /// A person is asked.
    Ask,
    /// The command does not run. The text is for the model before a person was asked, and the
    /// reason of the event after.
    Deny(String),
}

/// Decides. After a person was asked it is called again, with the rules of that moment: `deny` holds whatever was answered.
pub fn decide(
    host: ExecHost,
    rules: &EffectivePolicy,
    found: &Evaluation,
    asked: ApprovalProgress,
) -> Decision {
    if rules.security == ExecSecurity::Deny {
        return Decision::Deny(format!("exec denied: host={} security=deny", host.as_str()));
    }
    match asked {
        ApprovalProgress::NotYet => before_asking(rules, found),
        ApprovalProgress::Answered(Answer::Deny) => Decision::Deny("user-denied".to_owned()),
        ApprovalProgress::Answered(Answer::AllowAlways) if rules.security == ExecSecurity::Allowlist => {
            Decision::RunAndRemember
        }
        ApprovalProgress::Answered(Answer::AllowOnce | Answer::AllowAlways) => Decision::Run,
        ApprovalProgress::TimedOut => after_timeout(rules, found),
    }
}

fn before_asking(rules: &EffectivePolicy, found: &Evaluation) -> Decision {
    let is_miss = rules.security == ExecSecurity::Allowlist && !found.is_satisfied();
    match (rules.ask, is_miss) {
        (ExecAsk::Always, _) | (ExecAsk::OnMiss, true) => Decision::Ask,
        (ExecAsk::Off, true) => Decision::Deny("exec denied: allowlist miss".to_owned()),
        (ExecAsk::Off | ExecAsk::OnMiss, false) => Decision::Run,
    }
}

fn after_timeout(rules: &EffectivePolicy, found: &Evaluation) -> Decision {
    match rules.ask_fallback {
        ExecSecurity::Full => Decision::Run,
        ExecSecurity::Allowlist if found.is_satisfied() => Decision::Run,
        ExecSecurity::Allowlist => Decision::Deny("approval-timeout (allowlist-miss)".to_owned()),
        ExecSecurity::Deny => Decision::Deny("approval-timeout".to_owned()),
    }
}

#[cfg(test)]
mod tests;
