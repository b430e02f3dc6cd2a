//! Quotas for people: one line for status cards, several for reports. Pure.

use openclaw_protocol::params::usage::{ProviderUsage, UsageWindow};

const MINUTE: i64 = 60_000;

/// Formats a provider as one line, such as `5h 75% left ⏱2h 5m · Week 60% left`; at most `most`
/// windows. `None` if there is nothing to report. `now` is Unix milliseconds.
pub fn summary(provider: &ProviderUsage, most: usize, now: i64) -> Option<String> {
    if provider.error.is_some() || provider.windows.is_empty() {
        return None;
    }
    let windows = provider.windows.iter().take(most.max(1)).map(|window| {
        let resets = window.reset_at.map(|at| format!(" ⏱{}", until(at, now))).unwrap_or_default();
        format!("{} {} left{resets}", window.label, left(window))
    });
    Some(windows.collect::<Vec<_>>().join(" · "))
}

/// All providers, a block each.
pub fn report(providers: &[ProviderUsage], now: i64) -> Vec<String> {
    if providers.is_empty() {
        return vec!["Usage: no provider usage available.".to_owned()];
    }
    let mut lines = vec!["Usage:".to_owned()];
    for provider in providers {
        let plan = provider.plan.as_ref().map(|plan| format!(" ({plan})")).unwrap_or_default();
        let head = format!("  {}{plan}", provider.display_name);
        match &provider.error {
            Some(error) => lines.push(format!("{head}: {error}")),
            None if provider.windows.is_empty() => lines.push(format!("{head}: no data")),
            None => {
                lines.push(head);
                lines.extend(provider.windows.iter().map(|window| {
                    let resets = window.reset_at.map(|at| format!(" · resets {}", until(at, now)));
                    format!("    {}: {} left{}", window.label, left(window), resets.unwrap_or_default())
                }));
            }
        }
    }
    lines
}

fn left(window: &UsageWindow) -> String {
    format!("{:.0}%", (100.0 - window.used_percent).clamp(0.0, 100.0))
}

/// Formats the time until a window is reset: `now`, `5m`, `2h 5m`, `3d 4h`, or a date.
fn until(at: i64, now: i64) -> String {
    let minutes = at.saturating_sub(now) / MINUTE;
    let (hours, rest) = (minutes / 60, minutes % 60);
    match (at > now, hours / 24) {
        (false, _) => "now".to_owned(),
        (true, 0) if hours == 0 => format!("{minutes}m"),
        (true, 0) if rest == 0 => format!("{hours}h"),
        (true, 0) => format!("{hours}h {rest}m"),
        (true, days @ 1..=6) => format!("{days}d {}h", hours % 24),
        (true, _) => jiff::Timestamp::from_millisecond(at)
            .map(|at| at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%b %-d").to_string())
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * MINUTE;

    #[test]
    fn what_is_left_of_time_is_short() {
        let rows = [
            (-1, "now"),
            (0, "now"),
            (59_000, "0m"),
            (5 * MINUTE, "5m"),
            (2 * HOUR, "2h"),
            (2 * HOUR + 5 * MINUTE, "2h 5m"),
            (76 * HOUR, "3d 4h"),
            (200 * HOUR, "Feb 6"),
        ];
        let now = 1_769_616_000_000;
        for (after, expect) in rows {
            assert_eq!(until(now + after, now), expect, "{after}");
        }
    }

    #[test]
    fn quotas_are_told_in_a_line_and_in_a_report() {
        let window = |label: &str, used_percent: f64, reset_at: Option<i64>| UsageWindow {
            label: label.to_owned(),
            used_percent,
            reset_at,
        };
        let provider =
            |name: &str| ProviderUsage { display_name: name.to_owned(), ..ProviderUsage::default() };
        let claude = ProviderUsage {
            windows: vec![
                window("5h", 25.0, Some(2 * HOUR)),
                window("Week", 40.4, None),
                window("Opus", 0.0, None),
            ],
            plan: Some("max".to_owned()),
            ..provider("Claude")
        };
        let failed = ProviderUsage { error: Some("Token expired".to_owned()), ..provider("Codex") };
        assert_eq!(summary(&claude, 2, 0).as_deref(), Some("5h 75% left ⏱2h · Week 60% left"));
        assert_eq!(summary(&failed, 2, 0), None);
        let lines = report(&[claude, failed, provider("Xiaomi")], 0);
        let expect = [
            "Usage:",
            "  Claude (max)",
            "    5h: 75% left · resets 2h",
            "    Week: 60% left",
            "    Opus: 100% left",
            "  Codex: Token expired",
            "  Xiaomi: no data",
        ];
        assert_eq!(lines, expect);
        assert_eq!(report(&[], 0), ["Usage: no provider usage available."]);
    }
}
