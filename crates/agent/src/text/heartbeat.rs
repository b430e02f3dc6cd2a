//! The heartbeat token: taken off the ends of an answer, and what is left decides whether the answer is worth showing (spec
//! `agent-runtime.md` §11.4, `messages.md` §7).

use std::borrow::Cow;

use openclaw_protocol::text_length::utf16_len;

use super::silent::HEARTBEAT_TOKEN;

/// Purpose of the answer: a heartbeat or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// A heartbeat's: an answer with the token that has at most so many characters (UTF-16) beside it is an acknowledgement.
    Heartbeat {
        /// `heartbeat.ackMaxChars`
        ack_max_chars: usize,
    },
    /// A person's: only an answer with nothing beside the token is none.
    Message,
}

/// An answer without the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped {
    /// Text to show; `None` for an answer that says nothing.
    pub shown: Option<String>,
    /// Text beside the token, shown or not.
    pub rest: String,
    /// True if the token was at one of the ends.
    pub had_token: bool,
}

/// Takes the token off an answer. An answer with the token only in the middle stays as it is.
pub fn strip(text: &str, answering: Answering) -> Stripped {
    let plain = text.trim();
    if plain.is_empty() {
        return Stripped { shown: None, rest: String::new(), had_token: false };
    }
    let unmarked = unmarked(plain);
    let rest = match (off_edges(plain), off_edges(&unmarked)) {
        // With its markup, where that did not hide the token.
        (Some(rest), _) if !rest.is_empty() => rest.to_owned(),
        (_, Some(rest)) => rest.to_owned(),
        (Some(rest), None) => rest.to_owned(),
        (None, None) => {
            return Stripped { shown: Some(plain.to_owned()), rest: plain.to_owned(), had_token: false };
        }
    };
    let says_something = match answering {
        Answering::Heartbeat { ack_max_chars } => utf16_len(&rest) > ack_max_chars,
        // A full stop behind the token is no message.
        Answering::Message => rest.chars().any(|c| !c.is_whitespace() && !c.is_ascii_punctuation()),
    };
    let says_something = says_something && !rest.is_empty();
    Stripped { shown: says_something.then(|| rest.clone()), rest, had_token: true }
}

/// The text without tokens at its ends; `None` where there is none.
fn off_edges(text: &str) -> Option<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text.trim();
    let mut had_token = false;
    loop {
        let behind = rest.strip_prefix(HEARTBEAT_TOKEN).filter(|rest| !rest.starts_with(is_word));
        let before = || rest.strip_suffix(HEARTBEAT_TOKEN).filter(|rest| !rest.ends_with(is_word));
        let Some(less) = behind.or_else(before) else { break };
        rest = less.trim();
        had_token = true;
    }
    had_token.then_some(rest)
}

/// The text without tags and without what emphasises the whole of it.
fn unmarked(text: &str) -> Cow<'_, str> {
    const EMPHASIS: [char; 4] = ['*', '`', '~', '_'];
    let text = text.trim_matches(EMPHASIS);
    if !text.contains('<') && !text.contains("&nbsp;") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        plain.push_str(before);
        let Some((_, after)) = tag.split_once('>') else {
            // None that comes later has an end either.
            plain.push('<');
            rest = tag;
            break;
        };
        plain.push(' ');
        rest = after;
    }
    plain.push_str(rest);
    let plain = plain.replace("&nbsp;", " ");
    Cow::Owned(plain.trim().trim_matches(EMPHASIS).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEAT: Answering = Answering::Heartbeat { ack_max_chars: 300 };

    fn shown(text: &str, answering: Answering) -> Option<String> {
        strip(text, answering).shown
    }

    /// Vectors of `agent-runtime.md` §11.4 and `messages.md` §7.
    #[test]
    fn an_acknowledgement_says_nothing_and_the_token_is_never_shown() {
        for text in [
            "",
            "  \n",
            "HEARTBEAT_OK",
            "**HEARTBEAT_OK**",
            "<b>HEARTBEAT_OK</b>",
            " HEARTBEAT_OK HEARTBEAT_OK ",
        ] {
            for answering in [BEAT, Answering::Message] {
                assert_eq!(shown(text, answering), None, "{text:?}");
            }
        }
        let no_limit = Answering::Heartbeat { ack_max_chars: 0 };
        let long = "A".repeat(301);
        let rows = [
            ("ALERT HEARTBEAT_OK", BEAT, None),
            ("HEARTBEAT_OK all good", BEAT, None),
            ("HEARTBEAT_OK all good", Answering::Message, Some("all good")),
            (&format!("{long} HEARTBEAT_OK"), BEAT, Some(long.as_str())),
            (&format!("HEARTBEAT_OK {long}"), BEAT, Some(long.as_str())),
            (&"A".repeat(300), BEAT, Some(&"A".repeat(300))),
            ("x HEARTBEAT_OK", no_limit, Some("x")),
            ("HEARTBEAT_OK ok", no_limit, Some("ok")),
            ("a HEARTBEAT_OK b", BEAT, Some("a HEARTBEAT_OK b")),
            ("a HEARTBEAT_OK b", Answering::Message, Some("a HEARTBEAT_OK b")),
            ("<i>x</i> < < HEARTBEAT_OK", Answering::Message, Some("<i>x</i> < <")),
            ("HEARTBEAT_OK", no_limit, None),
            ("HEARTBEAT_OK hello", Answering::Message, Some("hello")),
            ("hello HEARTBEAT_OK", Answering::Message, Some("hello")),
            ("<code>HEARTBEAT_OK</code> all good", Answering::Message, Some("all good")),
            ("HEARTBEAT_OK **all** good", Answering::Message, Some("**all** good")),
            ("hello HEARTBEAT_OK there", BEAT, Some("hello HEARTBEAT_OK there")),
            ("hello HEARTBEAT_OK there", Answering::Message, Some("hello HEARTBEAT_OK there")),
            ("HEARTBEAT_OK.", Answering::Message, None),
            ("HEARTBEAT_OK\n\nline  two", Answering::Message, Some("line  two")),
            ("HEARTBEAT_OKAY then", BEAT, Some("HEARTBEAT_OKAY then")),
            ("a < b HEARTBEAT_OK", Answering::Message, Some("a < b")),
        ];
        for (text, answering, expect) in rows {
            assert_eq!(shown(text, answering).as_deref(), expect, "{text:?} {answering:?}");
        }
        assert!(!strip(" ", BEAT).had_token);
        assert!(strip("x HEARTBEAT_OK", BEAT).had_token);
        assert_eq!(strip("done HEARTBEAT_OK", BEAT).rest, "done");
    }

    proptest! {
        /// The shown text is part of the answer and has no token at its ends; stripping it again
        /// changes nothing.
        #[test]
        fn stripping_is_done_once_and_for_all(text in "(HEARTBEAT_OK|[a-c <>*_.\n]|é){0,20}") {
            for answering in [Answering::Heartbeat { ack_max_chars: 3 }, Answering::Message] {
                if let Some(once) = shown(&text, answering)
                    && text.contains(HEARTBEAT_TOKEN)
                    && !text.contains(['<', '*', '_', '`'])
                {
                    prop_assert!(text.contains(&once));
                    prop_assert_eq!(shown(&once, answering), Some(once.clone()));
                }
            }
        }
    }
}
