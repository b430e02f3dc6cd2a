//! Reads Telegram's JSON as leniently as a browser would. An unreadable entry of a list does not lose the others.

use openclaw_protocol::mend::mend_with;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Replacement for an invalid character. As long as half a surrogate pair, so that offsets in UTF-16 units stay right.
const REPLACEMENT: char = '\u{fffd}';

/// Reads a document, also one with half a surrogate pair, a byte order mark or bytes that are not UTF-8.
///
/// # Errors
/// If it is not JSON even so.
pub(super) fn document(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&mended(bytes)))
}

/// Reads an answer. An entry of its list that can't be read is there as its text.
pub(super) fn answer(bytes: &[u8]) -> Option<Value> {
    document(bytes).ok().or_else(|| by_entries(&mended(bytes)))
}

fn mended(bytes: &[u8]) -> String {
    let text = mend_with(bytes, |_| Some(REPLACEMENT));
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

/// An answer whose result is a list.
#[derive(Deserialize)]
struct Entries<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Vec<&'a RawValue>,
}

fn by_entries(text: &str) -> Option<Value> {
    let Entries { ok, result } = serde_json::from_str(text).ok()?;
    let read = |entry: &RawValue| serde_json::from_str(entry.get()).unwrap_or_else(|_| json!(entry.get()));
    Some(json!({"ok": ok, "result": result.into_iter().map(read).collect::<Vec<Value>>()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_reads_is_read() {
        let rows: [(&[u8], &str); 5] = [
            (br#"{"text":"a\ud83d"}"#, "a\u{fffd}"),
            (br#"{"text":"\ude00b"}"#, "\u{fffd}b"),
            (br#"{"text":"\ud83d\ude00"}"#, "😀"),
            (b"\xef\xbb\xbf{\"text\":\"a\"}", "a"),
            (b"{\"text\":\"a\xff\"}", "a\u{fffd}"),
        ];
        for (bytes, expect) in rows {
            assert_eq!(document(bytes).unwrap(), json!({"text": expect}));
        }
        for bytes in [&b""[..], b"<html>", b"{\"text\":\"a", b"{\"text\":\"\\ud8"] {
            assert!(document(bytes).is_err() && answer(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn an_entry_that_nobody_can_read_keeps_no_other_from_being_read() {
        let (deep, end) = ("[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"ok":true,"result":[{{"update_id":1}},{{"update_id":2,"x":{deep}{end}}},{{"update_id":3,"n":1e999}},{{"update_id":4}}]}}"#
        );
        let read = answer(text.as_bytes()).unwrap();
        let list = read["result"].as_array().unwrap();
        assert_eq!((&list[0], &list[3]), (&json!({"update_id": 1}), &json!({"update_id": 4})));
        assert!(list[1].as_str().unwrap().starts_with(r#"{"update_id":2,"#));
        assert_eq!(list[2], json!(r#"{"update_id":3,"n":1e999}"#));
    }
}
