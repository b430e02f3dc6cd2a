//! The clock, and time as OpenClaw writes it.

pub use openclaw_config::clock::now_ms;

/// `2026-02-09T10:11:12.123Z`
pub fn iso(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(stamp) => format!("{stamp:.3}"),
        Err(_) => "1970-01-01T00:00:00.000Z".to_owned(),
    }
}

/// Reads an ISO time to Unix milliseconds.
pub fn parse_iso(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|stamp| stamp.as_millisecond())
}

/// `YYYY-MM-DD` in UTC.
pub fn utc_date(ms: i64) -> String {
    iso(ms).split('T').next().unwrap_or_default().to_owned()
}
