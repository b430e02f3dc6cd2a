//! JSON that JavaScript writes and Rust refuses: texts cut in the middle of a surrogate pair, bytes that are no UTF-8.

/// The same JSON without lone surrogate escapes (spec `models.md` §3), and with foul bytes replaced by U+FFFD.
pub fn mend(json: &[u8]) -> String {
    rewritten(&String::from_utf8_lossy(json), |_| None)
}

/// The same JSON with a private character in place of each lone surrogate escape: [`half`] tells which. For texts that come in pieces, of
/// which the next may begin with the other half.
pub fn with_marked_halves(json: &str) -> String {
    rewritten(json, |unit| char::from_u32(FIRST_MARK + (unit - FIRST_SURROGATE)))
}

/// Half a character, as UTF-16 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// The first of two.
    High(u32),
    /// The second.
    Low(u32),
}

/// The half that a character stands for in what [`with_marked_halves`] gave.
pub fn half(mark: char) -> Option<Half> {
    let unit = u32::from(mark).checked_sub(FIRST_MARK)? + FIRST_SURROGATE;
    Some(if unit < FIRST_LOW { Half::High(unit) } else { Half::Low(unit) })
}

/// The character of two halves.
pub fn joined(high: u32, low: u32) -> Option<char> {
    char::from_u32(0x10000 + (high.checked_sub(FIRST_SURROGATE)? << 10) + low.checked_sub(FIRST_LOW)?)
}

const FIRST_SURROGATE: u32 = 0xD800;
const FIRST_LOW: u32 = 0xDC00;
/// The last 2048 characters there are; nobody writes them.
const FIRST_MARK: u32 = 0x0010_F800;

/// Each lone surrogate escape becomes what `lone` says, or nothing.
fn rewritten(text: &str, lone: impl Fn(u32) -> Option<char>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (kept, used) = match unit(escape) {
            None => {
                (escape.chars().take(2).collect::<String>(), escape.chars().take(2).map(char::len_utf8).sum())
            }
            Some(high @ 0xD800..=0xDBFF) => match escape.get(6..).and_then(unit) {
                Some(low @ 0xDC00..=0xDFFF) => (format!("\\u{high:04x}\\u{low:04x}"), 12),
                _ => (lone(high).map(String::from).unwrap_or_default(), 6),
            },
            Some(low @ 0xDC00..=0xDFFF) => (lone(low).map(String::from).unwrap_or_default(), 6),
            Some(other) => (format!("\\u{other:04x}"), 6),
        };
        out.push_str(&kept);
        rest = escape.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Whether a text escapes half a surrogate pair alone: as JSON, Rust refuses it.
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
    fn halves_are_marked_and_joined() {
        let marked = with_marked_halves(r#"a\ud83d b\ude00 \ud83d\ude00"#);
        let halves: Vec<Half> = marked.chars().filter_map(half).collect();
        assert_eq!(halves, [Half::High(0xD83D), Half::Low(0xDE00)]);
        assert_eq!(joined(0xD83D, 0xDE00), Some('😀'));
        assert_eq!(joined(0xDBFF, 0xDFFF), Some(char::MAX));
        assert!(!has_lone_surrogate(&marked));
        assert_eq!([half('a'), half('😀'), half('\u{fffd}')], [None; 3]);
    }

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
