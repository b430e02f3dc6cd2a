//! `mentionPatterns`: how an agent is named in groups (spec `messages.md` §2.1).

use regex::{Regex, RegexBuilder};

/// Bytes that a pattern may take when it is built.
const LARGEST: usize = 1_000_000;

/// A pattern as it is written in the configuration.
///
/// # Errors
/// Reports why the text is no regular expression.
pub fn mention_pattern(written: &str) -> Result<Regex, regex::Error> {
    // `"\b"` in JSON is a backspace; a word boundary is meant.
    let repaired = written.replace('\u{8}', "\\b");
    RegexBuilder::new(&repaired).case_insensitive(true).size_limit(LARGEST).build()
}

/// Reason why a text is no regular expression, in one line.
pub(crate) fn regex_fault(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
