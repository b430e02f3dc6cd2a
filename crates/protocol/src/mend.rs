//! JSON that JavaScript writes and Rust refuses: texts cut in the middle of a surrogate pair, bytes that are no UTF-8.

/// The same JSON without lone surrogate escapes (spec `models.md` §3), and with foul bytes replaced by U+FFFD.
pub fn mend(json: &[u8]) -> String {
    mend_with(json, |_| None)
}

/// The same with something else in the place of each lone surrogate.
pub fn mend_with(json: &[u8], instead: impl Fn(u32) -> Option<char>) -> String {
    let alone = |unit| instead(unit).map(String::from).unwrap_or_default();
    let text = String::from_utf8_lossy(json);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (kept, used) = match unit(escape) {
            None => {
                (escape.chars().take(2).collect::<String>(), escape.chars().take(2).map(char::len_utf8).sum())
            }
            Some(high @ 0xD800..=0xDBFF) => match escape.get(6..).and_then(unit) {
                Some(low @ 0xDC00..=0xDFFF) => (format!("\\u{high:04x}\\u{low:04x}"), 12),
                _ => (alone(high), 6),
            },
            Some(low @ 0xDC00..=0xDFFF) => (alone(low), 6),
            Some(other) => (format!("\\u{other:04x}"), 6),
        };
        out.push_str(&kept);
        rest = escape.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// True if a text has an unpaired escape of half a surrogate pair: Rust refuses that as JSON.
pub fn has_lone_surrogate(json: &str) -> bool {
    // Escapes of surrogates begin with \ud8 to \udf; looking for their start is all that most texts cost.
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let escape = rest.get(at..).unwrap_or_default();
        let used = match unit(escape) {
            Some(0xD800..=0xDBFF) => match escape.get(6..).and_then(unit) {
                Some(0xDC00..=0xDFFF) => 12,
                _ => return true,
            },
            Some(0xDC00..=0xDFFF) => return true,
            Some(_) => 6,
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        rest = escape.get(used..).unwrap_or_default();
    }
    false
}

/// The code unit of a `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u32> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_dropped_and_foul_bytes_replaced() {
        let rows: &[(&[u8], &str)] = &[
            (br#"{"a":"x\ud83d"}"#, "x"),
            (br#"{"a":"\ude00y"}"#, "y"),
            (br#"{"a":"\ud83d\ude00"}"#, "😀"),
            (br#"{"a":"\\ud83d\n\u00e9"}"#, "\\ud83d\né"),
            (b"{\"a\":\"\xff\"}", "\u{fffd}"),
        ];
        for (json, expect) in rows {
            let value: serde_json::Value = serde_json::from_str(&mend(json)).unwrap();
            assert_eq!(value["a"], *expect);
            if let Ok(text) = std::str::from_utf8(json) {
                let is_refused = serde_json::from_str::<serde_json::Value>(text).is_err();
                assert_eq!(has_lone_surrogate(text), is_refused, "{text}");
                assert!(!has_lone_surrogate(&mend(json)), "{text}");
            }
        }
    }
}
