//! Fenced code blocks in Markdown (spec `streaming.md` §2).

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// A line that opens or closes a fenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceLine<'a> {
    /// The whole line, without its line break.
    pub line: &'a str,
    /// The blanks before the marker, at most three.
    pub indent: &'a str,
    /// The backticks or tildes, at least three.
    pub marker: &'a str,
}

impl<'a> FenceLine<'a> {
    /// Reads a line.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let body = line.trim_start_matches(' ');
        let indent = line.get(..line.len() - body.len())?;
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let marker = body.get(..body.len() - body.trim_start_matches(mark).len())?;
        (indent.len() <= 3 && marker.len() >= 3).then_some(Self { line, indent, marker })
    }

    /// Returns true if the line opens a block: a line that opens with backticks has no others after
    /// them.
    pub fn opens(&self) -> bool {
        let info = self.line.get(self.closing_len()..).unwrap_or_default();
        self.marker.starts_with('~') || !info.contains('`')
    }

    /// Returns true if the line closes a block that another line opened. Words behind the marker
    /// are tolerated.
    pub fn closes(&self, open: &FenceLine<'_>) -> bool {
        self.marker.starts_with(open.marker)
    }

    /// The line that closes a block which this one opens.
    pub fn closing(&self) -> String {
        format!("{}{}", self.indent, self.marker)
    }

    /// The length of [`FenceLine::closing`]: one in every unit, all of it is ASCII.
    pub fn closing_len(&self) -> usize {
        self.indent.len() + self.marker.len()
    }
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence<'a> {
    /// First line of the block.
    pub open: FenceLine<'a>,
    /// Span from the start of its first line to the end of its last, without the final line break;
    /// to the end of the text if nothing closes it.
    pub span: Range<usize>,
    /// Start of the line that closes the block.
    pub closed_at: Option<usize>,
}

impl Fence<'_> {
    /// Returns true if a cut at a place would divide the block. At the end of a block that nothing
    /// closes it would: what comes next belongs to it too.
    pub fn is_parted_at(&self, at: usize) -> bool {
        self.span.start < at && (at < self.span.end || (at == self.span.end && self.closed_at.is_none()))
    }

    /// Returns the end of the content between the first and the last line.
    pub fn content_end(&self) -> usize {
        self.closed_at.unwrap_or(self.span.end)
    }
}

/// All fenced blocks of a text, in order.
pub fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found: Vec<Fence<'_>> = Vec::new();
    let mut open: Option<(FenceLine<'_>, usize)> = None;
    let mut start = 0;
    for line in text.split('\n') {
        let end = start + line.len();
        match (open, FenceLine::parse(line)) {
            (None, Some(opening)) if opening.opens() => open = Some((opening, start)),
            (Some((opening, from)), Some(closing)) if closing.closes(&opening) => {
                found.push(Fence { open: opening, span: from..end, closed_at: Some(start) });
                open = None;
            }
            (None | Some(_), _) => {}
        }
        start = end + 1;
    }
    if let Some((opening, from)) = open {
        found.push(Fence { open: opening, span: from..text.len(), closed_at: None });
    }
    found
}

/// The block that a cut at a place would part.
pub fn parted<'f, 't>(fences: &'f [Fence<'t>], at: usize) -> Option<&'f Fence<'t>> {
    let after = fences.partition_point(|fence| fence.span.end < at);
    fences.get(after..)?.iter().take_while(|fence| fence.span.start < at).find(|fence| fence.is_parted_at(at))
}

/// Steps back from a place behind which a line would begin that looks like one of a fence.
pub(super) fn before_fence_like(text: &str, first: usize, at: usize) -> Option<usize> {
    let places = text.get(first..at)?.grapheme_indices(true).rev().map(|(before, _)| first + before);
    let is_good = |at: &usize| !is_fence_like(text.get(*at..).unwrap_or_default());
    std::iter::once(at).chain(places).find(is_good).filter(|at| *at > first)
}

/// Returns true if a line with this beginning could be a fence line. With four blanks before the
/// marker it could not.
pub(super) fn is_fence_like(text: &str) -> bool {
    let blanks = text.bytes().take(4).take_while(|byte| *byte == b' ').count();
    let body = text.get(blanks..).unwrap_or_default();
    body.starts_with("```") || body.starts_with("~~~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_found_as_markdown_has_them() {
        type Row<'a> = (&'a str, &'a [(Range<usize>, bool)]);
        let rows: [Row<'_>; 10] = [
            ("```a``` b\nc", &[]),
            ("```\na\n```", &[(0..9, true)]),
            ("x\n```js\na\n```\ny\n~~~\nb", &[(2..13, true), (16..21, false)]),
            ("   ```\na\n ````", &[(0..14, true)]),
            ("    ```\na", &[]),
            ("``\na", &[]),
            ("````\n```\n````", &[(0..13, true)]),
            ("~~~\n```\n~~~", &[(0..11, true)]),
            ("```\na\n``` end", &[(0..13, true)]),
            ("```\r\na\r\n```\r\n", &[(0..12, true)]),
        ];
        for (text, expect) in rows {
            let found: Vec<_> =
                fences(text).into_iter().map(|fence| (fence.span, fence.closed_at.is_some())).collect();
            assert_eq!(found, expect, "{text:?}");
        }
    }

    #[test]
    fn a_cut_at_the_edge_of_a_block_parts_nothing() {
        let text = "a\n```\nb\n```\nc\n```\nd";
        let fences = fences(text);
        let parted: Vec<usize> = (0..=text.len()).filter(|at| parted(&fences, *at).is_some()).collect();
        let expect: Vec<usize> = (3..11).chain(15..=text.len()).collect();
        assert_eq!(parted, expect);
    }
}
