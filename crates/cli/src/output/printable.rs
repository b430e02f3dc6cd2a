//! Printable text: control characters that anybody may have put into a text are escaped, our own
//! colours stay.

use std::borrow::Cow;

pub(crate) use openclaw_protocol::printable::one_line;
use openclaw_protocol::printable::{escape, escaped, is_control};

use super::style::SEQUENCES;

/// The text with its control characters escaped, except line breaks, tabs, and the colours of [`super::Style`].
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !SEQUENCES.iter().any(|sequence| text.contains(sequence)) {
        return escaped(text);
    }
    escaped_around_colours(text, |c| is_control(c) && !matches!(c, '\n' | '\t'))
}

/// The same in one line.
pub(super) fn printable_row(text: &str) -> Cow<'_, str> {
    escaped_around_colours(text, is_control)
}

fn escaped_around_colours(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let colour = SEQUENCES.iter().find(|sequence| rest.starts_with(**sequence));
        let taken = match colour {
            Some(sequence) => {
                out.push_str(sequence);
                sequence.len()
            }
            None => {
                if is_unsafe(next) {
                    out.push_str(&escape(next));
                } else {
                    out.push(next);
                }
                next.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;

    #[test]
    fn control_characters_are_escaped_and_our_colours_stay() {
        let red = Style::COLOURED.error("no");
        let mixed = format!("\u{202e}\r\n{red}\u{9b}31m");
        let rows = [
            ("plain ünïcode 🦞\n\tand tab", "plain ünïcode 🦞\n\tand tab".to_owned()),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007".to_owned()),
            (red.as_str(), red.clone()),
            (mixed.as_str(), format!("\\u202e\\u000d\n{red}\\u009b31m")),
        ];
        for (text, expect) in rows {
            assert_eq!(printable(text), expect);
            assert_eq!(printable_row(text), expect.replace('\n', "\\n").replace('\t', "\\t"));
        }
    }
}
