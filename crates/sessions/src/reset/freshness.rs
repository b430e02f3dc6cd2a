//! Freshness of a conversation: it goes on, or the next message starts anew (spec `sessions.md`
//! §5.2).

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::{ResetMode, ResetPolicy};

/// Days that a calendar may lack in a row; a zone that crossed the date line lacks one.
const MISSING_DAYS: i64 = 3;

/// True if a conversation last touched at `updated_at` goes on at `now` (both Unix milliseconds).
/// The local day is that of `zone`, with its daylight saving. A conversation without a time is
/// stale; one that was touched in what is now the future (the clock was put back) goes on.
pub fn is_fresh(policy: &ResetPolicy, updated_at: Option<i64>, now: i64, zone: &TimeZone) -> bool {
    let Some(updated_at) = updated_at else { return false };
    let idle_out =
        policy.idle_minutes.is_some_and(|minutes| now > updated_at.saturating_add(minutes * 60_000));
    let day_out = policy.mode == ResetMode::Daily && updated_at < last_daily_reset(policy.at_hour, now, zone);
    !idle_out && !day_out
}

/// The last moment before or at `now` at which a local day's `hour` began, in Unix milliseconds. An hour that a day lacks
/// begins when the clock has jumped over it; of one it has twice the first counts.
pub fn last_daily_reset(hour: i8, now: i64, zone: &TimeZone) -> i64 {
    let Ok(stamp) = Timestamp::from_millisecond(now) else { return i64::MIN };
    let today = stamp.to_zoned(zone.clone()).date();
    let began = |days_ago: i64| {
        let day = today.checked_sub(days_ago.days()).ok()?;
        let moment = day.at(hour, 0, 0, 0).to_zoned(zone.clone()).ok()?;
        Some(moment.timestamp().as_millisecond())
    };
    (0..=MISSING_DAYS).filter_map(began).find(|began| *began <= now).unwrap_or(i64::MIN)
}
