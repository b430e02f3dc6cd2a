//! Plain text, cut by length (spec `streaming.md` §9.1).

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::breakpoint::{self, CutRule};
use super::grapheme::{is_blank, trim_start};
use super::limit::Limit;

/// The parts of a plain text: at the last line break that fits, else at the last blank, both outside parentheses, else where a part is
/// full. Parts have no blanks at the cut.
pub fn chunk_text(text: &str, limit: Limit) -> Vec<String> {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default().to_owned();
    ranges(text, limit, &[]).into_iter().map(part).collect()
}

/// Returns the ranges of the parts. Inside `code` (ranges in order) nothing but the line break of
/// the cut is dropped, so that lines keep their indent.
pub(crate) fn ranges(text: &str, limit: Limit, code: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let TextPart { range, next } = next_part(text, start, limit, code);
        push(&mut parts, text, range);
        start = next;
    }
    parts
}

/// Part of a text that is cut to a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPart {
    /// Bytes of the text that the part holds.
    pub(crate) range: Range<usize>,
    /// Byte at which the next part begins: behind this one, and at least one character behind its beginning.
    pub(crate) next: usize,
}

/// Returns the part that begins at `start`, cut as by [`ranges`].
pub(crate) fn next_part(text: &str, start: usize, limit: Limit, code: &[Range<usize>]) -> TextPart {
    let is_code = |at: usize| {
        let after = code.partition_point(|range| range.end <= at);
        code.get(after).is_some_and(|range| range.start <= at)
    };
    let rest = text.get(start..).unwrap_or_default();
    let full = limit.prefix(rest);
    if full == rest.len() {
        return TextPart { range: start..text.len(), next: text.len() };
    }
    let window = rest.get(..full).unwrap_or_default();
    let place = |at: usize| if is_code(start + at) { CutRule::Code } else { CutRule::Prose };
    let end = start + breakpoint::best(window, place).unwrap_or(full);
    let next = if is_code(end) { after_line_break(text, end) } else { after_blanks(text, end, &is_code) };
    let kept = if is_code(end) { end } else { start + trimmed_len(text, start..end, &is_code) };
    TextPart { range: start..kept, next }
}

fn push(parts: &mut Vec<Range<usize>>, text: &str, part: Range<usize>) {
    if text.get(part.clone()).is_some_and(|text| !text.trim().is_empty()) {
        parts.push(part);
    }
}

/// The length of a part without the blanks at its end; code keeps its own.
fn trimmed_len(text: &str, part: Range<usize>, is_code: &impl Fn(usize) -> bool) -> usize {
    let whole = text.get(part.clone()).unwrap_or_default();
    let mut len = whole.len();
    for (at, grapheme) in whole.grapheme_indices(true).rev() {
        if !is_blank(grapheme) || is_code(part.start + at) {
            break;
        }
        len = at;
    }
    len
}

fn after_line_break(text: &str, end: usize) -> usize {
    let rest = text.get(end..).unwrap_or_default();
    end + ["\r\n", "\n"].into_iter().find(|line_break| rest.starts_with(line_break)).map_or(0, str::len)
}

/// Past the blanks of a cut, but not into code.
fn after_blanks(text: &str, end: usize, is_code: &impl Fn(usize) -> bool) -> usize {
    let rest = text.get(end..).unwrap_or_default();
    let blanks = rest.len() - trim_start(rest).len();
    (end..end + blanks).find(|at| is_code(*at)).unwrap_or(end + blanks)
}
