//! Taking known secrets out of what tools say, before it is stored or sent.
//!
//! Known secrets are replaced where they appear literally or as JSON escapes them. A secret that a
//! tool prints in another encoding or piece by piece is not found.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use openclaw_config::redact::REDACTED;
use openclaw_protocol::message::{Block, ToolResultMessage};
use serde_json::Value;

/// Shorter values are not looked for: they stand in texts for other reasons.
pub const MIN_SECRET_CHARS: usize = 8;
/// Number of characters of a cut-off secret from which on they are hidden.
const MIN_PIECE_CHARS: usize = 4;

/// Finds secrets in texts. Made once for many texts.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    finder: Option<AhoCorasick>,
}

/// Ends of a text at which a secret may have been cut in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutEnds {
    /// Start of the text: long output keeps its end.
    Start,
    /// Both ends of the text: more is to come.
    Both,
}

impl Redactor {
    /// Looks for these values, as far as they are long enough.
    ///
    /// # Errors
    /// When they are too many.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, BuildError> {
        let long =
            values.into_iter().map(str::trim).filter(|value| value.chars().count() >= MIN_SECRET_CHARS);
        let mut secrets: Vec<String> = long.flat_map(|value| [value.to_owned(), as_in_json(value)]).collect();
        secrets.sort_unstable();
        secrets.dedup();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The others take megabytes.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&secrets)?;
        Ok(Self { finder: Some(finder).filter(|_| !secrets.is_empty()), secrets })
    }

    /// Takes the secrets out of a text for the model.
    pub(crate) fn redact_block(&self, block: &mut Block) {
        if let Block::Text(text) = block
            && let Cow::Owned(redacted) = self.redacted(&text.text, CutEnds::Start)
        {
            text.text = redacted;
        }
    }

    /// Takes known secrets out of a tool's result.
    pub(crate) fn redact_result(&self, result: &mut ToolResultMessage) {
        result.content.iter_mut().for_each(|block| self.redact_block(block));
        if let Some(details) = &mut result.details {
            self.redact(details, CutEnds::Start);
        }
    }

    /// A text for the model without secrets; also without the rest of one whose beginning was cut off.
    pub fn redact_text(&self, text: &str) -> String {
        self.redacted(text, CutEnds::Start).into_owned()
    }

    /// Takes the secrets out of all texts of a value. Names of fields are left alone.
    pub(crate) fn redact(&self, value: &mut Value, cut: CutEnds) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redacted(text, cut) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item, cut)),
            Value::Object(map) => map.values_mut().for_each(|each| self.redact(each, cut)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redacted<'t>(&self, text: &'t str, cut: CutEnds) -> Cow<'t, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        let piece = match cut {
            CutEnds::Start => MIN_SECRET_CHARS,
            CutEnds::Both => MIN_PIECE_CHARS,
        };
        let mut hidden: Vec<Range<usize>> = Vec::new();
        hidden.extend(self.longest(|secret| end_at_start(secret, text, piece)).map(|length| 0..length));
        for found in finder.find_iter(text) {
            // The remains at the start may reach into a whole one.
            if let Some(before) = hidden.last_mut() {
                before.end = before.end.min(found.start());
            }
            hidden.push(found.range());
        }
        if cut == CutEnds::Both
            && let Some(length) = self.longest(|secret| start_at_end(secret, text, piece))
        {
            let covered = hidden.last().map_or(0, |before| before.end);
            hidden.push(covered.max(text.len() - length)..text.len());
        }
        if hidden.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(without(text, &hidden)) }
    }

    fn longest(&self, length_of: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        self.secrets.iter().filter_map(|secret| length_of(secret)).max()
    }
}

/// Values are secrets, so only their number is shown.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

fn without(text: &str, hidden: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in hidden.iter().filter(|range| !range.is_empty()) {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(REDACTED);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// The value between the quotes of a JSON text.
fn as_in_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or(value).to_owned()
}

/// Returns the number of bytes at the start of a text that are the end of a secret, but not all of
/// it.
fn end_at_start(secret: &str, text: &str, least: usize) -> Option<usize> {
    let mut ends = secret.char_indices().skip(1).filter_map(|(at, _)| secret.get(at..));
    let end = ends.find(|end| text.starts_with(end))?;
    (end.chars().count() >= least).then_some(end.len())
}

/// Returns the number of bytes at the end of a text that are the start of a secret, but not all of
/// it.
fn start_at_end(secret: &str, text: &str, least: usize) -> Option<usize> {
    let mut starts = secret.char_indices().rev().filter_map(|(at, _)| secret.get(..at));
    let start = starts.find(|start| text.ends_with(start))?;
    (start.chars().count() >= least).then_some(start.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "sk-1234567890";

    fn redactor() -> Redactor {
        Redactor::new([SECRET, "tiny", " hunter22\n", "line one\nline \"two\"", "sk-1234567890-longer"])
            .unwrap()
    }

    #[test]
    fn secrets_are_taken_out_wherever_they_stand() {
        for (text, expect) in [
            ("nothing here", "nothing here"),
            ("a sk-1234567890, hunter22!", "a #, #!"),
            ("sk-1234567890sk-1234567890", "##"),
            ("sk-1234567890-longer", "#"),
            ("tiny", "tiny"),
            ("line one\nline \"two\"", "#"),
            (r#"{"k":"line one\nline \"two\""}"#, r##"{"k":"#"}"##),
            // The end of long output is kept, which may begin inside of a secret.
            ("34567890\nrest", "#\nrest"),
            ("4567890\nrest", "4567890\nrest"),
            ("rest sk-12345", "rest sk-12345"),
            ("é hunter22 é", "é # é"),
        ] {
            assert_eq!(redactor().redacted(text, CutEnds::Start).replace(REDACTED, "#"), expect, "{text}");
        }
        assert_eq!(Redactor::default().redacted(SECRET, CutEnds::Both), SECRET);
        assert_eq!(Redactor::new([]).unwrap().redacted(SECRET, CutEnds::Both), SECRET);
    }

    #[test]
    fn all_texts_of_a_value_are_looked_through() {
        let mut value = json!({"content": [{"text": "x hunter22"}], "details": {"tail": "x sk-12", "n": 1, "hunter22": null}});
        redactor().redact(&mut value, CutEnds::Both);
        let text = value.to_string().replace(REDACTED, "#");
        assert_eq!(text, r##"{"content":[{"text":"x #"}],"details":{"tail":"x #","n":1,"hunter22":null}}"##);
    }

    #[test]
    fn its_debug_output_shows_no_secret() {
        assert!(!format!("{:?}", redactor()).contains("sk-"));
    }

    proptest! {
        /// Clients see a window that moves over the output of a command.
        #[test]
        fn no_window_shows_more_of_a_secret_than_a_few_characters(before in "[a-z ]{0,20}", after in "[a-z ]{0,20}", from in 0_usize..60, to in 0_usize..60) {
            let whole = format!("{before}{SECRET}{after}");
            let window = whole.get(from.min(whole.len())..to.min(whole.len())).unwrap_or_default();
            let shown = redactor().redacted(window, CutEnds::Both).replace(REDACTED, "#");
            for piece in SECRET.as_bytes().windows(MIN_PIECE_CHARS) {
                let piece = std::str::from_utf8(piece).unwrap();
                let is_inside = window.len() < SECRET.len() && SECRET.contains(window);
                prop_assert!(is_inside || !shown.contains(piece), "{shown}");
            }
        }
    }
}
