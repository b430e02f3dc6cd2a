//! Freshness of search results.

/// The value as Brave takes it; `None` if it is none.
pub(super) fn normalized(value: &str) -> Option<String> {
    let value = value.trim().to_ascii_lowercase();
    if matches!(value.as_str(), "pd" | "pw" | "pm" | "py") {
        return Some(value);
    }
    let (from, to) = value.split_once("to")?;
    (day(from)? <= day(to)?).then_some(value)
}

/// `2024-01-31`
fn day(text: &str) -> Option<jiff::civil::Date> {
    let is_day = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_day { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Vectors of spec `tools.md` §5.1.
    #[test]
    fn freshness_is_a_word_or_a_range_of_days() {
        for (value, expect) in [
            ("PD", Some("pd")),
            (" pw ", Some("pw")),
            ("pm", Some("pm")),
            ("py", Some("py")),
            ("2024-01-01to2024-01-31", Some("2024-01-01to2024-01-31")),
            ("2024-01-01TO2024-01-01", Some("2024-01-01to2024-01-01")),
            ("2024-02-29to2024-03-01", Some("2024-02-29to2024-03-01")),
            ("2023-02-29to2024-03-01", None),
            ("2024-13-01to2024-01-31", None),
            ("2024-03-10to2024-03-01", None),
            ("2024-01-01 to 2024-01-31", None),
            ("2024-1-1to2024-01-31", None),
            ("2024-01-01to", None),
            ("to", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(normalized(value).as_deref(), expect, "{value}");
        }
    }

    proptest! {
        /// Normalized values are stable: normalizing one again returns it unchanged, and it
        /// contains nothing that would need escaping in a query string.
        #[test]
        fn a_normalized_value_stays(value in "(?i)(p[a-z]|[0-9]{4}-[01][0-9]-[0-3][0-9]to[0-9]{4}-[01][0-9]-[0-3][0-9]|.{0,12})") {
            if let Some(once) = normalized(&value) {
                prop_assert!(once.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
                prop_assert_eq!(normalized(&once), Some(once));
            }
        }
    }
}
