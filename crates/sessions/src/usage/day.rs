//! Days of UTC, and the range of them a client asks for.

use std::fmt;

use jiff::{Span, civil};

const EPOCH: civil::Date = civil::date(1970, 1, 1);
const MS_PER_DAY: i64 = 86_400_000;
/// The last day of year 9999.
const LAST: i32 = 2_932_896;

/// A day of UTC, from 1970-01-01 to 9999-12-31.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// The day of a moment in Unix milliseconds; nothing when it lies outside of what can be.
    pub fn of(ms: i64) -> Option<Self> {
        let day = i32::try_from(ms.div_euclid(MS_PER_DAY)).ok()?;
        (0..=LAST).contains(&day).then_some(Self(day))
    }

    /// Reads `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Self> {
        let shaped = text.len() == 10 && text.is_ascii();
        let date: civil::Date = text.parse().ok().filter(|_| shaped)?;
        let day = (date - EPOCH).get_days();
        (0..=LAST).contains(&day).then_some(Self(day))
    }

    /// Start of the day, Unix milliseconds.
    pub fn start_ms(self) -> i64 {
        i64::from(self.0) * MS_PER_DAY
    }

    /// Day so many days earlier, but not before the first possible one.
    fn back(self, days: u64) -> Self {
        Self(self.0.saturating_sub(i32::try_from(days).unwrap_or(i32::MAX)).max(0))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every day up to `LAST` has a date.
        let date = Span::new().try_days(self.0).and_then(|span| EPOCH.checked_add(span)).unwrap_or(EPOCH);
        write!(f, "{date}")
    }
}

/// Days from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    /// The first.
    pub first: Day,
    /// The last; never before the first.
    pub last: Day,
}

/// Reason why texts name no range of days.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The date is not of the form.
    #[error("at /{0}: must match pattern \"^\\d{{4}}-\\d{{2}}-\\d{{2}}$\"")]
    Shape(&'static str),
    /// The date is of the form, but not in the calendar.
    #[error("at /{0}: {1} is not a day between 1970-01-01 and 9999-12-31")]
    NoDay(&'static str, String),
    /// The wrong way round.
    #[error("endDate {last} is before startDate {first}")]
    Backwards {
        /// The first day.
        first: Day,
        /// The last.
        last: Day,
    },
}

/// Days that are counted when the client does not say.
const DEFAULT_DAYS: u64 = 30;

impl DayRange {
    /// The range of a request made at `now`: from `start` to `end`, or `days` days (30 unless told) up to `end`, or up to
    /// today. Blank texts count as absent.
    ///
    /// # Errors
    /// When a date is none, or the end comes before the start.
    pub fn of_request(
        start: Option<&str>,
        end: Option<&str>,
        days: Option<u64>,
        now: i64,
    ) -> Result<Self, RangeError> {
        let today = Day::of(now).unwrap_or(Day(0));
        let last = date("endDate", end)?.unwrap_or(today);
        let first = match date("startDate", start)? {
            Some(first) => first,
            None => last.back(days.unwrap_or(DEFAULT_DAYS).max(1) - 1),
        };
        if first > last {
            return Err(RangeError::Backwards { first, last });
        }
        Ok(Self { first, last })
    }

    /// Number of days, both ends counted (KB-34).
    pub fn days(self) -> u64 {
        u64::from(self.last.0.abs_diff(self.first.0)) + 1
    }

    /// True if a day lies in the range.
    pub fn contains(self, day: Day) -> bool {
        (self.first..=self.last).contains(&day)
    }
}

fn date(field: &'static str, text: Option<&str>) -> Result<Option<Day>, RangeError> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let shape =
        |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    if text.len() != 10 || !text.bytes().enumerate().all(shape) {
        return Err(RangeError::Shape(field));
    }
    Day::parse(text).map(Some).ok_or_else(|| RangeError::NoDay(field, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_utc() {
        let rows = [
            (0, "1970-01-01"),
            (86_399_999, "1970-01-01"),
            (86_400_000, "1970-01-02"),
            (1_795_230_115_216, "2026-11-21"),
            (1_709_208_000_000, "2024-02-29"),
            (253_402_300_799_999, "9999-12-31"),
        ];
        for (ms, text) in rows {
            let day = Day::of(ms).unwrap();
            assert_eq!(day.to_string(), text);
            assert_eq!(Day::parse(text), Some(day));
            assert!((day.start_ms()..day.start_ms() + MS_PER_DAY).contains(&ms));
        }
        for ms in [-1, i64::MIN, i64::MAX, 253_402_300_800_000] {
            assert_eq!(Day::of(ms), None, "{ms}");
        }
    }

    #[test]
    fn a_request_names_its_days_exactly() {
        let now = 1_795_230_115_216;
        let range = |start, end, days| DayRange::of_request(start, end, days, now);
        let rows = [
            ((None, None, None), ("2026-10-23", "2026-11-21", 30)),
            ((None, None, Some(2)), ("2026-11-20", "2026-11-21", 2)),
            ((None, None, Some(0)), ("2026-11-21", "2026-11-21", 1)),
            ((None, None, Some(u64::MAX)), ("1970-01-01", "2026-11-21", 20_779)),
            ((Some("2026-11-20"), Some("2026-11-21"), None), ("2026-11-20", "2026-11-21", 2)),
            ((Some("2026-11-20"), None, Some(9)), ("2026-11-20", "2026-11-21", 2)),
            ((None, Some("2026-03-01"), Some(2)), ("2026-02-28", "2026-03-01", 2)),
            ((Some(" "), Some(""), Some(1)), ("2026-11-21", "2026-11-21", 1)),
            ((Some("2026-11-30"), Some("2026-12-01"), None), ("2026-11-30", "2026-12-01", 2)),
        ];
        for ((start, end, days), (first, last, count)) in rows {
            let range = range(start, end, days).unwrap();
            assert_eq!((range.first.to_string().as_str(), range.last.to_string().as_str()), (first, last));
            assert_eq!(range.days(), count);
        }
    }

    #[test]
    fn dates_that_are_none_are_refused() {
        let rows = [
            ((Some("yesterday"), None), r#"at /startDate: must match pattern "^\d{4}-\d{2}-\d{2}$""#),
            ((None, Some("2026-1-1")), r#"at /endDate: must match pattern "^\d{4}-\d{2}-\d{2}$""#),
            ((None, Some("2026-01-01T00")), r#"at /endDate: must match pattern "^\d{4}-\d{2}-\d{2}$""#),
            ((Some("２026-01-01"), None), r#"at /startDate: must match pattern "^\d{4}-\d{2}-\d{2}$""#),
            (
                (Some("2026-02-31"), None),
                "at /startDate: 2026-02-31 is not a day between 1970-01-01 and 9999-12-31",
            ),
            (
                (Some("1969-12-31"), None),
                "at /startDate: 1969-12-31 is not a day between 1970-01-01 and 9999-12-31",
            ),
            ((Some("2026-02-02"), Some("2026-02-01")), "endDate 2026-02-01 is before startDate 2026-02-02"),
            ((Some("2999-01-01"), None), "endDate 2026-11-21 is before startDate 2999-01-01"),
        ];
        for ((start, end), expect) in rows {
            let error = DayRange::of_request(start, end, None, 1_795_230_115_216).unwrap_err();
            assert_eq!(error.to_string(), expect);
        }
    }
}
