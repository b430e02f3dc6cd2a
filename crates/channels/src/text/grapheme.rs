//! Boundaries of graphemes: what a reader takes for one character.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// Returns true if a text can be cut at a place without splitting a grapheme.
pub fn is_grapheme_boundary(text: &str, at: usize) -> bool {
    text.is_char_boundary(at) && floor(text, at) == at
}

/// The last boundary at or before a place that lies between two characters.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        // The whole text is at hand: the cursor never asks for more.
        Ok(false) | Err(_) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    }
}

/// Returns true if the grapheme is only white space, such as a line break of two characters; not a
/// blank with an accent on it.
pub(super) fn is_blank(grapheme: &str) -> bool {
    grapheme.chars().all(char::is_whitespace)
}

/// The text from its first grapheme that is not blank.
pub(super) fn trim_start(text: &str) -> &str {
    trimmed(text, is_blank)
}

/// The text from its first grapheme that is no line break.
pub(super) fn trim_line_breaks(text: &str) -> &str {
    trimmed(text, |grapheme| matches!(grapheme, "\n" | "\r\n"))
}

fn trimmed(text: &str, is_dropped: impl Fn(&str) -> bool) -> &str {
    // A grapheme may be as long as the text: it is not looked for where it can't be dropped.
    if !text.starts_with(char::is_whitespace) {
        return text;
    }
    let start = text.grapheme_indices(true).find(|(_, grapheme)| !is_dropped(grapheme));
    start.map_or("", |(at, _)| text.get(at..).unwrap_or_default())
}
