//! The kinds of turns that are counted, and whose processor time is measured.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use openclaw_testkit::long_sessions;

use super::model::Script;
use super::turns::{Bench, Stored, Turn};

/// Turns of one session.
pub(super) struct Workload {
    pub(super) what: &'static str,
    /// Messages that the session has at the start.
    messages: usize,
    script: Script,
    /// Turns that are not counted.
    before: usize,
    /// Turns that are.
    pub(super) turns: usize,
    /// Number of units that a turn counts as: a streamed answer counts as its tokens.
    pub(super) units: usize,
}

pub(super) const SHORT: Workload =
    Workload { what: "short turn", messages: 0, script: Script::SHORT, before: 10, turns: 50, units: 1 };
pub(super) const LONG: Workload =
    Workload { what: "turn on 2,000 messages", messages: 2_000, before: 3, turns: 10, ..SHORT };
const TOOLS: Workload = Workload {
    what: "turn with 20 tool calls",
    script: Script { tool_calls: 20, ..Script::SHORT },
    before: 2,
    turns: 5,
    ..SHORT
};
const TOKENS: usize = 2_000;
const STREAM: Workload = Workload {
    what: "token of an answer of 2,000",
    // A pause between tokens keeps them from being read, and told, together.
    script: Script { tokens: TOKENS, pause: Duration::from_millis(1), ..Script::SHORT },
    before: 1,
    turns: 2,
    units: TOKENS,
    ..SHORT
};

/// Workloads that are counted.
pub(super) const COUNTED: [Workload; 4] = [SHORT, LONG, TOOLS, STREAM];

/// Workloads that are timed: more of the same, since the system counts processor time in hundredths
/// of a second.
pub(super) const TIMED: [Workload; 5] = [
    Workload { turns: 300, ..SHORT },
    Workload { what: "turn after 500 turns", before: 500, turns: 150, ..SHORT },
    Workload { turns: 100, ..LONG },
    Workload { turns: 30, ..TOOLS },
    STREAM,
];

impl Workload {
    /// A gateway that has taken the turns which are not counted.
    pub(super) async fn begin(&self, program: &Path) -> Result<Bench> {
        /// Files of the workspace are read again until they are a second old.
        const SETTLED: Duration = Duration::from_millis(1_100);
        let stored = match self.messages {
            0 => Stored::Nothing,
            messages => Stored::Long { sessions: 1, messages },
        };
        let mut bench = Bench::start(program, stored, self.script).await?;
        self.take(&mut bench, self.before).await?;
        tokio::time::sleep(SETTLED).await;
        Ok(bench)
    }

    /// Runs so many turns, all in one session.
    pub(super) async fn take(&self, bench: &mut Bench, turns: usize) -> Result<Vec<Turn>> {
        bench.turns(turns, |_| long_sessions::key(0)).await
    }
}
