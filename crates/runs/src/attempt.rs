//! Number of times a message is tried (`docs/durability.md`, "Messages that end the process"). A
//! message that kills the gateway would kill it again at each start; so each attempt is noted
//! before it can do harm, and after a few the message is given up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use openclaw_journal::inbox::{Attempts, InboxRow, Queued};
use openclaw_journal::journal::{Journal, Update};
use openclaw_protocol::RunId;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Deaths of the process while a message was prepared, after which it is given up.
const UNPREPARED: u32 = 3;
/// Deaths at any time while it was worked on. Power cuts can't reach this; a tool call that kills the gateway can.
const ALL: u32 = 200;
/// Deaths of the process while it told in the transcript that a message is given up, after which that is left out.
const RECORDING: u32 = 3;
/// Whatever takes longer to be prepared waits for something, such as a transcript that somebody has locked. It keeps no other
/// suspect waiting, and the end of the process is not its fault.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Longest time that a command may take before it counts as waiting for something: a sub-agent, a
/// model, a program.
pub(super) const COMMAND_PATIENCE: Duration = Duration::from_secs(1);

/// Time for which the gateway has to be up before a last try is made: whatever ends it sooner,
/// start after start, is something else.
const SETTLED: Duration = Duration::from_secs(2);

/// Prepares suspects one at a time: messages during whose preparation a process has died, so that
/// the next death tells which of them is the cause.
#[derive(Debug)]
pub struct Suspects {
    turn: Arc<Semaphore>,
    /// Time at which the gateway started.
    since: Instant,
    /// Messages whose last try a start waits for, until they take their turn.
    awaited: Mutex<HashMap<RunId, DropGuard>>,
}

impl Default for Suspects {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), since: Instant::now(), awaited: Mutex::default() }
    }
}

/// A suspect's turn.
#[derive(Debug)]
struct SuspectTurn {
    _permit: Option<OwnedSemaphorePermit>,
    /// Tells the start that waits for it.
    _awaited: Option<DropGuard>,
}

impl Suspects {
    /// Cancelled once the message is prepared or its run has ended. To be asked for before the message is taken up.
    pub fn tried(&self, run_id: &RunId) -> CancellationToken {
        let tried = CancellationToken::new();
        self.awaited.lock().insert(run_id.clone(), tried.clone().drop_guard());
        tried
    }

    async fn turn_of(&self, run_id: &RunId, cancel: &CancellationToken) -> SuspectTurn {
        SuspectTurn { _permit: self.alone(cancel).await, _awaited: self.awaited.lock().remove(run_id) }
    }

    /// Waits until the cause of the next death can be told.
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

/// An attempt at a message.
#[derive(Debug, Default)]
pub struct MessageAttempt {
    /// Guard that counts the attempt until it is prepared.
    counted: Mutex<Option<Counted>>,
    /// Number of earlier attempts, each of which ended with the death of its process.
    before: AtomicU32,
}

/// Takes back that an attempt was not prepared, once.
#[derive(Debug)]
struct Counted {
    /// A suspect's.
    _turn: Option<SuspectTurn>,
}

impl MessageAttempt {
    /// Counts the attempt, before anything is done for a message. A message of this process is
    /// counted when its run begins: an ordinary turn needs no write for this.
    pub(super) async fn begin(
        &self,
        (suspects, journal): (&Suspects, &dyn Journal),
        row: &InboxRow<Queued>,
        cancel: &CancellationToken,
    ) {
        if !row.recovered {
            return;
        }
        let before = row.payload.attempts;
        self.before.store(before.all, Ordering::Relaxed);
        if is_last_try(before) {
            suspects.settled(cancel).await;
        }
        let turn = match before.unprepared {
            0 => None,
            _ => Some(suspects.turn_of(&row.run_id, cancel).await),
        };
        match journal.update(Update::Attempt(row.run_id.clone())).await {
            Ok(_) => tracing::info!("taking up {} again, attempt {}", row.run_id, before.all + 1),
            Err(error) => tracing::warn!(run_id = %row.run_id, %error, "an attempt could not be noted"),
        }
        *self.counted.lock() = Some(Counted { _turn: turn });
    }

    /// Returns the number of times an earlier process died while it worked on the message.
    pub(super) fn deaths(&self) -> u32 {
        self.before.load(Ordering::Relaxed)
    }

    /// Waits for a preparation ([`PATIENCE`]) or a command ([`COMMAND_PATIENCE`]), and notes one that takes too long to be dangerous.
    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        journal: &dyn Journal,
        row: &InboxRow<Queued>,
        mut work: impl Future<Output = T> + Unpin,
    ) -> T {
        match tokio::time::timeout(patience, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                self.prepared(journal, &row.run_id).await;
                work.await
            }
        }
    }

    /// Notes that the preparation is over: everything is read and the model is asked, or the
    /// message waits. Whatever ends the process from now on is most likely not this message.
    pub async fn prepared(&self, journal: &dyn Journal, run_id: &RunId) {
        // The next attempt of a fresh message is its second either way.
        let Some(_counted) = self.counted.lock().take() else { return };
        if let Err(error) = journal.update(Update::Prepared(run_id.clone())).await {
            tracing::warn!(%run_id, %error, "it is not noted that a run was prepared");
        }
    }
}

/// True if the message is given up if the process dies once more while it is prepared.
pub fn is_last_try(attempts: Attempts) -> bool {
    attempts.unprepared + 1 == UNPREPARED
}

/// Verdict that a message is not tried any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// Number of times the process died of it.
    pub(super) deaths: u32,
    /// True if that may be told in the transcript.
    pub(super) may_record: bool,
}

impl GivenUp {
    /// Returns `Some` if a message was tried often enough to be given up.
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
