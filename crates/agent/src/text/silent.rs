//! The silent tokens: a whole message of `NO_REPLY` or `ANNOUNCE_SKIP` is no reply at all.

/// The token.
pub const SILENT_TOKEN: &str = "NO_REPLY";

/// What an agent says where it is asked what to tell of finished work, and that is nothing.
pub const SKIP_TOKEN: &str = "ANNOUNCE_SKIP";

/// A heartbeat's acknowledgement; held back while streaming like the silent token.
pub const HEARTBEAT_TOKEN: &str = "HEARTBEAT_OK";

/// Whether the whole message is a silent token, white space, Markdown and punctuation around it aside. A text that
/// merely contains the token is a text.
pub fn is_silent(text: &str) -> bool {
    matches!(core(text), SILENT_TOKEN | SKIP_TOKEN)
}

/// Whether more text could still make this message exactly one of the tokens: then nothing of it is shown yet.
pub fn may_become_token(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| is_frame(c) || c == '_');
    [SILENT_TOKEN, SKIP_TOKEN, HEARTBEAT_TOKEN].iter().any(|token| match start.strip_prefix(token) {
        Some(rest) => rest.chars().all(|c| is_frame(c) || c == '_'),
        None => token.starts_with(start),
    })
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
