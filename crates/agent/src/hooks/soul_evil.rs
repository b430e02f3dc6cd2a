//! `soul-evil`: whether the agent has another soul in this run (spec `agent-runtime.md` §8.3).

use jiff::Zoned;
use openclaw_config::{DurationUnit, parse_duration};
use serde_json::{Map, Value};

/// The file of the other soul, where the settings name none.
const DEFAULT_FILE: &str = "SOUL_EVIL.md";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Settings of the hook, from `hooks.internal.entries.soul-evil`.
#[derive(Debug, Clone, PartialEq)]
pub struct SoulEvil {
    /// Name of the other soul's file in the workspace.
    pub file: String,
    /// Probability, from 0 to 1.
    chance: f64,
    purge: Option<Purge>,
}

/// A time of the day in which it is always so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Purge {
    /// Milliseconds after midnight.
    at: u64,
    /// Milliseconds.
    duration: u64,
}

/// Reason why the soul is swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwapReason {
    /// The current time is inside the purge window.
    Purge,
    /// The random roll was below the chance.
    Chance,
}

impl SoulEvil {
    /// Reads the settings. Invalid settings count as missing.
    pub fn read(settings: &Map<String, Value>) -> Self {
        let file =
            settings.get("file").and_then(Value::as_str).map(str::trim).filter(|file| !file.is_empty());
        let chance = settings.get("chance").and_then(Value::as_f64).unwrap_or(0.0);
        Self {
            file: file.unwrap_or(DEFAULT_FILE).to_owned(),
            chance: chance.clamp(0.0, 1.0),
            purge: settings.get("purge").and_then(Purge::read),
        }
    }

    /// Returns the reason if the soul is swapped now. `roll` is evenly spread from 0 to 1, 1
    /// excluded.
    pub fn decide(&self, now: &Zoned, roll: f64) -> Option<SwapReason> {
        if self.purge.is_some_and(|purge| purge.holds(now)) {
            return Some(SwapReason::Purge);
        }
        (roll < self.chance).then_some(SwapReason::Chance)
    }
}

impl Purge {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let duration = parse_duration(text("duration")?, DurationUnit::Minutes).ok().filter(|ms| *ms > 0)?;
        Some(Self { at: time_of_day(text("at")?)?, duration })
    }

    /// The time of the day is that on the user's clock; the window may go on after midnight.
    fn holds(self, now: &Zoned) -> bool {
        let seconds = |part: i8| u64::try_from(part).unwrap_or_default();
        let minutes = seconds(now.hour()) * 60 + seconds(now.minute());
        let time = (minutes * 60 + seconds(now.second())) * 1_000
            + u64::try_from(now.millisecond()).unwrap_or_default();
        (time + DAY_MS - self.at) % DAY_MS < self.duration
    }
}

/// `HH:mm` in milliseconds after midnight.
fn time_of_day(text: &str) -> Option<u64> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        let is_number = digits.contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours, 1..=2)?, number(minutes, 2..=2)?);
    (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60_000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn soul(settings: &Value) -> SoulEvil {
        SoulEvil::read(settings.as_object().unwrap())
    }

    fn decided(settings: &Value, time: &str, roll: f64) -> Option<SwapReason> {
        let now: Zoned = format!("2026-02-09T{time}[Europe/Vienna]").parse().unwrap();
        soul(settings).decide(&now, roll)
    }

    /// Vectors of the specification.
    #[test]
    fn the_purge_is_a_time_of_the_users_day() {
        let rows = [
            ("21:00", "15m", "21:00:00", true),
            ("21:00", "15m", "21:14:59", true),
            ("21:00", "15m", "21:15:00", false),
            ("21:00", "15m", "20:59:59", false),
            ("23:55", "10m", "00:04:00", true),
            ("23:55", "10m", "00:05:00", false),
            ("03:00", "24h", "02:59:59", true),
            ("03:00", "30h", "12:00:00", true),
            ("24:00", "30h", "12:00:00", false),
            ("9:05", "10", "09:14:59", true),
            ("9:60", "10m", "09:59:59", false),
            ("nine", "10m", "09:00:00", false),
            ("09:00", "0m", "09:00:00", false),
            ("09:00", "soon", "09:00:00", false),
        ];
        for (at, duration, time, expect) in rows {
            let found = decided(&json!({"purge": {"at": at, "duration": duration}}), time, 0.5);
            assert_eq!(found, expect.then_some(SwapReason::Purge), "{at} {duration} {time}");
        }
    }

    #[test]
    fn chance_comes_after_the_purge() {
        let rows = [
            (json!({"chance": 2}), 0.999, Some(SwapReason::Chance)),
            (json!({"chance": 0.1}), 0.099, Some(SwapReason::Chance)),
            (json!({"chance": 0.1}), 0.1, None),
            (json!({"chance": -1}), 0.0, None),
            (json!({"chance": "often"}), 0.0, None),
            (json!({}), 0.0, None),
            (json!({"chance": 1, "purge": {"at": "12:00", "duration": "1m"}}), 0.0, Some(SwapReason::Purge)),
        ];
        for (settings, roll, expect) in rows {
            assert_eq!(decided(&settings, "12:00:30", roll), expect, "{settings}");
        }
    }

    #[test]
    fn the_other_soul_has_a_file() {
        assert_eq!(soul(&json!({})).file, "SOUL_EVIL.md");
        assert_eq!(soul(&json!({"file": " other.md "})).file, "other.md");
        assert_eq!(soul(&json!({"file": 5})).file, "SOUL_EVIL.md");
    }
}
