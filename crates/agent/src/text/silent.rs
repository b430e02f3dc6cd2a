//! The silent tokens: a whole message of `NO_REPLY`, `ANNOUNCE_SKIP` or `REPLY_SKIP` is no reply at all. A longer one is said, without a `NO_REPLY` that has
//! its first or last line for itself.

use super::directive::in_fence;

/// Token with which an agent chooses to say nothing.
pub const SILENT_TOKEN: &str = "NO_REPLY";

/// Token of an agent that is asked what to announce about finished work, and has nothing to announce.
pub const SKIP_TOKEN: &str = "ANNOUNCE_SKIP";

/// Token with which an agent ends its conversation with another agent.
pub const REPLY_SKIP_TOKEN: &str = "REPLY_SKIP";

/// Tokens that are no reply at all.
pub const SILENT_TOKENS: [&str; 3] = [SILENT_TOKEN, SKIP_TOKEN, REPLY_SKIP_TOKEN];

/// A heartbeat's acknowledgement; held back while streaming like the silent token.
pub const HEARTBEAT_TOKEN: &str = "HEARTBEAT_OK";

/// Returns true if the whole message is a silent token, apart from white space, Markdown and
/// punctuation around it. A text that merely contains the token is a text.
pub fn is_silent(text: &str) -> bool {
    SILENT_TOKENS.contains(&core(text))
}

/// Returns true if more text could still make this message exactly one of the tokens: nothing of it
/// is shown until then.
pub fn may_become_token(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| is_frame(c) || c == '_');
    SILENT_TOKENS.iter().chain([&HEARTBEAT_TOKEN]).any(|token| match start.strip_prefix(token) {
        Some(rest) => rest.chars().all(|c| is_frame(c) || c == '_'),
        None => token.starts_with(start),
    })
}

/// Returns the part of a text that is shown: everything but `NO_REPLY` on a line of its own at the
/// start or the end. Within lines and in code it is a word as any other. A text that is nothing but
/// a token stays, for [`is_silent`].
pub fn spoken(text: &str) -> &str {
    if is_silent(text) { text } else { without_last_lines(without_first_lines(text), is_token_line) }
}

/// Returns the spoken part of a text that grows: a line that may yet become a token is left out.
/// Longer texts extend what is given back, and begin as many bytes behind the text's beginning.
pub(crate) fn spoken_so_far(text: &str) -> (usize, &str) {
    let rest = without_first_lines(text);
    (text.len() - rest.len(), without_last_lines(rest, may_become_token_line))
}

fn without_first_lines(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, behind)) = rest.split_once('\n')
        && is_token_line(line)
    {
        rest = behind.trim_start_matches(['\n', '\r']);
    }
    rest
}

/// Removes the last line if `is_left_out` says so, and the tokens before it.
fn without_last_lines(text: &str, is_left_out: fn(&str) -> bool) -> &str {
    let mut rest = text;
    let mut is_left_out = is_left_out;
    while let Some((before, line)) = rest.trim_end().rsplit_once('\n')
        && is_left_out(line)
        && !in_fence(rest)
    {
        rest = before.trim_end();
        is_left_out = is_token_line;
    }
    rest
}

/// Characters that may surround a token on a line of its own. Backticks and quotation marks show it
/// instead of meaning it.
const OPENING: [char; 4] = ['*', '_', '(', '['];
const CLOSING: [char; 9] = ['*', '_', ')', ']', '.', '!', '…', '。', '！'];

fn is_token_line(line: &str) -> bool {
    let closed =
        around_token(line).and_then(|(opening, rest)| Some((opening, rest.strip_prefix(SILENT_TOKEN)?)));
    closed.is_some_and(|(opening, closing)| {
        let pairs = [('*', '*'), ('_', '_'), ('(', ')'), ('[', ']')];
        closing.chars().all(|c| CLOSING.contains(&c))
            && pairs
                .iter()
                .all(|(open, close)| opening.matches(*open).count() == closing.matches(*close).count())
    })
}

fn may_become_token_line(line: &str) -> bool {
    around_token(line).is_some_and(|(_, rest)| match rest.strip_prefix(SILENT_TOKEN) {
        Some(closing) => closing.chars().all(|c| CLOSING.contains(&c)),
        None => SILENT_TOKEN.starts_with(rest),
    })
}

/// Splits a line into the marks that may open it before a token, and the rest; `None` for a line of
/// code.
fn around_token(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim();
    let rest = inner.trim_start_matches(OPENING);
    (!is_indented(line)).then(|| (inner.strip_suffix(rest).unwrap_or_default(), rest))
}

/// Four blanks make a line code.
fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// The text without what may stand around a token. Underscores are part of words unless they wrap both ends.
fn core(text: &str) -> &str {
    let mut inner = text.trim_matches(is_frame);
    while let Some(unwrapped) = inner.strip_prefix('_').and_then(|rest| rest.strip_suffix('_')) {
        inner = unwrapped.trim_matches(is_frame);
    }
    inner
}

fn is_frame(c: char) -> bool {
    c.is_whitespace()
        || (c.is_ascii_punctuation() && c != '_')
        || matches!(c, '…' | '“' | '”' | '‘' | '’' | '。' | '！')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of spec `messages.md` §7 under decision 5: only the whole message is silent.
    #[test]
    fn only_a_whole_message_is_silent() {
        let silent = [
            "NO_REPLY",
            "  NO_REPLY  ",
            "NO_REPLY.",
            "`NO_REPLY`",
            "**NO_REPLY**",
            "_NO_REPLY_",
            "\n(NO_REPLY)\n",
            "-- NO_REPLY!!",
            " ANNOUNCE_SKIP\n",
            "`REPLY_SKIP`",
        ];
        for text in silent {
            assert!(is_silent(text), "{text:?}");
        }
        let spoken = [
            "",
            "no_reply",
            "NO_REPLYING",
            "NO_REPLY_",
            "xNO_REPLY",
            "NO_REPLY -- ok",
            "NO_REPLY thanks",
            "Hello NO_REPLY",
            "Hello NO_REPLY!!",
            "NO_REPLY\nmore text",
            "The token NO_REPLY is used here",
            "Done! NO_REPLY",
            "NO_REPLY NO_REPLY",
        ];
        for text in spoken {
            assert!(!is_silent(text), "{text:?}");
        }
    }

    #[test]
    fn a_token_that_has_an_outer_line_for_itself_is_not_said() {
        let rows = [
            ("Sure, here it is.\n\nNO_REPLY", "Sure, here it is."),
            ("NO_REPLY\n\nSure, here it is.", "Sure, here it is."),
            ("NO_REPLY\nyes\n**NO_REPLY**\n\n(NO_REPLY).\n", "yes"),
            ("_NO_REPLY_\r\nyes", "yes"),
            ("ok\n  NO_REPLY  ", "ok"),
            ("```\ncode\n```\nNO_REPLY", "```\ncode\n```"),
            ("NO_REPLY\nNO_REPLY", "NO_REPLY"),
        ];
        for (text, expect) in rows {
            assert_eq!(spoken(text), expect, "{text:?}");
        }
        let whole = [
            "",
            "NO_REPLY",
            "-- \nNO_REPLY",
            "Hello NO_REPLY",
            "NO_REPLY thanks",
            "one\nNO_REPLY\ntwo",
            "It answers:\n`NO_REPLY`",
            "It answers:\n\"NO_REPLY\"",
            "The tokens:\n- HEARTBEAT_OK\n- NO_REPLY",
            "The tokens:\n* NO_REPLY",
            "So:\n\n    NO_REPLY",
            "So:\n```\nNO_REPLY\n```",
            "So:\n```\nNO_REPLY",
            "So:\nNO_REPLY_",
            "So:\n**NO_REPLY",
            "So:\nno_reply",
            "So:\nANNOUNCE_SKIP",
        ];
        for text in whole {
            assert_eq!(spoken(text), text, "{text:?}");
        }
    }

    #[test]
    fn what_is_said_so_far_only_grows() {
        let texts = [
            "Sure.\n\nNO_REPLY",
            "NO_REPLY\nSure.\n**NO_REPLY**.",
            "a\nN\nNO_\nNO_REPLY\nNO_REPLY",
            "a\nNO_REPLY\nb",
            "a\n```\nNO_REPLY\n```\nNO_REPLY",
            "a\n* NO_REPLY\n",
            "a\n(NO_REPLY) b",
        ];
        for text in texts {
            let mut shown = String::new();
            for (end, _) in text.char_indices().skip(1) {
                let (_, so_far) = spoken_so_far(text[..end].trim());
                if !may_become_token(so_far) {
                    assert!(so_far.starts_with(&shown), "{text:?} {shown:?} {so_far:?}");
                    so_far.clone_into(&mut shown);
                }
            }
            assert!(spoken(text.trim()).starts_with(&shown), "{text:?} {shown:?}");
        }
    }

    #[test]
    fn text_is_held_back_exactly_while_it_can_become_a_token() {
        for text in [
            "",
            "N",
            "NO_",
            "**NO_REP",
            "NO_REPLY",
            "NO_REPLY.",
            "_NO_REPLY_",
            "HEARTBEAT",
            "HEARTBEAT_OK",
            "- ",
        ] {
            assert!(may_become_token(text), "{text:?}");
        }
        for text in ["No", "NO REPLY", "NO_REPLY x", "NO_REPLYI", "Hello", "HEARTBEAT_OKAY", "- a"] {
            assert!(!may_become_token(text), "{text:?}");
        }
    }

    #[test]
    fn every_start_of_a_silent_message_is_held_back() {
        for whole in ["NO_REPLY", "  **NO_REPLY**.\n", "`NO_REPLY`", "_NO_REPLY_"] {
            for (end, _) in whole.char_indices() {
                assert!(may_become_token(&whole[..end]), "{:?}", &whole[..end]);
            }
        }
    }
}
