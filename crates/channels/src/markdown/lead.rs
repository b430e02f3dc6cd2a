//! Detects the kind of block with which a text begins.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::angle;

/// Returns true if a text begins with a block that needs lines of its own, such as a heading, a
/// list, a table or code: text inserted before it on the same line would break it.
pub fn begins_with_block(markdown: &str) -> bool {
    let masked = angle::mask(markdown, false);
    let first = Parser::new_ext(&masked, Options::ENABLE_TABLES).next();
    !matches!(first, None | Some(Event::Start(Tag::Paragraph)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_from_words() {
        let rows = [
            ("", false),
            ("hi", false),
            ("\n\nhi\n\n# later", false),
            ("**bold** and `code`", false),
            ("<b>hi</b>", false),
            ("#hash", false),
            ("| no table", false),
            ("1.5 is a number", false),
            ("-5 degrees", false),
            ("```rust\nx\n```", true),
            ("~~~\nx", true),
            ("# Title", true),
            ("Title\n===", true),
            ("- a\n- b", true),
            ("3. c", true),
            ("> said", true),
            ("---", true),
            ("    code", true),
            ("| a | b |\n| - | - |\n| 1 | 2 |", true),
            ("a | b\n--|--\n1 | 2", true),
        ];
        for (text, expect) in rows {
            assert_eq!(begins_with_block(text), expect, "{text}");
        }
    }
}
