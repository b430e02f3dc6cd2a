//! A text in a plainer spelling that still knows which bytes each part of it came from.

use std::ops::Range;

use crate::path::is_unicode_space;

/// Degree to which the spelling is normalized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Converts only `\r\n` to `\n`.
    LineEnds,
    /// Converts also quotes, dashes and spaces to ASCII, and removes white space at line ends.
    Typography,
}

/// The plain text, and where it came from.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) text: String,
    /// Parts in order, without gaps in `plain`.
    parts: Vec<FoldedRun>,
}

/// A run of unchanged bytes (both ranges equally long) or one character that was respelled.
#[derive(Debug)]
struct FoldedRun {
    plain: Range<usize>,
    source: Range<usize>,
    valid: bool,
}

impl Folded {
    /// Folds a file's bytes. Bytes that are not UTF-8 become U+FFFD.
    pub(super) fn of(bytes: &[u8], fold: Fold) -> Self {
        let mut folded = Self::default();
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            folded.push_text(chunk.valid(), at, fold);
            at += chunk.valid().len();
            let invalid = chunk.invalid().len();
            if invalid > 0 {
                folded.push("\u{fffd}", at..at + invalid, false);
                at += invalid;
            }
        }
        if fold == Fold::Typography {
            folded.trim_line_end();
        }
        folded
    }

    fn push_text(&mut self, text: &str, start: usize, fold: Fold) {
        let mut chars = text.char_indices().peekable();
        while let Some((index, c)) = chars.next() {
            let at = start + index;
            if c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some() {
                self.end_line(at..at + 2, fold);
            } else if c == '\n' {
                self.end_line(at..at + 1, fold);
            } else {
                let plain = if fold == Fold::Typography { plain(c) } else { c };
                self.push(plain.encode_utf8(&mut [0; 4]), at..at + c.len_utf8(), true);
            }
        }
    }

    fn end_line(&mut self, source: Range<usize>, fold: Fold) {
        if fold == Fold::Typography {
            self.trim_line_end();
        }
        self.push("\n", source, true);
    }

    fn push(&mut self, plain: &str, source: Range<usize>, valid: bool) {
        let start = self.text.len();
        self.text.push_str(plain);
        let range = start..self.text.len();
        let unchanged = range.len() == source.len();
        if let Some(last) = self.parts.last_mut()
            && unchanged
            && last.plain.len() == last.source.len()
            && last.source.end == source.start
            && (last.valid, valid) == (true, true)
        {
            last.plain.end = range.end;
            last.source.end = source.end;
        } else {
            self.parts.push(FoldedRun { plain: range, source, valid });
        }
    }

    /// Takes back white space before a line's end.
    fn trim_line_end(&mut self) {
        let line = self.text.rfind('\n').map_or(0, |end| end + 1);
        let kept = line + self.text.get(line..).unwrap_or_default().trim_end().len();
        self.text.truncate(kept);
        while let Some(last) = self.parts.last_mut().filter(|part| part.plain.end > kept) {
            if last.plain.start >= kept {
                self.parts.pop();
            } else {
                last.source.end -= last.plain.end - kept;
                last.plain.end = kept;
            }
        }
    }

    /// The source bytes behind a non-empty range of the plain text; nothing if some of them were not UTF-8.
    pub(super) fn source(&self, plain: Range<usize>) -> Option<Range<usize>> {
        let first = self.parts.partition_point(|part| part.plain.end <= plain.start);
        let last = self.parts.partition_point(|part| part.plain.start < plain.end);
        let covered = self.parts.get(first..last)?;
        let (from, to) = (covered.first()?, covered.last()?);
        if covered.iter().any(|part| !part.valid) {
            return None;
        }
        let same = |part: &FoldedRun| part.plain.len() == part.source.len();
        let start = from.source.start + if same(from) { plain.start - from.plain.start } else { 0 };
        let end = to.source.end - if same(to) { to.plain.end - plain.end } else { 0 };
        Some(start..end)
    }
}

/// The ASCII character that a typographic one stands for (spec `tools.md` §2).
pub(crate) fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c if is_unicode_space(c) => ' ',
        c => c,
    }
}
