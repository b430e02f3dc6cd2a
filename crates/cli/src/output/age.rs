//! Times and sizes for people.

/// Age in words: `just now`, `5m ago`, `3h ago`, `2d ago`.
pub(crate) fn age(milliseconds: i64) -> String {
    let minutes = (milliseconds.max(0) + 30_000) / 60_000;
    match minutes {
        0 => "just now".to_owned(),
        1..=59 => format!("{minutes}m ago"),
        60..=2_879 => format!("{}h ago", (minutes + 30) / 60),
        _ => format!("{}d ago", (minutes + 720) / 1_440),
    }
}

/// A count of tokens: `950`, `1.0k`, `32k`, `1.2m`.
pub(crate) fn count(tokens: u64) -> String {
    match tokens {
        0..=999 => tokens.to_string(),
        1_000..=9_999 => format!("{}.{}k", tokens / 1_000, (tokens % 1_000) / 100),
        10_000..=999_999 => format!("{}k", (tokens + 500) / 1_000),
        _ => format!("{}.{}m", tokens / 1_000_000, (tokens % 1_000_000) / 100_000),
    }
}

/// Remaining time, roughly: `0m`, `5m`, `3h`, `2d`.
pub(crate) fn remaining(milliseconds: i64) -> String {
    let minutes = match milliseconds {
        ..=0 => return "0m".to_owned(),
        left => (left.saturating_add(30_000) / 60_000).max(1),
    };
    let hours = (minutes + 30) / 60;
    match (minutes, hours) {
        (..=59, _) => format!("{minutes}m"),
        (_, ..=47) => format!("{hours}h"),
        _ => format!("{}d", (hours + 12) / 24),
    }
}

/// Duration in words: `87ms`, `1.2s`; a dash when it did not happen.
pub(crate) fn duration(milliseconds: Option<u64>) -> String {
    match milliseconds {
        None => "-".to_owned(),
        Some(short @ 0..=999) => format!("{short}ms"),
        Some(long) => {
            let tenths = long.saturating_add(50) / 100;
            match tenths % 10 {
                0 => format!("{}s", tenths / 10),
                rest => format!("{}.{rest}s", tenths / 10),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded() {
        let rows =
            [(None, "-"), (Some(0), "0ms"), (Some(999), "999ms"), (Some(1_000), "1s"), (Some(1_240), "1.2s")];
        for (milliseconds, expect) in rows {
            assert_eq!(duration(milliseconds), expect, "{milliseconds:?}");
        }
    }

    #[test]
    fn what_is_left_is_rounded() {
        let rows = [
            (-1, "0m"),
            (1, "1m"),
            (59 * 60_000, "59m"),
            (60 * 60_000, "1h"),
            (47 * 3_600_000, "47h"),
            (48 * 3_600_000, "2d"),
            (i64::MAX, "106751991167d"),
        ];
        for (milliseconds, expect) in rows {
            assert_eq!(remaining(milliseconds), expect, "{milliseconds}");
        }
    }

    #[test]
    fn ages_are_rounded() {
        let rows = [
            (-5, "just now"),
            (29_000, "just now"),
            (42_786, "1m ago"),
            (5_400_000, "2h ago"),
            (172_800_000, "2d ago"),
        ];
        for (milliseconds, expect) in rows {
            assert_eq!(age(milliseconds), expect, "{milliseconds}");
        }
    }

    #[test]
    fn counts_are_short() {
        assert_eq!([999, 1_000, 32_000, 1_250_000].map(count), ["999", "1.0k", "32k", "1.2m"]);
    }
}
