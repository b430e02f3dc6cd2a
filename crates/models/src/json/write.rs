//! Writing a document. Most of it is text, which is looked through in strides: few characters of a prompt need an escape.

use bytes::{BufMut, BytesMut};

use super::{Json, JsonMessages};

impl Json<'_> {
    /// The document as it is sent.
    pub(crate) fn to_bytes(&self) -> BytesMut {
        let mut out = BytesMut::new();
        self.write(&mut out);
        out
    }

    /// Appends the document.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Text(text) => put_text(out, text),
            Self::Array(items) => put_list(out, items),
            Self::Object(fields) => {
                out.put_u8(b'{');
                let start = out.len();
                for (name, value) in fields {
                    put_comma(out, start);
                    put_field(out, name, value);
                }
                out.put_u8(b'}');
            }
            Self::Value(value) => {
                // Keys are text and nothing in a value can refuse to be written.
                let _ = serde_json::to_writer(out.writer(), value);
            }
            Self::Written(value) => out.put_slice(value.get().as_bytes()),
            Self::Messages(JsonMessages { head, settled, open }) => {
                put_list(out, [head, settled, open].into_iter().flatten());
            }
        }
    }
}

/// Appends the items of a list that begins at `start`.
pub(crate) fn put_items<'j, 'a: 'j>(
    out: &mut BytesMut,
    start: usize,
    items: impl IntoIterator<Item = &'j Json<'a>>,
) {
    for item in items {
        put_comma(out, start);
        item.write(out);
    }
}

/// Appends a field of an object.
pub(crate) fn put_field(out: &mut BytesMut, name: &str, value: &Json<'_>) {
    put_text(out, name);
    out.put_u8(b':');
    value.write(out);
}

fn put_list<'j, 'a: 'j>(out: &mut BytesMut, items: impl IntoIterator<Item = &'j Json<'a>>) {
    out.put_u8(b'[');
    let start = out.len();
    put_items(out, start, items);
    out.put_u8(b']');
}

fn put_comma(out: &mut BytesMut, start: usize) {
    if out.len() > start {
        out.put_u8(b',');
    }
}

/// Appends a text with its quotes.
pub(crate) fn put_text(out: &mut BytesMut, text: &str) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    let mut rest = text.as_bytes();
    while let Some((plain, [special, after @ ..])) = rest.split_at_checked(plain_len(rest)) {
        out.put_slice(plain);
        match special {
            b'"' => out.put_slice(br#"\""#),
            b'\\' => out.put_slice(br"\\"),
            b'\n' => out.put_slice(br"\n"),
            b'\r' => out.put_slice(br"\r"),
            b'\t' => out.put_slice(br"\t"),
            0x08 => out.put_slice(br"\b"),
            0x0c => out.put_slice(br"\f"),
            control => out.put_slice(format!("\\u{control:04x}").as_bytes()),
        }
        rest = after;
    }
    out.put_slice(rest);
    out.put_u8(b'"');
}

/// Returns the number of bytes at the start that need no escape.
fn plain_len(bytes: &[u8]) -> usize {
    const STRIDE: usize = 32;
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    // Without an early end a stride is a few instructions.
    let is_plain = |stride: &&[u8]| !stride.iter().fold(false, |any, byte| any | is_special(byte));
    let strides = bytes.chunks_exact(STRIDE).take_while(is_plain).count() * STRIDE;
    let rest = bytes.get(strides..).unwrap_or_default();
    strides + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_written_as_serde_json_writes_it(parts in prop::collection::vec(prop_oneof![
            any::<String>(), "[ -~]{0,80}", "[\\x00-\\x1f\"\\\\\\x7f]{0,3}", "\\PC{0,40}"
        ], 0..8)) {
            let text = parts.concat();
            let mut out = BytesMut::new();
            put_text(&mut out, &text);
            prop_assert_eq!(String::from_utf8_lossy(&out), serde_json::to_string(&text).unwrap());
        }
    }
}
