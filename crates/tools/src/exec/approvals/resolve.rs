//! What holds for an agent, and what follows for a command.

use openclaw_config::settings::{ExecAsk, ExecHost, ExecSecurity};

use super::allowlist::Evaluation;
use super::file::{AgentApprovals, AllowlistEntry, ApprovalsFile, Policy};
use crate::approvals::Decision as Answer;

/// What `tools.exec`, the session and the call together say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolValues {
    /// Which commands may run.
    pub security: ExecSecurity,
    /// When a person is asked.
    pub ask: ExecAsk,
}

/// What holds for one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// The stricter of tool and file.
    pub security: ExecSecurity,
    /// The stricter of tool and file.
    pub ask: ExecAsk,
    /// What holds when nobody answers.
    pub ask_fallback: ExecSecurity,
    /// Whether programs of skills count as allowed.
    pub auto_allow_skills: bool,
    /// Entries of all agents, then those of this one.
    pub allowlist: Vec<AllowlistEntry>,
}

/// What holds for an agent: what the file says of it, of all agents, by default; else the tool's values, else the strictest
/// fallback. The file can narrow what the tool allows and never widen it.
pub fn resolve(file: &ApprovalsFile, agent: &str, tool: ToolValues) -> Effective {
    let (own, all) = (file.agent(agent), file.agents.get("*"));
    let levels = || own.into_iter().chain(all).map(|agent| &agent.policy).chain([&file.defaults]);
    Effective {
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

/// How far the asking is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Nobody was asked yet.
    NotYet,
    /// A person answered.
    Answered(Answer),
    /// Nobody answered in time.
    TimedOut,
}

/// What happens with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Run,
    /// It runs, and [`Evaluation::to_allow_always`] goes on the allowlist.
    RunAndRemember,
    /// A person is asked.
    Ask,
    /// It does not run. The text is for the model before a person was asked, and the reason of the event after.
    Deny(String),
}

/// Decides. After a person was asked it is called again, with the rules of that moment: `deny` holds whatever was answered.
pub fn decide(host: ExecHost, rules: &Effective, found: &Evaluation, asked: Asked) -> Decision {
    if rules.security == ExecSecurity::Deny {
        return Decision::Deny(format!("exec denied: host={} security=deny", host.as_str()));
    }
    match asked {
        Asked::NotYet => before_asking(rules, found),
        Asked::Answered(Answer::Deny) => Decision::Deny("user-denied".to_owned()),
        Asked::Answered(Answer::AllowAlways) if rules.security == ExecSecurity::Allowlist => {
            Decision::RunAndRemember
        }
        Asked::Answered(Answer::AllowOnce | Answer::AllowAlways) => Decision::Run,
        Asked::TimedOut => after_timeout(rules, found),
    }
}

fn before_asking(rules: &Effective, found: &Evaluation) -> Decision {
    let is_miss = rules.security == ExecSecurity::Allowlist && !found.is_satisfied();
    match (rules.ask, is_miss) {
        (ExecAsk::Always, _) | (ExecAsk::OnMiss, true) => Decision::Ask,
        (ExecAsk::Off, true) => Decision::Deny("exec denied: allowlist miss".to_owned()),
        (ExecAsk::Off | ExecAsk::OnMiss, false) => Decision::Run,
    }
}

fn after_timeout(rules: &Effective, found: &Evaluation) -> Decision {
    match rules.ask_fallback {
        ExecSecurity::Full => Decision::Run,
        ExecSecurity::Allowlist if found.is_satisfied() => Decision::Run,
        ExecSecurity::Allowlist => Decision::Deny("approval-timeout (allowlist-miss)".to_owned()),
        ExecSecurity::Deny => Decision::Deny("approval-timeout".to_owned()),
    }
}

#[cfg(test)]
mod tests;
