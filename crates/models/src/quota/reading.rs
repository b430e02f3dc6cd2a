//! Shared helpers of the answer readers: numbers as providers write them.

use openclaw_protocol::params::usage::UsageWindow;
use serde_json::Value;

/// Numbers below this are seconds, others milliseconds since 1970.
const MILLISECONDS_FROM: f64 = 1e11;

/// A number, or the text of one.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    number.is_finite().then_some(number)
}

/// A point in time in Unix milliseconds: seconds, milliseconds or RFC 3339.
pub(super) fn time(value: &Value) -> Option<i64> {
    if let Some(number) = number(value).filter(|number| *number > 0.0) {
        let milliseconds = if number < MILLISECONDS_FROM { number * 1000.0 } else { number };
        #[expect(clippy::cast_possible_truncation, reason = "finite; as saturates")]
        return Some(milliseconds as i64);
    }
    let at: jiff::Timestamp = value.as_str()?.trim().parse().ok()?;
    Some(at.as_millisecond())
}

/// Text that says something.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A window.
pub(super) fn window(label: impl Into<String>, used_percent: f64, reset_at: Option<i64>) -> UsageWindow {
    UsageWindow { label: label.into(), used_percent: percent(used_percent), reset_at }
}

/// Limits the value to 0–100 and removes the noise of subtractions.
fn percent(value: f64) -> f64 {
    (value.clamp(0.0, 100.0) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read_in_all_forms() {
        let rows = [
            (json!(1_769_616_000), Some(1_769_616_000_000)),
            (json!(1_769_616_000_000_i64), Some(1_769_616_000_000)),
            (json!("1769616000"), Some(1_769_616_000_000)),
            (json!("2026-01-28T16:00:00.5+00:00"), Some(1_769_616_000_500)),
            (json!("2026-01-28T16:00:00Z"), Some(1_769_616_000_000)),
            (json!("soon"), None),
            (json!(0), None),
            (json!(null), None),
        ];
        for (value, expect) in rows {
            assert_eq!(time(&value), expect, "{value}");
        }
    }

    #[test]
    fn percentages_are_bounded() {
        let of = |used: f64| window("x", used, None).used_percent;
        assert_eq!([of(-3.0), of(12.5), of(250.0), of((1.0 - 0.6) * 100.0)], [0.0, 12.5, 100.0, 40.0]);
    }
}
