//! Little text patterns, as data: what the classification tables are made of.

/// Pattern for a lower-case text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern {
    /// This.
    Has(&'static str),
    /// Matches if both are in the text, in any order.
    Both(&'static str, &'static str),
    /// The first and somewhere after it the second.
    Then(&'static str, &'static str),
    /// The first and behind it the second, with at most one character between them.
    Near(&'static str, &'static str),
    /// Matches this word: no letter, digit or underscore beside it.
    Word(&'static str),
    /// This, blanks, and a digit.
    Number(&'static str),
    /// This, whether its words stand apart, are one, or are joined by underscores.
    Joined(&'static str),
    /// Matches at the start of the text, blanks aside.
    Starts(&'static str),
}

impl Pattern {
    pub(super) fn matches(self, lower: &str) -> bool {
        match self {
            Self::Has(text) => lower.contains(text),
            Self::Both(a, b) => lower.contains(a) && lower.contains(b),
            Self::Then(a, b) => lower.split_once(a).is_some_and(|(_, rest)| rest.contains(b)),
            Self::Near(a, b) => lower.match_indices(a).any(|(at, _)| {
                let rest = lower.get(at + a.len()..).unwrap_or_default();
                let mut behind_one = rest.chars();
                behind_one.next();
                rest.starts_with(b) || behind_one.as_str().starts_with(b)
            }),
            Self::Word(word) => holds_word(lower, word),
            Self::Number(text) => lower
                .match_indices(text)
                .any(|(at, _)| lower.get(at + text.len()..).is_some_and(starts_with_number)),
            Self::Joined(text) => lower.replace([' ', '_'], "").contains(text),
            Self::Starts(text) => {
                let mut said = lower.chars().filter(|c| !c.is_whitespace());
                text.chars().all(|wanted| said.next() == Some(wanted))
            }
        }
    }
}

pub(super) fn any(patterns: &[Pattern], lower: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(lower))
}

fn starts_with_number(rest: &str) -> bool {
    rest.starts_with(' ') && rest.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

fn holds_word(text: &str, word: &str) -> bool {
    let wordy = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|tail| tail.chars().next());
        !before.is_some_and(wordy) && !after.is_some_and(wordy)
    })
}
