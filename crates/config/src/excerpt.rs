//! Excerpts of a config text at a given place, for error messages. Secrets are masked: a message
//! may end up in a log.

mod mask;

use crate::json5::SyntaxError;
use crate::{ConfigIssueKind, Issue};
use mask::mask;

/// Characters shown before and after the place.
const BEFORE: usize = 40;
const AFTER: usize = 20;

/// Issue for a text that does not parse. The message is the one that OpenClaw's clients know; the
/// line and what stands there are for people.
pub(crate) fn syntax_issue(text: &str, error: &SyntaxError) -> Issue {
    let issue =
        Issue::new("", format!("JSON5 parse failed: SyntaxError: {error}")).detailed(place(text, error));
    Issue { kind: ConfigIssueKind::Syntax, ..issue }
}

/// `line 3, column 5, at "port: }"`
pub(crate) fn place(text: &str, error: &SyntaxError) -> String {
    let place = format!("line {}, column {}", error.line, error.column);
    // The whole text, as the name of a secret may stand in a line before it.
    let masked = mask(text);
    let line = masked.split('\n').nth(error.line.saturating_sub(1)).unwrap_or_default();
    match around(line, error.column.saturating_sub(1)) {
        shown if shown.is_empty() => place,
        shown => format!("{place}, at `{shown}`"),
    }
}

fn around(line: &str, column: usize) -> String {
    let shown: String = line
        .trim_end()
        .chars()
        .skip(column.saturating_sub(BEFORE))
        .take(column.min(BEFORE) + AFTER)
        .collect();
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json5;

    #[test]
    fn the_place_of_a_mistake_is_shown_without_secrets() {
        let long = format!("{{ list: [{}], a: }}", "1, ".repeat(60));
        let rows = [
            ("{\n  gateway: {\n    port: }\n}", "line 3, column 11, at `port: }`"),
            ("", "line 1, column 1"),
            ("{\n  a: 1\n  b: 2 }", "line 3, column 3, at `b: 2 }`"),
            (
                "{ auth: { token: abc123, mode: 'x' } }",
                "line 1, column 18, at `{ auth: { token: ******, mode: 'x' }`",
            ),
            ("{ \"botToken\": \"abc\n}", "line 1, column 19, at `{ \"botToken\": ****`"),
            ("{ token: 'a\\'b' 'c' }", "line 1, column 17, at `{ token: ****** *** }`"),
            ("{\n  'token':\n    \"abc\" \"d\"\n}", "line 3, column 11, at `***** ***`"),
            (&long, "line 1, column 196, at `1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ], a: }`"),
        ];
        for (text, expect) in rows {
            assert_eq!(place(text, &json5::parse_value(text).unwrap_err()), expect, "{text}");
        }
    }
}
