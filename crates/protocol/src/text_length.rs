//! Lengths and cuts in UTF-16 units, the unit OpenClaw's limits and reports count in, without ever splitting a character.

/// Length in UTF-16 units.
pub fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
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
        assert_eq!(utf16_len(text), 4);
        for (max, head, tail) in
            [(0, "", ""), (1, "a", "b"), (2, "a", "b"), (3, "a😀", "😀b"), (4, text, text), (9, text, text)]
        {
            assert_eq!((utf16_head(text, max), utf16_tail(text, max)), (head, tail), "{max}");
        }
    }
}
