//! Notices that agents are owed about their commands, across the end of this process (spec
//! `tools.md` §3.2, §3.3): the journal keeps each promise until the line that fulfils it waits for
//! its session, and each line until the run that told it has ended. Promises that a start finds
//! open ended with the process before; the line that was left for this case is told then.

use std::collections::HashMap;

use openclaw_protocol::{RunId, SessionKey};
use openclaw_tools::{Notice, PromiseKind};

/// Lines that a start makes for a session. Where more is owed, several share a line, so that none makes room for another.
const MOST_AT_ONCE: usize = 10;

/// A line that waits for its session, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLine {
    /// Grows from line to line.
    pub number: i64,
    /// Session that is told.
    pub session_key: SessionKey,
    /// Text of the line.
    pub text: String,
    /// Unix milliseconds.
    pub ts: i64,
    /// Run whose message told it, while that has not ended.
    pub told_by: Option<RunId>,
}

/// Notices that a start finds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptNotices {
    /// The lines that wait, in order.
    pub lines: Vec<KeptLine>,
    /// Promises that ended with earlier processes, the oldest first.
    pub lost: Vec<Lost>,
}

/// A promise that an earlier process could not fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Kind of the promise.
    pub kind: PromiseKind,
    /// Session or agent that the promise is for.
    pub scope: String,
    /// Id of the command or approval.
    pub name: String,
}

impl KeptNotices {
    /// The commands that ended with earlier processes, by scope and id.
    pub fn commands(&self) -> impl Iterator<Item = (String, String)> {
        self.of(PromiseKind::Command).map(|lost| (lost.scope.clone(), lost.name.clone()))
    }

    /// The ids of the approvals that waited then.
    pub fn approvals(&self) -> impl Iterator<Item = String> {
        self.of(PromiseKind::Approval).map(|lost| lost.name.clone())
    }

    fn of(&self, kind: PromiseKind) -> impl Iterator<Item = &Lost> {
        self.lost.iter().filter(move |lost| lost.kind == kind)
    }
}

/// Returns the lines for promises that were not fulfilled, numbered from `first` on.
pub fn lines_of(owed: Vec<Notice>, first: i64, now: i64) -> Vec<KeptLine> {
    let mut order = Vec::new();
    let mut by_session: HashMap<SessionKey, Vec<String>> = HashMap::new();
    for Notice { session_key, line } in owed {
        let lines = by_session.entry(session_key.clone()).or_insert_with(|| {
            order.push(session_key);
            Vec::new()
        });
        lines.push(line);
    }
    let mut made = Vec::new();
    for session_key in order {
        let lines = by_session.remove(&session_key).unwrap_or_default();
        for shared in lines.chunks(lines.len().div_ceil(MOST_AT_ONCE).max(1)) {
            made.push((session_key.clone(), shared.join("; ")));
        }
    }
    let line = |(number, (session_key, text))| KeptLine { number, session_key, text, ts: now, told_by: None };
    (first..).zip(made).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_commands_owe_shares_lines() {
        let key = |name: &str| SessionKey::parse(&format!("agent:main:{name}")).unwrap();
        let owed = |name: &str, n: usize| Notice { session_key: key(name), line: format!("{name}{n}") };
        let owes = (0..25).map(|n| owed("a", n)).chain([owed("b", 0), owed("b", 1)]);
        let lines = lines_of(owes.collect(), 7, 5);
        let told: Vec<_> = lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        assert_eq!(told[..2], [(7, "a0; a1; a2"), (8, "a3; a4; a5")]);
        assert_eq!(told[8..], [(15, "a24"), (16, "b0"), (17, "b1")]);
        assert!(lines.iter().all(|line| line.ts == 5 && line.told_by.is_none()));
        assert_eq!(lines_of(Vec::new(), 1, 5), []);
    }
}
