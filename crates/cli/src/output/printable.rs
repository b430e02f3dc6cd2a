//! Text that may come from anybody, made safe for a terminal.

use std::borrow::Cow;

use super::style::SEQUENCES;

/// Replaces control characters by `\u` escapes, which JSON reads back as what they were. Line breaks and tabs stay, and
/// so do the colours of [`super::Style`].
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let colour = SEQUENCES.iter().find(|sequence| rest.starts_with(**sequence));
        let taken = match colour {
            Some(sequence) => {
                out.push_str(sequence);
                sequence.len()
            }
            None if is_unsafe(next) => {
                out.push_str(&escape(next));
                next.len_utf8()
            }
            None => {
                out.push(next);
                next.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// The same for a cell of a table or a name in a line: line breaks and tabs would pretend to be structure.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    if text.contains(['\n', '\t']) {
        Cow::Owned(text.replace('\n', "\\n").replace('\t', "\\t"))
    } else {
        text
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

fn escape(c: char) -> String {
    format!("\\u{:04x}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;

    #[test]
    fn control_characters_are_escaped_and_our_colours_stay() {
        let red = Style::COLOURED.error("no");
        let rows = [
            ("plain ünïcode 🦞\n\tand tab", "plain ünïcode 🦞\n\tand tab"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("\u{1b}[2J\r", "\\u001b[2J\\u000d"),
            ("\u{9b}31m\u{7f}", "\\u009b31m\\u007f"),
            (red.as_str(), red.as_str()),
        ];
        for (text, expect) in rows {
            assert_eq!(printable(text), expect);
        }
        assert_eq!(one_line("a\nb\tc\r"), "a\\nb\\tc\\u000d");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({ "key": "\u{1b}[2J\u{9b}\n\u{7f}" });
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printable(&text)).unwrap(), value);
    }
}
