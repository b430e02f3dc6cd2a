//! `||…||` is a spoiler if words stand right behind the first bars and right before the others.

use std::ops::Range;

const BARS: &str = "||";

/// The bars in some words that stand at `offset` of a text.
pub(super) fn bars(words: &str, offset: usize) -> impl Iterator<Item = usize> {
    words.match_indices(BARS).map(move |(at, _)| offset + at)
}

/// Pairs the bars in a paragraph: returns the spoilers between them, bars included.
pub(super) fn pairs(text: &str, bars: &[usize]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    for &at in bars {
        let after = text.get(at + BARS.len()..).and_then(|rest| rest.chars().next());
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        match open {
            Some(start) if start + BARS.len() < at && before.is_some_and(|c| !c.is_whitespace()) => {
                found.push(start..at + BARS.len());
                open = None;
            }
            _ => open = after.is_some_and(|c| !c.is_whitespace()).then_some(at).or(open),
        }
    }
    found
}

/// The bars of a pair.
pub(super) fn ends(pair: &Range<usize>) -> [Range<usize>; 2] {
    [pair.start..pair.start + BARS.len(), pair.end - BARS.len()..pair.end]
}
