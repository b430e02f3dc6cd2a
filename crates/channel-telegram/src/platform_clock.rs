//! Error of this machine's clock, measured by the `Date` of Telegram's answers: the age of a
//! message is judged by the sender's clock (spec `channels.md` §3.9).
//!
//! Corrections of the clock differ in safety. Judging a message as *later* than our clock says can
//! only keep commands from being obeyed, so that one answer is enough for it. Judging it as
//! *fresher* makes commands obeyed that seem old, so that the last three answers must agree on it,
//! and the smallest difference counts. An answer that was held up on its way (a cache, a machine
//! that slept) is not used as a source of the time. Telegram itself, or whoever can answer in its
//! place, could forge the times of messages just as well; nobody else can change what is judged
//! here.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// A difference that is no larger says nothing; Unix milliseconds, as all here.
const SMALLEST: i64 = 60_000;
/// Error in milliseconds up to which a clock warning is withdrawn again. The warning is repeated
/// once the error has changed by [`CHANGES`]. A clock that is wrong by about [`SMALLEST`], or that
/// answers of different speed measure differently, thus does not cause repeated warnings.
const AGREES: i64 = 15_000;
const CHANGES: i64 = 2 * 60_000;
/// Answers that are looked at together.
const LAST: usize = 3;
/// An answer that took longer may have been held up on its way.
const LONGEST: i64 = 60_000;

/// Samples of the platform's clock. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct PlatformClock(Arc<Mutex<Samples>>);

#[derive(Debug, Default)]
struct Samples {
    last: VecDeque<i64>,
    /// Lead of our clock that the owner was last told; 0 means that it is right.
    told: i64,
}

impl PlatformClock {
    /// An answer came to a request; `date` is what it says of the time.
    pub(super) fn answered(&self, asked_at: i64, answered_at: i64, date: Option<&str>) {
        let Some(sample) = sample(asked_at, answered_at, date) else { return };
        let mut samples = self.0.lock();
        keep(&mut samples.last, sample);
        let Some(ahead) = news(samples.told, &samples.last) else { return };
        samples.told = ahead;
        match ahead {
            0 => tracing::info!("this machine's clock agrees with Telegram's again"),
            _ => tracing::error!(
                "{}. {}",
                openclaw_channels::clock_is_wrong(ahead, "Telegram"),
                openclaw_channels::SET_THE_CLOCK
            ),
        }
    }

    /// Returns the lead of our clock; negative if it is behind, 0 if it is right as far as is
    /// known.
    pub(super) fn ahead(&self) -> i64 {
        ahead(&self.0.lock().last)
    }
}

/// Returns the lead of our clock according to one answer, which was written between the request and
/// its arrival.
fn sample(asked_at: i64, answered_at: i64, date: Option<&str>) -> Option<i64> {
    if !(0..=LONGEST).contains(&answered_at.saturating_sub(asked_at)) {
        return None;
    }
    let said = jiff::fmt::rfc2822::parse(date?.trim()).ok()?.timestamp().as_millisecond();
    // The `Date` header has whole seconds.
    match (asked_at.saturating_sub(said), answered_at.saturating_sub(said)) {
        (since_asked, _) if since_asked > 0 => Some(since_asked),
        (_, since_answered) if since_answered < 0 => Some(since_answered),
        _ => Some(0),
    }
}

fn keep(last: &mut VecDeque<i64>, sample: i64) {
    last.push_back(sample);
    if last.len() > LAST {
        last.pop_front();
    }
}

fn ahead(last: &VecDeque<i64>) -> i64 {
    let (Some(least), Some(most)) = (last.iter().min(), last.iter().max()) else { return 0 };
    let do_agree = last.len() == LAST && most.saturating_sub(*least) <= SMALLEST;
    match *least {
        least if least < -SMALLEST => least,
        least if least > SMALLEST && do_agree => least,
        _ => 0,
    }
}

/// Returns the lead of our clock if the owner is to be told; 0 means that it agrees again.
fn news(told: i64, last: &VecDeque<i64>) -> Option<i64> {
    match ahead(last) {
        0 => {
            let agrees = last.len() == LAST && last.iter().all(|sample| sample.abs() <= AGREES);
            (told != 0 && agrees).then_some(0)
        }
        ahead => (told == 0 || ahead.abs_diff(told) >= CHANGES.unsigned_abs()).then_some(ahead),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    #[test]
    fn later_is_believed_at_once_and_fresher_when_three_answers_agree() {
        let rows: [(&[i64], i64); 13] = [
            (&[], 0),
            (&[0], 0),
            (&[-MINUTE], 0),
            // We are behind.
            (&[-10 * MINUTE], -10 * MINUTE),
            (&[0, 0, -10 * MINUTE], -10 * MINUTE),
            (&[-10 * MINUTE, 0, 0], -10 * MINUTE),
            // We are ahead.
            (&[10 * MINUTE], 0),
            (&[10 * MINUTE, 10 * MINUTE], 0),
            (&[10 * MINUTE, 10 * MINUTE + 5, 10 * MINUTE + 9], 10 * MINUTE),
            (&[MINUTE, MINUTE, MINUTE], 0),
            (&[0, 10 * MINUTE, 10 * MINUTE], 0),
            // An old answer that is given again and again.
            (&[10 * MINUTE, 10 * MINUTE + 31_000, 10 * MINUTE + 62_000], 0),
            (&[10 * MINUTE, -2 * MINUTE, 10 * MINUTE], -2 * MINUTE),
        ];
        for (last, expect) in rows {
            assert_eq!(ahead(&last.iter().copied().collect()), expect, "{last:?}");
        }
    }

    #[test]
    fn a_clock_is_told_of_when_it_changes_by_enough() {
        const SECOND: i64 = 1_000;
        let three = |sample: i64| [sample; LAST];
        // Rows: the differences in a sequence of answers, and the warnings.
        let rows: [(Vec<i64>, &[i64]); 7] = [
            // About a minute, on either side of the line.
            (
                [62, 58, 62, 62, 62, 40, 62, 62, 62, 30, 30, 30, 62, 62, 62].map(|n| n * SECOND).to_vec(),
                &[62 * SECOND],
            ),
            ([-62, -58, -62, -58, -58, -58, -62].map(|n| n * SECOND).to_vec(), &[-62 * SECOND]),
            // The clock is set, and goes wrong again.
            ([three(5 * MINUTE), three(0), three(5 * MINUTE)].concat(), &[5 * MINUTE, 0, 5 * MINUTE]),
            ([three(5 * MINUTE), three(16 * SECOND), three(AGREES)].concat(), &[5 * MINUTE, 0]),
            // The error grows, or changes its direction.
            ([three(5 * MINUTE), three(6 * MINUTE), three(7 * MINUTE)].concat(), &[5 * MINUTE, 7 * MINUTE]),
            ([three(5 * MINUTE), three(-5 * MINUTE)].concat(), &[5 * MINUTE, -5 * MINUTE]),
            (three(30 * SECOND).to_vec(), &[]),
        ];
        for (samples, expect) in rows {
            let (mut told, mut said, mut last) = (0, Vec::new(), VecDeque::new());
            for sample in samples.iter().copied() {
                keep(&mut last, sample);
                if let Some(news) = news(told, &last) {
                    said.push(news);
                    told = news;
                }
            }
            assert_eq!(said, expect, "{samples:?}");
        }
    }

    #[test]
    fn an_answer_tells_the_time_if_it_was_not_held_up() {
        // 1996-12-19T16:39:57Z
        const DATE: &str = "Thu, 19 Dec 1996 16:39:57 GMT";
        const AT: i64 = 851_013_597_000;
        let rows = [
            (AT - 100, AT + 900, Some(DATE), Some(0)),
            (AT, AT + 30_000, Some(DATE), Some(0)),
            (AT + 5 * MINUTE, AT + 5 * MINUTE + 30_000, Some(DATE), Some(5 * MINUTE)),
            (AT - 5 * MINUTE - 30_000, AT - 5 * MINUTE, Some(DATE), Some(-5 * MINUTE)),
            (AT, AT + 61_000, Some(DATE), None),
            (AT, AT - 1, Some(DATE), None),
            (AT, AT, None, None),
            (AT, AT, Some("yesterday"), None),
            (i64::MAX, i64::MAX, Some(DATE), Some(i64::MAX - AT)),
        ];
        for (asked_at, answered_at, date, expect) in rows {
            assert_eq!(sample(asked_at, answered_at, date), expect, "{asked_at} {answered_at} {date:?}");
        }
    }
}
