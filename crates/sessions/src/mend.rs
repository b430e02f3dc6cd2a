//! JSON that JavaScript writes and Rust refuses: texts cut in the middle of a surrogate pair, bytes that are no UTF-8.

/// The same JSON with lone surrogate escapes and foul bytes replaced by U+FFFD.
pub(crate) fn mend(json: &[u8]) -> String {
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
                _ => ("\\ufffd".to_owned(), 6),
            },
            Some(0xDC00..=0xDFFF) => ("\\ufffd".to_owned(), 6),
            Some(other) => (format!("\\u{other:04x}"), 6),
        };
        out.push_str(&kept);
        rest = escape.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
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
    fn lone_surrogates_and_foul_bytes_are_replaced() {
        let rows: &[(&[u8], &str)] = &[
            (br#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (br#"{"a":"\ude00y"}"#, "\u{fffd}y"),
            (br#"{"a":"\ud83d\ude00"}"#, "😀"),
            (br#"{"a":"\\ud83d\n\u00e9"}"#, "\\ud83d\né"),
            (b"{\"a\":\"\xff\"}", "\u{fffd}"),
        ];
        for (json, expect) in rows {
            let value: serde_json::Value = serde_json::from_str(&mend(json)).unwrap();
            assert_eq!(value["a"], *expect);
        }
    }
}
