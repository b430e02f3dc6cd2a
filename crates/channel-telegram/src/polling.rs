//! Decides the next step of long polling. Pure: the driver is [`receive`](super::receive).
//!
//! The offset says to Telegram that everything below it was taken, so it rises only behind the inbox, and over whole answers: no update is
//! passed over because a later one was quicker.

use std::time::Duration;

use openclaw_channels::Exit;

use crate::failure::{ApiRefusal, BotApiError};
use crate::offset::Taken;
use crate::update::LAST_NUMBER;

/// Updates of one answer.
const BATCH: u32 = 100;
/// Time after which numbers may restart: after a week without updates Telegram numbers anew from
/// anywhere. Before that the old number is let go.
const NUMBERS_LAST: i64 = 6 * 24 * 3600 * 1000;
/// Age difference in milliseconds from which on a lower number shows that numbers began anew: the
/// update must be younger than the last one by more than this. Clocks that differ by a minute are
/// not known to differ.
const CLEARLY: i64 = 2 * 60 * 1000;
/// The longest pause that Telegram may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60 * 60);
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const GROWTH: f64 = 1.8;
const JITTER: f64 = 0.25;

/// The next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UpdatesRequest {
    /// Offset; `None` asks for all updates that Telegram still has.
    pub(super) offset: Option<i64>,
    /// Maximum number of updates.
    pub(super) limit: u32,
}

/// Next step after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// Wait, then ask again over a new connection.
    Pause(Duration),
    /// Skips this update because it can't be read, even alone, so that the updates after it are
    /// received.
    PassOver(i64),
    /// Ends polling because it is of no use.
    End(Exit),
}

/// Progress and state of polling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Polling {
    taken: Option<Taken>,
    failures: u32,
    limit: u32,
    /// The last answer brought only what counts as taken.
    has_passed_over: bool,
}

impl Polling {
    pub(super) fn new(taken: Option<Taken>) -> Self {
        Self { taken, failures: 0, limit: BATCH, has_passed_over: false }
    }

    /// Returns the next request.
    pub(super) fn ask(&mut self, now: i64) -> UpdatesRequest {
        self.taken = self.taken.filter(|taken| now.saturating_sub(taken.at) < NUMBERS_LAST);
        UpdatesRequest { offset: self.taken.map(|taken| taken.update.saturating_add(1)), limit: self.limit }
    }

    /// Returns true if an update was not taken yet.
    pub(super) fn is_new(&self, update: i64) -> bool {
        self.taken.is_none_or(|taken| update > taken.update)
    }

    /// The last that was taken.
    pub(super) fn last(&self) -> Option<i64> {
        self.taken.map(|taken| taken.update)
    }

    /// Returns true if an answer has updates but none of them is new. Telegram does not do that: it
    /// would be asked again and again.
    pub(super) fn knows_all(&self, ids: &[i64]) -> bool {
        !ids.is_empty() && !ids.iter().any(|id| self.is_new(*id))
    }

    /// Forgets what was taken last if an answer shows that Telegram numbers anew: what was said clearly after that can't have been taken
    /// with it, whatever its number. Says the number that was forgotten. `said` has the updates with the times at which they were said,
    /// where they tell; the inbox knows those of them that it had.
    pub(super) fn begin_anew(&mut self, said: &[(i64, Option<i64>)]) -> Option<i64> {
        let taken = self.taken?;
        let is_later = |at: i64| at > taken.at.saturating_add(CLEARLY);
        let shows = |(id, at): &(i64, Option<i64>)| *id <= taken.update && at.is_some_and(is_later);
        said.iter().any(shows).then(|| {
            self.taken = None;
            taken.update
        })
    }

    /// Returns the number up to which an answer with these updates counts as read: the last one of
    /// its final ascending run. An update that stands before lower numbers is delivered again,
    /// because those between them may still follow.
    pub(super) fn end_of(&self, ids: &[i64]) -> Option<i64> {
        let new: Vec<i64> = ids.iter().copied().filter(|id| self.is_new(*id)).collect();
        let early = new.windows(2).rposition(|pair| matches!(pair, [before, after] if after < before));
        new.get(early.map_or(0, |at| at + 1)..).unwrap_or_default().last().copied()
    }

    /// Telegram answered, and what it brought is in the inbox. Says what is to be written down, if anything.
    pub(super) fn took(&mut self, highest: Option<i64>, now: i64) -> Option<Taken> {
        self.failures = 0;
        self.limit = BATCH;
        self.has_passed_over = false;
        let update = highest.filter(|update| self.is_new(*update))?;
        self.taken = Some(Taken { update, at: now });
        self.taken
    }

    /// The inbox did not take it, or nothing of an answer could be read: it is asked for again. `chance` is between 0 and 1.
    pub(super) fn not_taken(&mut self, chance: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        pause(self.failures, chance)
    }

    /// Records an answer without any new update. Returns true if it is the first such answer in a
    /// row, and the pause.
    pub(super) fn passed_over(&mut self, chance: f64) -> (bool, Duration) {
        let is_first = !std::mem::replace(&mut self.has_passed_over, true);
        (is_first, self.not_taken(chance))
    }

    /// The attempt got no answer.
    pub(super) fn failed(&mut self, error: &BotApiError, chance: f64) -> AfterFailure {
        if let BotApiError::Unread { update, .. } = error {
            // The updates may be readable one by one.
            let was_alone = std::mem::replace(&mut self.limit, 1) == 1;
            match update.filter(|update| *update <= LAST_NUMBER && self.is_new(*update)) {
                Some(update) if was_alone => return AfterFailure::PassOver(update),
                Some(_) => return AfterFailure::Pause(Duration::ZERO),
                None => {}
            }
        }
        let pause = self.not_taken(chance);
        match error.refusal() {
            Some(ApiRefusal::Token) => AfterFailure::End(Exit::Refused(error.told())),
            Some(ApiRefusal::Slower(wait)) => AfterFailure::Pause(wait.max(pause).min(LONGEST_ASKED)),
            Some(_) | None => AfterFailure::Pause(pause),
        }
    }

    /// Failures since it last worked.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}

/// The pause after the n-th failure in a row: 2 s, 3.6 s, 6.5 s … 30 s, a quarter more or less.
pub(super) fn pause(failures: u32, chance: f64) -> Duration {
    let power = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = FIRST_PAUSE.as_secs_f64() * GROWTH.powi(power);
    let varied = grown * (1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0));
    Duration::from_secs_f64(varied.min(LONGEST_PAUSE.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1000;

    #[test]
    fn pauses_grow_to_half_a_minute() {
        let found: Vec<u128> = (1..8).map(|n| pause(n, 0.5).as_millis()).collect();
        assert_eq!(found, [2000, 3600, 6480, 11_664, 20_995, 30_000, 30_000]);
        assert_eq!((pause(1, 0.0).as_millis(), pause(1, 1.0).as_millis()), (1500, 2500));
        assert_eq!(pause(u32::MAX, 0.5), LONGEST_PAUSE);
    }

    #[test]
    fn the_offset_rises_behind_the_inbox_only() {
        let mut polling = Polling::new(None);
        assert_eq!(polling.ask(0), UpdatesRequest { offset: None, limit: 100 });
        polling.not_taken(0.5);
        assert_eq!(polling.ask(0).offset, None, "nothing was taken");
        assert_eq!(polling.took(Some(12), 5), Some(Taken { update: 12, at: 5 }));
        assert_eq!(polling.ask(5).offset, Some(13));
        assert!(!polling.is_new(12) && polling.is_new(13));
        assert_eq!(polling.took(None, 6), None, "an empty answer");
        assert_eq!(polling.took(Some(7), 6), None, "one that was brought again");
        assert_eq!(polling.ask(6).offset, Some(13));
    }

    #[test]
    fn what_comes_early_confirms_nothing_before_it() {
        let polling = Polling::new(Some(Taken { update: 9, at: 0 }));
        let rows: [(&[i64], Option<i64>); 6] = [
            (&[], None),
            (&[10, 11, 14], Some(14)),
            (&[66, 72, 10, 11], Some(11)),
            (&[10, 11, 5], Some(11)),
            (&[5, 7], None),
            (&[12, 10, 13, 11], Some(11)),
        ];
        for (ids, expect) in rows {
            assert_eq!(polling.end_of(ids), expect, "{ids:?}");
        }
    }

    #[test]
    fn a_number_of_last_week_is_let_go() {
        let mut polling = Polling::new(Some(Taken { update: 900_000_000, at: 0 }));
        assert_eq!(polling.ask(5 * DAY).offset, Some(900_000_001));
        assert_eq!(polling.ask(6 * DAY).offset, None);
        assert!(polling.is_new(3), "Telegram counts from another number now");
    }

    #[test]
    fn numbers_begin_anew_with_something_that_was_said_clearly_later() {
        type Said = [(i64, Option<i64>)];
        const AT: i64 = 10 * DAY;
        let rows: [(&Said, Option<i64>); 6] = [
            (&[], None),
            (&[(7, None), (5000, Some(AT))], None),
            (&[(7, Some(AT + CLEARLY))], None),
            (&[(7, Some(AT + CLEARLY + 1))], Some(5000)),
            (&[(4999, Some(AT - DAY)), (7, Some(AT + DAY))], Some(5000)),
            // Above what was taken nothing has to begin anew.
            (&[(5001, Some(AT + DAY))], None),
        ];
        for (said, expect) in rows {
            let mut polling = Polling::new(Some(Taken { update: 5000, at: AT }));
            assert_eq!(polling.begin_anew(said), expect, "{said:?}");
            assert_eq!(polling.ask(AT).offset, expect.is_none().then_some(5001), "{said:?}");
        }
        assert_eq!(Polling::new(None).begin_anew(&[(7, Some(AT))]), None);
    }

    #[test]
    fn an_answer_without_anything_new_is_known() {
        let polling = Polling::new(Some(Taken { update: 9, at: 0 }));
        for (ids, expect) in [(&[][..], false), (&[3, 9], true), (&[3, 10], false)] {
            assert_eq!(polling.knows_all(ids), expect, "{ids:?}");
        }
        assert!(!Polling::new(None).knows_all(&[3]));
        let mut polling = polling;
        polling.not_taken(0.5);
        let second = Duration::from_millis(3600);
        assert_eq!(polling.passed_over(0.5), (true, second), "told, whatever failed before");
        assert!(!polling.passed_over(0.5).0);
        polling.took(None, 0);
        assert!(polling.passed_over(0.5).0);
    }

    #[test]
    fn failures_pause_or_end_it() {
        let refused = |refusal| BotApiError::Refused { status: 400, refusal, text: "x".to_owned() };
        let mut polling = Polling::new(None);
        assert_eq!(
            polling.failed(&refused(ApiRefusal::Conflict), 0.5),
            AfterFailure::Pause(Duration::from_secs(2))
        );
        let lost = BotApiError::Lost("reset".to_owned());
        assert_eq!(polling.failed(&lost, 0.5), AfterFailure::Pause(Duration::from_millis(3600)));
        let slower = refused(ApiRefusal::Slower(Duration::from_secs(90)));
        assert_eq!(
            polling.failed(&slower, 0.5),
            AfterFailure::Pause(Duration::from_secs(90)),
            "longer than our own"
        );
        assert_eq!(polling.failures(), 3);
        let wild = refused(ApiRefusal::Slower(Duration::from_secs(2_000_000_000)));
        assert_eq!(polling.failed(&wild, 0.5), AfterFailure::Pause(LONGEST_ASKED));
        polling.took(None, 0);
        assert_eq!(polling.failures(), 0);
        assert!(matches!(
            polling.failed(&refused(ApiRefusal::Token), 0.5),
            AfterFailure::End(Exit::Refused(_))
        ));
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_asked_for_one_by_one() {
        let mut polling = Polling::new(None);
        let unread = |update| BotApiError::Unread { what: "too long".to_owned(), update };
        let at_once = AfterFailure::Pause(Duration::ZERO);
        assert_eq!(polling.failed(&unread(Some(7)), 0.5), at_once, "another of them may be it");
        assert_eq!(polling.ask(0).limit, 1);
        assert!(
            matches!(polling.failed(&unread(None), 0.5), AfterFailure::Pause(_)),
            "no answer with updates"
        );
        assert_eq!(polling.failed(&unread(Some(7)), 0.5), AfterFailure::PassOver(7));
        assert_eq!(polling.took(Some(7), 0), Some(Taken { update: 7, at: 0 }));
        assert_eq!(polling.ask(0), UpdatesRequest { offset: Some(8), limit: 100 });
        for _ in 0..2 {
            let absurd = polling.failed(&unread(Some(i64::MAX)), 0.5);
            assert!(matches!(absurd, AfterFailure::Pause(_)), "no such number is taken for the last one");
        }
    }
}
