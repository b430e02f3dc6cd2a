//! The user's clock: zone, date formats, the prefix of messages (spec `agent-runtime.md` §1.3, §5.1). Pure: the moment and
//! the zone are given.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use openclaw_config::settings::TimeFormat;

/// Clock format: 12 or 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HourFormat {
    /// `20:30`
    #[default]
    TwentyFour,
    /// `8:30 PM`
    Twelve,
}

impl HourFormat {
    /// `agents.defaults.timeFormat`: `12` and `24` are taken at their word; `auto` looks at the locale (`LC_ALL`, `LC_TIME`, else
    /// `LANG`), where only the few twelve-hour countries say twelve.
    pub fn resolve(setting: TimeFormat, locale: Option<&str>) -> Self {
        match setting {
            TimeFormat::Twelve => Self::Twelve,
            TimeFormat::TwentyFour => Self::TwentyFour,
            TimeFormat::Auto => {
                const TWELVE: [&str; 6] = ["en_US", "en_CA", "en_AU", "en_NZ", "en_PH", "en_IN"];
                let twelve = locale.is_some_and(|locale| TWELVE.iter().any(|name| locale.starts_with(name)));
                if twelve { Self::Twelve } else { Self::TwentyFour }
            }
        }
    }
}

/// The user's zone: the configured one if it exists, else the host's, else UTC.
pub fn user_zone(configured: Option<&str>) -> TimeZone {
    let named =
        configured.map(str::trim).filter(|name| !name.is_empty()).and_then(|name| TimeZone::get(name).ok());
    named.unwrap_or_else(|| TimeZone::try_system().unwrap_or(TimeZone::UTC))
}

/// The zone's name for the prompt: IANA, or `UTC` where the host has none.
pub fn zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

/// `Wednesday, January 28th, 2026 — 20:30`
pub fn user_time(at: Timestamp, zone: &TimeZone, format: HourFormat) -> String {
    let local = at.to_zoned(zone.clone());
    let day = local.day();
    let date = format!("{} {day}{}, {}", local.strftime("%A, %B"), ordinal(day), local.year());
    let time = match format {
        HourFormat::TwentyFour => local.strftime("%H:%M").to_string(),
        HourFormat::Twelve => local.strftime("%-I:%M %p").to_string(),
    };
    format!("{date} \u{2014} {time}")
}

fn ordinal(day: i8) -> &'static str {
    match (day, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// Puts `[Wed 2026-01-28 20:30 EST] ` before a message, so that the model knows when it was said. A blank message, one
/// that already carries a time, and one that tells the current time stay as they are.
pub fn with_timestamp(text: &str, at: Timestamp, zone: &TimeZone) -> String {
    if text.trim().is_empty() || has_timestamp(text) || text.contains("Current time: ") {
        return text.to_owned();
    }
    format!("{}{text}", timestamp_prefix(at, zone))
}

/// The prefix alone, with its trailing space.
pub fn timestamp_prefix(at: Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    format!("[{} {}] ", local.strftime("%a %Y-%m-%d %H:%M"), zone_label(&local))
}

/// Labels of zones with their offsets in hours, as `CLDR` has them for en-US: only these have letters.
const LABELS: [(&str, i32); 14] = [
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("AKST", -9),
    ("AKDT", -8),
    ("HST", -10),
    ("HDT", -9),
    ("AST", -4),
    ("ADT", -3),
];
/// Zones that are no place.
const UTC: [&str; 6] = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "Zulu"];

/// A zone as people of the reference know it: `EST`, `GMT+5:30`, `UTC`.
pub fn zone_label(local: &jiff::Zoned) -> String {
    let label = local.strftime("%Z").to_string();
    let seconds = local.offset().seconds();
    if LABELS.iter().any(|(known, hours)| *known == label && hours * 3600 == seconds) {
        return label;
    }
    if seconds == 0 {
        let is_utc = local.time_zone().iana_name().is_none_or(|name| UTC.contains(&name));
        return if is_utc { "UTC" } else { "GMT" }.to_owned();
    }
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    match minutes % 60 {
        0 => format!("GMT{sign}{}", minutes / 60),
        rest => format!("GMT{sign}{}:{rest:02}", minutes / 60),
    }
}

/// `^\[.*\d{4}-\d{2}-\d{2} \d{2}:\d{2}` on the first line.
fn has_timestamp(text: &str) -> bool {
    const SHAPE: &str = "dddd-dd-dd dd:dd";
    let Some(line) = text.strip_prefix('[').and_then(|tail| tail.lines().next()) else { return false };
    line.char_indices().any(|(at, _)| line.get(at..at + SHAPE.len()).is_some_and(|part| digits(part, SHAPE)))
}

/// Returns true if the text has this shape, where `d` stands for a digit.
fn digits(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(c, s)| if s == 'd' { c.is_ascii_digit() } else { c == s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Vectors of spec `agent-runtime.md` §1.3.
    #[test]
    fn messages_get_the_time_they_were_said() {
        let rows = [
            ("Is it the weekend?", "[Wed 2026-01-28 20:30 EST] Is it the weekend?"),
            ("[Telegram Bob 2026-01-28 20:30 EST] hi", "[Telegram Bob 2026-01-28 20:30 EST] hi"),
            ("It is. Current time: Wed 1", "It is. Current time: Wed 1"),
            (" ", " "),
            (
                "[x] 2026-01-28\n2026-01-28 20:30",
                "[Wed 2026-01-28 20:30 EST] [x] 2026-01-28\n2026-01-28 20:30",
            ),
        ];
        for (input, expect) in rows {
            assert_eq!(
                with_timestamp(input, at("2026-01-29T01:30:00Z"), &zone("America/New_York")),
                expect,
                "{input:?}"
            );
        }
        assert_eq!(
            timestamp_prefix(at("2026-11-21T02:45:00Z"), &TimeZone::UTC),
            "[Sat 2026-11-21 02:45 UTC] "
        );
        assert_eq!(
            timestamp_prefix(at("2026-07-01T12:00:00Z"), &zone("Asia/Kathmandu")),
            "[Wed 2026-07-01 17:45 GMT+5:45] "
        );
        assert_eq!(
            timestamp_prefix(at("2026-07-01T12:00:00Z"), &zone("America/Sao_Paulo")),
            "[Wed 2026-07-01 09:00 GMT-3] "
        );
    }

    /// Zone names of spec `messages.md` §1.1, in January and July.
    #[test]
    fn zones_are_named_as_people_of_the_reference_know_them() {
        let rows = [
            ("Europe/London", "GMT", "GMT+1"),
            ("Europe/Berlin", "GMT+1", "GMT+2"),
            ("America/New_York", "EST", "EDT"),
            ("America/Halifax", "AST", "ADT"),
            ("America/St_Johns", "GMT-3:30", "GMT-2:30"),
            ("Asia/Kolkata", "GMT+5:30", "GMT+5:30"),
            ("Asia/Tokyo", "GMT+9", "GMT+9"),
            ("Australia/Sydney", "GMT+11", "GMT+10"),
            ("America/Phoenix", "MST", "MST"),
            ("America/Havana", "GMT-5", "GMT-4"),
            ("America/Mexico_City", "CST", "CST"),
            ("America/Regina", "CST", "CST"),
            ("America/Panama", "EST", "EST"),
            ("America/Jamaica", "EST", "EST"),
            ("America/Puerto_Rico", "AST", "AST"),
            ("Etc/UTC", "UTC", "UTC"),
            ("GMT", "UTC", "UTC"),
        ];
        for (zone, january, july) in rows {
            let zone = TimeZone::get(zone).unwrap();
            let named = |text: &str| zone_label(&text.parse::<Timestamp>().unwrap().to_zoned(zone.clone()));
            let found = (named("2025-01-15T12:00:00Z"), named("2025-07-15T12:00:00Z"));
            assert_eq!(found, (january.to_owned(), july.to_owned()), "{zone:?}");
        }
    }

    /// Vectors of spec `agent-runtime.md` §5.1.
    #[test]
    fn the_users_time_is_written_out() {
        let moment = at("2026-01-28T19:30:00Z");
        let berlin = zone("Europe/Berlin");
        assert_eq!(
            user_time(moment, &berlin, HourFormat::TwentyFour),
            "Wednesday, January 28th, 2026 — 20:30"
        );
        assert_eq!(user_time(moment, &berlin, HourFormat::Twelve), "Wednesday, January 28th, 2026 — 8:30 PM");
        let days = [
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (4, "4th"),
            (11, "11th"),
            (12, "12th"),
            (13, "13th"),
            (21, "21st"),
            (22, "22nd"),
            (23, "23rd"),
            (31, "31st"),
        ];
        for (day, expect) in days {
            let text =
                user_time(at(&format!("2026-01-{day:02}T12:00:00Z")), &TimeZone::UTC, HourFormat::TwentyFour);
            assert!(text.contains(&format!("January {expect}, 2026")), "{text}");
        }
    }

    #[test]
    fn an_unknown_zone_falls_back_to_the_hosts() {
        assert_eq!(user_zone(Some("Nope/Zone")), user_zone(None));
        assert_eq!(zone_name(&user_zone(Some("Europe/Berlin"))), "Europe/Berlin");
        assert_eq!(zone_name(&TimeZone::UTC), "UTC");
    }

    #[test]
    fn the_hour_format_follows_setting_then_locale() {
        let rows = [
            (TimeFormat::Twelve, None, HourFormat::Twelve),
            (TimeFormat::TwentyFour, Some("en_US.UTF-8"), HourFormat::TwentyFour),
            (TimeFormat::Auto, Some("en_US.UTF-8"), HourFormat::Twelve),
            (TimeFormat::Auto, Some("de_DE"), HourFormat::TwentyFour),
            (TimeFormat::Auto, None, HourFormat::TwentyFour),
        ];
        for (setting, locale, expect) in rows {
            assert_eq!(HourFormat::resolve(setting, locale), expect);
        }
    }
}
