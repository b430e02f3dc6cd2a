//! How often a message is tried (`docs/durability.md`, "Messages that end the process"). A message that kills the gateway would
//! kill it again at each start; so each attempt is noted before it can do harm, and after a few the message is given up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::RunId;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Runner;
use crate::inbox::{Attempts, Queued, Row};
use crate::journal::Update;

/// Deaths of the process while a message was prepared, after which it is given up.
const UNPREPARED: u32 = 3;
/// Deaths at any time while it was worked on. Power cuts can't reach this; a tool call that kills the gateway can.
const ALL: u32 = 200;
/// Deaths of the process while it told in the transcript that a message is given up, after which that is left out.
const RECORDING: u32 = 3;
/// Whatever takes longer to be prepared waits for something, such as a transcript that somebody has locked. It keeps no other
/// suspect waiting, and the end of the process is not its fault.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The same of a command. It does little, or it waits: for a sub-agent, a model, a program.
pub(super) const COMMAND_PATIENCE: Duration = Duration::from_secs(1);

/// A last try is not made before the gateway has been up this long: what ends it sooner, start after start, is something else.
const SETTLED: Duration = Duration::from_secs(2);

/// Lets messages during whose preparation a process has died be prepared one at a time, so that the next death tells which of
/// them it is.
#[derive(Debug)]
pub(crate) struct Suspects {
    turn: Arc<Semaphore>,
    /// When the gateway started.
    since: Instant,
    /// Those whose last try a start waits for, until they take their turn.
    awaited: Mutex<HashMap<RunId, DropGuard>>,
}

impl Default for Suspects {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), since: Instant::now(), awaited: Mutex::default() }
    }
}

/// A suspect's turn.
#[derive(Debug)]
struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
    /// Tells the start that waits for it.
    _awaited: Option<DropGuard>,
}

impl Suspects {
    /// Cancelled once the message is prepared or its run has ended. To be asked for before the message is taken up.
    pub(crate) fn tried(&self, run_id: &RunId) -> CancellationToken {
        let tried = CancellationToken::new();
        self.awaited.lock().insert(run_id.clone(), tried.clone().drop_guard());
        tried
    }

    async fn turn_of(&self, run_id: &RunId, cancel: &CancellationToken) -> Turn {
        Turn { _permit: self.alone(cancel).await, _awaited: self.awaited.lock().remove(run_id) }
    }

    /// Waits until it can be told whose fault the next death is.
    async fn settled(&self, cancel: &CancellationToken) {
        tokio::select! { biased;
            () = cancel.cancelled() => {}
            () = tokio::time::sleep_until(self.since + SETTLED) => {}
        }
    }

    /// Waits for its turn, not for ever, and not when it is stopped.
    async fn alone(&self, cancel: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        tokio::select! { biased;
            () = cancel.cancelled() => None,
            () = tokio::time::sleep(PATIENCE) => None,
            turn = Arc::clone(&self.turn).acquire_owned() => turn.ok(),
        }
    }
}

/// One attempt.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// From when it is counted until it is prepared.
    counted: Mutex<Option<Counted>>,
}

/// Takes back that an attempt was not prepared, once.
#[derive(Debug)]
struct Counted {
    /// A suspect's.
    _turn: Option<Turn>,
}

impl Attempt {
    /// Before anything is done for a message. A message of this process is counted when its run begins: an ordinary turn needs
    /// no write for this.
    pub(super) async fn begin(&self, runner: &Runner, row: &Row<Queued>, cancel: &CancellationToken) {
        if !row.recovered {
            return;
        }
        let before = row.payload.attempts;
        if is_last_try(before) {
            runner.suspects.settled(cancel).await;
        }
        let turn = match before.unprepared {
            0 => None,
            _ => Some(runner.suspects.turn_of(&row.run_id, cancel).await),
        };
        match runner.shared.journal.update(Update::Attempt(row.run_id.clone())).await {
            Ok(_) => tracing::info!("taking up {} again, attempt {}", row.run_id, before.all + 1),
            Err(error) => tracing::warn!(run_id = %row.run_id, %error, "an attempt could not be noted"),
        }
        *self.counted.lock() = Some(Counted { _turn: turn });
    }

    /// Waits for a preparation ([`PATIENCE`]) or a command ([`COMMAND_PATIENCE`]), and notes one that takes too long to be dangerous.
    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        runner: &Runner,
        row: &Row<Queued>,
        mut work: impl Future<Output = T> + Unpin,
    ) -> T {
        match tokio::time::timeout(patience, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                self.prepared(runner, &row.run_id).await;
                work.await
            }
        }
    }

    /// Everything is read and the model is asked, or the message waits: whatever ends the process now is most likely not this
    /// message.
    pub(crate) async fn prepared(&self, runner: &Runner, run_id: &RunId) {
        // The next attempt of a fresh message is its second either way.
        let Some(_counted) = self.counted.lock().take() else { return };
        if let Err(error) = runner.shared.journal.update(Update::Prepared(run_id.clone())).await {
            tracing::warn!(%run_id, %error, "it is not noted that a run was prepared");
        }
    }
}

/// Whether the message is given up if the process dies once more while it is prepared.
pub(crate) fn is_last_try(attempts: Attempts) -> bool {
    attempts.unprepared + 1 == UNPREPARED
}

/// A message is not tried any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// How often the process died of it.
    pub(super) deaths: u32,
    /// Whether that may be told in the transcript.
    pub(super) may_record: bool,
}

impl GivenUp {
    /// Whether a message was tried often enough.
    pub(super) fn after(attempts: Attempts) -> Option<Self> {
        let Attempts { all, unprepared } = attempts;
        let (count, deaths) = if unprepared >= UNPREPARED { (unprepared, UNPREPARED) } else { (all, ALL) };
        (count >= deaths).then_some(Self { deaths, may_record: count < deaths + RECORDING })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_last_try_is_made_while_a_start_may_die_of_something_else() {
        let (suspects, stopped) = (Suspects::default(), CancellationToken::new());
        stopped.cancel();
        suspects.settled(&stopped).await;
        assert_eq!(suspects.since.elapsed(), Duration::ZERO, "whoever is stopped does not wait");
        for _ in 0..2 {
            suspects.settled(&CancellationToken::new()).await;
            assert_eq!(suspects.since.elapsed(), SETTLED, "it is waited for once");
        }
    }

    #[test]
    fn three_deaths_while_preparing_are_too_many_and_two_hundred_in_all() {
        let rows = [
            (0, 0, None),
            (2, 2, None),
            (3, 3, Some((3, true))),
            (5, 5, Some((3, true))),
            (6, 6, Some((3, false))),
            (199, 2, None),
            (199, 0, None),
            (200, 0, Some((200, true))),
            (203, 2, Some((200, false))),
            (250, 3, Some((3, true))),
        ];
        for (all, unprepared, expect) in rows {
            let expect = expect.map(|(deaths, may_record)| GivenUp { deaths, may_record });
            assert_eq!(GivenUp::after(Attempts { all, unprepared }), expect, "{all} {unprepared}");
            assert_eq!(is_last_try(Attempts { all, unprepared }), unprepared == 2, "{all} {unprepared}");
        }
    }
}
