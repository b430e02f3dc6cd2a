//! The hours of the day in which heartbeats are made. Pure: the moment and the zones are given.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use openclaw_agent::user_time::user_zone;
use openclaw_config::settings::ActiveHours;

/// True if a beat is made at this moment. Hours that can't be read, or of no length, are all hours:
/// a typing error does not silence an agent.
pub(super) fn are_now(hours: Option<&ActiveHours>, now: Timestamp, user_timezone: Option<&str>) -> bool {
    let Some(hours) = hours else { return true };
    let (Some(start), Some(end)) = (
        hours.start.as_deref().and_then(|text| minute(text, Midnight::Refused)),
        hours.end.as_deref().and_then(|text| minute(text, Midnight::EndOfDay)),
    ) else {
        return true;
    };
    let local = now.to_zoned(zone(hours.timezone.as_deref(), user_timezone));
    let minute = i32::from(local.hour()) * 60 + i32::from(local.minute());
    match start.cmp(&end) {
        std::cmp::Ordering::Equal => true,
        std::cmp::Ordering::Less => (start..end).contains(&minute),
        std::cmp::Ordering::Greater => minute >= start || minute < end,
    }
}

/// `user` and what can't be found mean the user's zone, `local` the host's.
fn zone(asked: Option<&str>, user_timezone: Option<&str>) -> TimeZone {
    match asked.map(str::trim).unwrap_or_default() {
        "" | "user" => user_zone(user_timezone),
        "local" => user_zone(None),
        name => TimeZone::get(name).unwrap_or_else(|_| user_zone(user_timezone)),
    }
}

/// Meaning of `24:00`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Midnight {
    /// Invalid: `24:00` is no time.
    Refused,
    /// The end of the day.
    EndOfDay,
}

/// Minutes since midnight of `HH:MM`.
fn minute(text: &str, midnight: Midnight) -> Option<i32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let two_digits = |part: &str| {
        let is_plain = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| part.parse::<i32>().ok()).flatten()
    };
    match (two_digits(hour)?, two_digits(minute)?) {
        (24, 0) if midnight == Midnight::EndOfDay => Some(24 * 60),
        (hour @ 0..=23, minute @ 0..=59) => Some(hour * 60 + minute),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `agent-runtime.md` §11.1.
    #[test]
    fn beats_are_made_from_the_first_minute_to_before_the_last() {
        let rows = [
            ("08:00", "24:00", "UTC", "07:59", false),
            ("08:00", "24:00", "UTC", "08:00", true),
            ("08:00", "24:00", "UTC", "23:59", true),
            ("22:00", "06:00", "UTC", "23:00", true),
            ("22:00", "06:00", "UTC", "05:59", true),
            ("22:00", "06:00", "UTC", "06:00", false),
            ("22:00", "06:00", "UTC", "12:00", false),
            ("09:00", "09:00", "UTC", "03:00", true),
            ("08:00", "25:00", "UTC", "03:00", true),
            ("24:00", "06:00", "UTC", "12:00", true),
            ("8:00", "09:00", "UTC", "03:00", true),
            // New York is five hours behind, the user's Tokyo nine before.
            ("08:00", "09:00", "America/New_York", "13:30", true),
            ("08:00", "09:00", "America/New_York", "08:30", false),
            ("08:00", "09:00", "user", "23:30", true),
            ("08:00", "09:00", "Nope/Zone", "23:30", true),
            ("08:00", "09:00", "", "08:30", false),
        ];
        for (start, end, timezone, now, expect) in rows {
            let owned = |text: &str| Some(text.to_owned());
            let hours = ActiveHours { start: owned(start), end: owned(end), timezone: owned(timezone) };
            let now = format!("2026-01-28T{now}:00Z").parse().unwrap();
            assert_eq!(
                are_now(Some(&hours), now, Some("Asia/Tokyo")),
                expect,
                "{start}-{end} {timezone} {now}"
            );
        }
        assert!(are_now(None, Timestamp::UNIX_EPOCH, None));
        assert!(are_now(Some(&ActiveHours::default()), Timestamp::UNIX_EPOCH, None));
    }
}
