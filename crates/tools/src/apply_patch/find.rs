//! Finds a passage in a text, in spite of small differences (spec `tools.md` §2.1). Pure.
//!
//! Positions are line numbers from 0. A search is one pass over the text, however often its lines repeat: it looks for the
//! passage's bytes, which begin and end at line ends.

use std::cell::OnceCell;

use memchr::memchr_iter;
use memchr::memmem;

use crate::edit::plain;

/// Normalizations by which lines are compared, from the strictest to the most tolerant.
const COMPARISONS: [fn(&str, &mut String); 4] = [
    |line, out| out.push_str(line),
    |line, out| out.push_str(line.trim_end()),
    |line, out| out.push_str(line.trim()),
    |line, out| out.extend(line.trim().chars().map(plain)),
];

/// Position at which a passage may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At this line or after it.
    Line(usize),
    /// At the end: the passage ends with the text.
    AtEnd,
}

/// A text in which passages are looked for.
#[derive(Debug)]
pub(super) struct Haystack<'a> {
    text: &'a str,
    lines: usize,
    /// Normalized texts, one for each comparison, made on first use: `\n`, then every line with
    /// `\n`.
    spellings: [OnceCell<String>; COMPARISONS.len()],
}

impl<'a> Haystack<'a> {
    /// Looks in this text. Its lines end with `\n` or `\r\n`.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, lines: lines(text).count(), spellings: Default::default() }
    }

    /// Returns the number of lines of the text.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// The first line of the passage, found as strictly as possible.
    pub(super) fn find(&self, passage: &[&str], from: Start) -> Option<usize> {
        let last = self.lines.checked_sub(passage.len())?;
        let start = match from {
            Start::Line(line) => line,
            Start::AtEnd => last,
        };
        if start > last {
            return None;
        }
        COMPARISONS.iter().zip(&self.spellings).find_map(|(spell, spelling)| {
            let spelling = spelling.get_or_init(|| spelled(lines(self.text), self.text.len(), *spell));
            let wanted = spelled(passage.iter().copied(), 0, *spell);
            // The line end before a line is as many line ends into the spelling as there are lines before it.
            let skipped = memchr_iter(b'\n', spelling.as_bytes()).nth(start)?;
            let hay = spelling.as_bytes().get(skipped..)?;
            let offset = memmem::find(hay, wanted.as_bytes())?;
            Some(start + memchr_iter(b'\n', hay.get(..offset)?).count())
        })
    }
}

/// The lines of a text without their ends.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| split_end(line).0)
}

/// A line and its end, which is `\n`, `\r\n` or nothing.
pub(super) fn split_end(line: &str) -> (&str, &str) {
    let bare = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
    line.split_at(bare.len())
}

fn spelled<'l>(lines: impl Iterator<Item = &'l str>, size: usize, spell: fn(&str, &mut String)) -> String {
    let mut out = String::with_capacity(size + 2);
    out.push('\n');
    for line in lines {
        spell(line, &mut out);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_passage_is_found_as_strictly_as_possible() {
        let text = "a\n  b\t\nc \u{2013} \u{201c}d\u{201d}\nb\na\r\nb\n\n";
        let hay = Haystack::new(text);
        for (passage, from, at) in [
            (&["a"][..], Start::Line(0), Some(0)),
            (&["a"], Start::Line(1), Some(4)),
            (&["a"], Start::Line(5), None),
            (&["a", "b"], Start::Line(0), Some(4)),
            (&["  b"], Start::Line(0), Some(1)),
            (&["\tb"], Start::Line(2), Some(3)),
            (&["b"], Start::Line(0), Some(3)),
            (&["c - \"d\""], Start::Line(0), Some(2)),
            (&["  c \u{2014} \"d\" ", "b"], Start::Line(0), Some(2)),
            (&["c - 'd'"], Start::Line(0), None),
            (&["b", ""], Start::AtEnd, Some(5)),
            (&["b", ""], Start::Line(0), Some(5)),
            (&["a"], Start::AtEnd, None),
            (&[""], Start::AtEnd, Some(6)),
            (&[""], Start::Line(7), None),
            (&["a", "b", "a", "b", "a", "b", "a", "b"], Start::Line(0), None),
        ] {
            assert_eq!(hay.find(passage, from), at, "{passage:?} {from:?}");
        }
        assert_eq!((hay.lines(), Haystack::new("").lines(), Haystack::new("x").lines()), (7, 0, 1));
        assert_eq!(Haystack::new("").find(&["x"], Start::Line(0)), None);
    }

    proptest! {
        /// Compared with the obvious search, line by line.
        #[test]
        fn the_search_agrees_with_comparing_lines(
            text in "[ab \u{2013}\n]{0,24}", passage in prop::collection::vec("[ab \u{2013}-]{0,3}", 1..4), start in 0_usize..6,
        ) {
            let lines: Vec<&str> = lines(&text).collect();
            let spell = |line: &str, by: fn(&str, &mut String)| { let mut out = String::new(); by(line, &mut out); out };
            let expect = COMPARISONS.iter().find_map(|by| {
                (start..lines.len()).find(|at| {
                    lines.get(*at..at + passage.len()).is_some_and(|window| {
                        window.iter().zip(&passage).all(|(one, other)| spell(one, *by) == spell(other, *by))
                    })
                })
            });
            let passage: Vec<&str> = passage.iter().map(String::as_str).collect();
            prop_assert_eq!(Haystack::new(&text).find(&passage, Start::Line(start)), expect);
        }
    }
}
