//! Policy on which agents may talk to each other: `tools.agentToAgent` (spec `sessions.md` §8).

use openclaw_protocol::AgentId;

/// `tools.agentToAgent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TalkPolicy<'a> {
    /// True if agents may talk to each other at all.
    pub enabled: bool,
    /// Patterns for the agents that may; empty means all.
    pub allow: &'a [String],
}

/// Reason why two agents may not talk to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Policy `tools.agentToAgent` is off: no agents may.
    Disabled,
    /// The policy is on, but these agents are not on its allowlist.
    NotAllowed,
}

impl TalkPolicy<'_> {
    /// Succeeds if one agent may look at another's sessions and write to them. An agent may always
    /// do so with its own.
    ///
    /// # Errors
    /// [`Denied`] says why not.
    pub fn between(self, from: &AgentId, to: &AgentId) -> Result<(), Denied> {
        if from == to {
            return Ok(());
        }
        if !self.enabled {
            return Err(Denied::Disabled);
        }
        if self.names(from) && self.names(to) { Ok(()) } else { Err(Denied::NotAllowed) }
    }

    fn names(self, agent: &AgentId) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|pattern| matches(pattern.trim(), agent.as_str()))
    }
}

/// Matches an agent id exactly, or without case by a pattern with `*`.
fn matches(pattern: &str, agent: &str) -> bool {
    if !pattern.contains('*') {
        return !pattern.is_empty() && pattern == agent;
    }
    let (pattern, agent) = (pattern.to_lowercase(), agent.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| agent.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return false };
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_agents_have_to_be_allowed() {
        type Row<'a> = (bool, &'a [&'a str], &'a str, &'a str, Result<(), Denied>);
        let rows: &[Row<'_>] = &[
            (false, &[], "a", "a", Ok(())),
            (false, &[], "a", "b", Err(Denied::Disabled)),
            (false, &["*"], "a", "b", Err(Denied::Disabled)),
            (true, &[], "a", "b", Ok(())),
            (true, &["a"], "a", "b", Err(Denied::NotAllowed)),
            (true, &["b"], "a", "b", Err(Denied::NotAllowed)),
            (true, &["a"], "a", "a", Ok(())),
            (true, &["a", "b"], "a", "b", Ok(())),
            (true, &["A", "b"], "a", "b", Err(Denied::NotAllowed)),
            (true, &["A*", "b"], "abc", "b", Ok(())),
            (true, &["*"], "a", "b", Ok(())),
            (true, &[""], "a", "b", Err(Denied::NotAllowed)),
            (true, &[" a ", " b"], "a", "b", Ok(())),
        ];
        for (enabled, allow, from, to, expect) in rows {
            let allow: Vec<String> = allow.iter().map(|&pattern| pattern.to_owned()).collect();
            let policy = TalkPolicy { enabled: *enabled, allow: &allow };
            let decided = policy.between(&AgentId::normalize(from), &AgentId::normalize(to));
            assert_eq!(decided, *expect, "{enabled} {allow:?} {from} {to}");
        }
    }

    #[test]
    fn stars_stand_for_any_text() {
        let rows = [
            ("*", "x", true),
            ("ab*", "abc", true),
            ("ab*", "ab", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axcxb", false),
            ("a*", "ba", false),
            ("A*C", "abc", true),
            ("**", "x", true),
            ("x.*", "xyz", false),
        ];
        for (pattern, agent, expect) in rows {
            assert_eq!(matches(pattern, agent), expect, "{pattern} {agent}");
        }
    }
}
