//! Memory of a gateway after very many turns, and of long sessions.

use std::path::Path;

use anyhow::Result;
use openclaw_testkit::long_sessions;

use super::Row;
use super::model::Script;
use super::turns::{Bench, Stored};

/// Turns after which memory should have its size.
const EARLY: usize = 5_000;
/// Factor by which it may grow until the end.
const GROWTH: f64 = 1.05;
const LONG_SESSIONS: usize = 20;
const MESSAGES: usize = 2_000;

/// Rows for so many turns over so many sessions, each session's turns far apart.
pub(super) async fn rows(program: &Path, turns: usize, sessions: usize) -> Result<Vec<Row>> {
    let mut bench = Bench::start(program, Stored::Nothing, Script::SHORT).await?;
    let session = |turn: usize| format!("memory-{}", turn % sessions);
    bench.turns(EARLY, session).await?;
    let early = bench.resident()?;
    bench.turns(turns.saturating_sub(EARLY), session).await?;
    let late = bench.resident()?;
    bench.stop().await?;
    Ok(vec![
        Row::shown("memory after 5,000 turns", "MB", early),
        Row::limited("memory after all turns", "MB", late, early * GROWTH),
        Row::limited("memory, 20 sessions of 2,000 messages", "MB", long(program).await?, 60.0),
    ])
}

/// Memory after one turn in each of the long sessions.
async fn long(program: &Path) -> Result<f64> {
    let stored = Stored::Long { sessions: LONG_SESSIONS, messages: MESSAGES };
    let mut bench = Bench::start(program, stored, Script::SHORT).await?;
    bench.turns(LONG_SESSIONS, long_sessions::key).await?;
    let resident = bench.resident()?;
    bench.stop().await?;
    Ok(resident)
}
