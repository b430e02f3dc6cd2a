//! Times and sizes for people.

/// How long ago: `just now`, `5m ago`, `3h ago`, `2d ago`.
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

#[cfg(test)]
mod tests {
    use super::*;

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
