//! Log lines for people (spec `operations.md` §4.2).

use std::io::Write;

use openclaw_config::settings::ConsoleStyle;
use tracing::Level;

use super::record::LogRecord;

/// A line for the console, without its end.
pub(super) fn line(record: &LogRecord, style: ConsoleStyle, colour: bool, hostname: &str) -> String {
    let subsystem = short(&record.subsystem);
    match style {
        ConsoleStyle::Json => record.json_line(hostname),
        ConsoleStyle::Compact => {
            let level = record.level.as_str().to_lowercase();
            format!("{} {level} [{subsystem}] {}", record.time(), record.text())
        }
        ConsoleStyle::Pretty => {
            let at = jiff::Timestamp::try_from(record.at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
            let time = at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
            let (on, off) = if colour { paint(record.level) } else { ("", "") };
            format!("{time} [{subsystem}] {on}{}{off}", record.text())
        }
    }
}

/// Prints a line: problems on standard error, everything else on standard output.
pub(super) fn print(record: &LogRecord, line: &str) {
    // Failure means that nobody reads the console any more, so there is nobody to tell.
    let _ = if record.level <= Level::WARN {
        writeln!(std::io::stderr().lock(), "{line}")
    } else {
        writeln!(std::io::stdout().lock(), "{line}")
    };
}

/// Short name of a subsystem: at most two parts, without the prefix that every line of a gateway
/// has.
fn short(subsystem: &str) -> String {
    let rest =
        ["gateway/", "channels/", "providers/"].iter().find_map(|prefix| subsystem.strip_prefix(prefix));
    rest.unwrap_or(subsystem).split('/').take(2).collect::<Vec<_>>().join("/")
}

/// Colours of the palette in `cli.md` §1.
fn paint(level: Level) -> (&'static str, &'static str) {
    match level {
        Level::ERROR => ("\x1b[38;2;226;61;45m", "\x1b[0m"),
        Level::WARN => ("\x1b[38;2;255;176;32m", "\x1b[0m"),
        Level::DEBUG | Level::TRACE => ("\x1b[38;2;139;127;119m", "\x1b[0m"),
        Level::INFO => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn compact_lines_have_time_level_subsystem_and_fields() {
        let record = LogRecord {
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_230_000),
            level: Level::INFO,
            subsystem: "gateway/ws".to_owned(),
            message: "connected".to_owned(),
            fields: serde_json::json!({"conn": "c1", "n": 2}).as_object().unwrap().clone(),
        };
        let expect = "2026-11-21T03:00:00.000Z info [ws] connected conn=c1 n=2";
        assert_eq!(line(&record, ConsoleStyle::Compact, false, "host"), expect);
    }

    #[test]
    fn subsystems_are_shortened() {
        for (long, expect) in
            [("gateway/ws", "ws"), ("gateway", "gateway"), ("channels/telegram/api/x", "telegram/api")]
        {
            assert_eq!(short(long), expect);
        }
    }
}
