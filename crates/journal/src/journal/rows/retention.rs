//! Rows that are forgotten, and when.

use super::{ArrivalRow, DeliveryRow, MessageRow, PromiseRow};
use crate::arrival::Fate;
use crate::delivery::{Author, DeliveryState};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Rows of one kind that are forgotten when they are old enough, or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Kind of rows.
    pub of: Forgettable,
    /// Rows that ended before this time are forgotten, in Unix milliseconds.
    pub ended_before: i64,
    /// Number of rows of the kind that stay at most, the newest by the order of acceptance, which no
    /// clock that jumps can change.
    pub keep_rows: i64,
}

impl Retention {
    /// Returns the numbers of the rows that are forgotten, out of those that are of the kind: each with
    /// its end, in the order of acceptance. `last` is the highest number of all rows.
    pub fn select(self, ended: &[(i64, i64)], last: i64) -> Vec<i64> {
        let is_old = |(_, ended_at): &(i64, i64)| *ended_at < self.ended_before;
        let stay = usize::try_from(self.keep_rows).unwrap_or(usize::MAX);
        let (too_many, old) = match self.of {
            Forgettable::Messages => {
                let old = ended.iter().take_while(|row| is_old(row)).count();
                (last.saturating_sub(self.keep_rows), ended.get(..old).unwrap_or_default().to_vec())
            }
            _ => {
                let newest = ended.iter().rev().nth(stay).map_or(0, |(number, _)| *number);
                (newest, ended.iter().copied().filter(is_old).collect())
            }
        };
        let is_forgotten = |row: &&(i64, i64)| row.0 <= too_many || old.contains(row);
        ended.iter().filter(is_forgotten).map(|(number, _)| *number).collect()
    }
}

/// A kind of rows whose work is done. They answer for their key for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgettable {
    /// Finished messages. Only those before the first finished one that is not old enough are
    /// forgotten for their age; `keep_rows` counts all numbers that were given out since, those of
    /// unfinished messages too.
    Messages,
    /// Sent deliveries without buttons of which something is known.
    Sent,
    /// Sent deliveries of the gateway itself.
    SentByGateway,
    /// Sent deliveries with buttons of others.
    SentWithButtons,
    /// Deliveries that were given up.
    Failed,
    /// Events that were dropped.
    Dropped,
    /// Events with another fate.
    Heard,
    /// Promises that ended with their process.
    LostPromises,
}

/// The end of a row, if that is of the kind.
impl Forgettable {
    /// Returns that of a message.
    pub fn end_of_message(self, row: &MessageRow) -> Option<i64> {
        row.progress.ended_at.filter(|_| self == Self::Messages && row.progress.is_finished)
    }

    /// Returns that of a delivery.
    pub fn end_of_delivery(self, row: &DeliveryRow) -> Option<i64> {
        let kind = match (row.progress.state, &row.author) {
            (DeliveryState::Sent, Author::Other) => Self::Sent,
            (DeliveryState::Sent, Author::Gateway) => Self::SentByGateway,
            (DeliveryState::Sent, Author::Buttons(_)) => Self::SentWithButtons,
            (DeliveryState::Failed, _) => Self::Failed,
            (DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Uncertain, _) => return None,
        };
        row.progress.ended_at.filter(|_| self == kind)
    }

    /// Returns that of an event.
    pub fn end_of_arrival(self, row: &ArrivalRow) -> Option<i64> {
        let kind = match row.progress.fate.as_ref()? {
            Fate::Dropped(_) => Self::Dropped,
            Fate::Run(_) | Fate::Noted | Fate::Handled(_) => Self::Heard,
        };
        row.progress.decided_at.filter(|_| self == kind)
    }

    /// Returns that of a promise.
    pub fn end_of_promise(self, row: &PromiseRow) -> Option<i64> {
        row.lost_at.filter(|_| self == Self::LostPromises)
    }
}

/// Returns what is forgotten at this time.
pub fn retentions(now: i64) -> impl Iterator<Item = Retention> {
    KEPT.into_iter().map(move |(of, keep_ms, keep_rows)| Retention {
        of,
        ended_before: now.saturating_sub(keep_ms),
        keep_rows,
    })
}

/// Time in milliseconds for which rows are kept, and their number at most.
const KEPT: [(Forgettable, i64, i64); 8] = [
    // Repeated idempotency keys are answered for a day.
    (Forgettable::Messages, DAY_MS, 5_000),
    // Ids are not sent again for a day.
    (Forgettable::Sent, DAY_MS, 5_000),
    // Buttons of the gateway give commands, and a press of others has the rights of the buttons'
    // maker.
    (Forgettable::SentByGateway, 30 * DAY_MS, 5_000),
    (Forgettable::SentWithButtons, 30 * DAY_MS, 5_000),
    // A person can retry them for a week (spec `channels.md` §5.5).
    (Forgettable::Failed, 7 * DAY_MS, 5_000),
    // For dedupe and `openclaw trace` (spec `channels.md` §3.2: at least four hours and 10,000
    // events). Dropped ones are counted apart: a crowd that is not heard takes no room from those who
    // are.
    (Forgettable::Dropped, 3 * DAY_MS, 20_000),
    (Forgettable::Heard, 3 * DAY_MS, 20_000),
    // What the last starts have found.
    (Forgettable::LostPromises, DAY_MS, 512),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_when_they_are_old_or_too_many() {
        let rows = |of, ended_before, keep_rows, ended: &[(i64, i64)]| {
            Retention { of, ended_before, keep_rows }.select(ended, 6)
        };
        let ended = [(1, 100), (2, 500), (3, 200), (6, 600)];
        // Messages go for their age only up to one that stays, and numbers 4 and 5 count too.
        for (ended_before, keep_rows, expect) in
            [(300, 9, &[1][..]), (550, 9, &[1, 2, 3]), (0, 9, &[]), (0, 4, &[1, 2]), (0, 0, &[1, 2, 3, 6])]
        {
            assert_eq!(
                rows(Forgettable::Messages, ended_before, keep_rows, &ended),
                expect,
                "{ended_before}"
            );
        }
        for (ended_before, keep_rows, expect) in
            [(300, 9, &[1, 3][..]), (0, 4, &[]), (0, 3, &[1]), (300, 1, &[1, 2, 3]), (0, 0, &[1, 2, 3, 6])]
        {
            assert_eq!(rows(Forgettable::Sent, ended_before, keep_rows, &ended), expect, "{ended_before}");
        }
        assert_eq!(rows(Forgettable::Failed, 9, 9, &[]), [0; 0]);
    }

    #[test]
    fn every_kind_is_kept_for_a_while() {
        let mut kinds: Vec<Forgettable> = Vec::new();
        for Retention { of, ended_before, keep_rows } in retentions(100 * DAY_MS) {
            assert!(ended_before <= 99 * DAY_MS && keep_rows >= 512, "{of:?}");
            assert!(!kinds.contains(&of), "{of:?} is named once");
            kinds.push(of);
        }
        assert_eq!(kinds.len(), 8);
    }
}
