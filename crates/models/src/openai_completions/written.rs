//! Tool calls that a model writes as text, `<tool_call>{"name": …, "arguments": …}</tool_call>`: local servers that don't know a model's
//! format pass them on as they are. They are read as calls if an answer ends with them and nothing else follows.

use std::borrow::Cow;

use serde::Deserialize;

use crate::lenient;

const TAG: &str = "<tool_call>";
const END: &str = "</tool_call>";

/// Text of an answer as it arrives. Text that may be such a call is held back.
#[derive(Debug, Default)]
pub(super) struct WrittenText {
    held: String,
    /// True if a call has begun: everything that follows is held back.
    has_begun: bool,
    /// True if the next piece continues a line.
    in_line: bool,
}

/// Text that was held back, as it is understood at the end.
pub(super) enum HeldText {
    Text(String),
    Calls(Vec<WrittenCall>),
}

/// A call and its arguments.
pub(super) struct WrittenCall {
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Deserialize)]
struct TaggedCall {
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    arguments: Option<String>,
    /// Arguments as Llama's models name them.
    #[serde(default, deserialize_with = "lenient::json_text")]
    parameters: Option<String>,
}

impl WrittenText {
    /// Takes the next piece and returns the text that is certainly no call.
    pub(super) fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.held.is_empty() && !piece.contains('<') {
            self.in_line = !piece.is_empty() && !piece.ends_with('\n') || self.in_line && piece.is_empty();
            return Cow::Borrowed(piece);
        }
        self.held.push_str(piece);
        if self.has_begun {
            return Cow::Borrowed("");
        }
        let from = self.call_from().unwrap_or(self.held.len());
        let rest = self.held.split_off(from);
        let text = std::mem::replace(&mut self.held, rest);
        self.has_begun = self.held.starts_with(TAG);
        self.in_line = !text.is_empty() && !text.ends_with('\n') || self.in_line && text.is_empty();
        Cow::Owned(text)
    }

    /// Returns the byte of the held text at which a line begins that is, or may become, a call.
    fn call_from(&self) -> Option<usize> {
        let mut at = 0;
        for (number, line) in self.held.split_inclusive('\n').enumerate() {
            let may_be = line.starts_with(TAG) || TAG.starts_with(line);
            if may_be && (number > 0 || !self.in_line) {
                return Some(at);
            }
            at += line.len();
        }
        None
    }

    /// The answer is over.
    pub(super) fn end(&mut self) -> Option<HeldText> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| read(&held).map_or(HeldText::Text(held), HeldText::Calls))
    }
}

/// The calls that a text consists of; nothing if it is anything else.
fn read(text: &str) -> Option<Vec<WrittenCall>> {
    let mut calls = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let body = rest.strip_prefix(TAG)?;
        let (json, behind) = body.split_once(END).unwrap_or((body, ""));
        let TaggedCall { name, arguments, parameters } = serde_json::from_str(json.trim()).ok()?;
        let name = name.filter(|name| !name.trim().is_empty())?;
        calls.push(WrittenCall { name, arguments: arguments.or(parameters).unwrap_or_default() });
        rest = behind.trim();
    }
    (!calls.is_empty()).then_some(calls)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that is given out, and the calls, of a text in these pieces.
    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, usize) {
        let mut written = WrittenText::default();
        let mut text: String = pieces.into_iter().map(|piece| written.push(piece).into_owned()).collect();
        match written.end() {
            Some(HeldText::Calls(calls)) => (text, calls.len()),
            Some(HeldText::Text(held)) => {
                text.push_str(&held);
                (text, 0)
            }
            None => (text, 0),
        }
    }

    #[test]
    fn calls_at_the_end_are_read_and_everything_else_stays_text() {
        let call = "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";
        let rows = [
            (call.to_owned(), "", 1),
            (format!("{call}\n{call}"), "", 2),
            (format!("I read it.\n{call}\n"), "I read it.\n", 1),
            ("<tool_call>{\"name\":\"x\",\"parameters\":{}}".to_owned(), "", 1),
        ];
        for (text, expect, calls) in rows {
            assert_eq!(split([text.as_str()]), (expect.to_owned(), calls), "{text}");
        }
        let texts = [
            format!("{call} is how it is written"),
            format!("as in `{call}`"),
            "<tool_call>{\"name\":\"x\",\"argu".to_owned(),
            "<tool_call>{\"arguments\":{}}</tool_call>".to_owned(),
            "a < b".to_owned(),
            "<tool".to_owned(),
        ];
        for text in texts {
            assert_eq!(split([text.as_str()]), (text.clone(), 0), "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_is_the_same_wherever_the_text_is_cut(
            text in "(<tool_call>|</tool_call>|\\{\"name\":\"x\"\\}|\n|a|<){0,8}", cuts in prop::collection::vec(0usize..60, 0..5)
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([text.len()]).collect();
            cuts.sort_unstable();
            let mut from = 0;
            let pieces: Vec<&str> = cuts.into_iter().map(|cut| {
                let piece = &text[from..cut];
                from = cut;
                piece
            }).collect();
            prop_assert_eq!(split(pieces), split([text.as_str()]));
        }
    }
}
