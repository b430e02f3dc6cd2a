//! Lengths and cuts in UTF-16 units, the unit OpenClaw's limits and reports count in, without ever splitting a character.

/// Length in UTF-16 units.
pub fn utf16_len(text: &str) -> usize {
    utf16_units(text.as_bytes())
}

/// Number of UTF-16 units of the characters that begin in these bytes of a UTF-8 text: one for each
/// character, two for those of four bytes. Without a branch, so that the compiler counts many bytes
/// at once.
pub fn utf16_units(utf8: &[u8]) -> usize {
    // In parts small enough for a sum of bytes.
    let units = |part: &[u8]| {
        let of = |byte: &u8| u8::from(byte & 0xC0 != 0x80) + u8::from(*byte >= 0xF0);
        usize::from(part.iter().map(of).fold(0_u8, u8::wrapping_add))
    };
    utf8.chunks(127).map(units).sum()
}

/// The longest start of `text` of at most `max` UTF-16 units.
pub fn utf16_head(text: &str, max: usize) -> &str {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > max {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

/// The longest end of `text` of at most `max` UTF-16 units.
pub fn utf16_tail(text: &str, max: usize) -> &str {
    let mut units = 0;
    for (at, c) in text.char_indices().rev() {
        units += c.len_utf16();
        if units > max {
            return text.get(at + c.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_utf16_units_and_never_split_a_character() {
        let text = "a😀b";
        for text in [text, "", "äöü€😀x", &"😀".repeat(300), &"a".repeat(1000)] {
            assert_eq!(utf16_len(text), text.encode_utf16().count(), "{text:?}");
        }
        for (max, head, tail) in
            [(0, "", ""), (1, "a", "b"), (2, "a", "b"), (3, "a😀", "😀b"), (4, text, text), (9, text, text)]
        {
            assert_eq!((utf16_head(text, max), utf16_tail(text, max)), (head, tail), "{max}");
        }
    }
}
