//! Text, cut at blank lines (spec `streaming.md` §9.3).

use super::fence::{Fence, fences, parted};

/// The paragraphs of a text, without the blanks at their ends; blank lines inside code blocks part nothing.
pub fn paragraphs(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let fences = fences(&text);
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(gap) = next_gap(&text, start, &fences) {
        push(&mut found, text.get(start..gap.start).unwrap_or_default());
        start = gap.end;
    }
    push(&mut found, text.get(start..).unwrap_or_default());
    found
}

fn push(found: &mut Vec<String>, paragraph: &str) {
    let paragraph = paragraph.trim_end();
    if !paragraph.trim_start().is_empty() {
        found.push(paragraph.to_owned());
    }
}

/// The next blank lines outside of code blocks: a line break, blanks, and at least one more line break.
pub fn next_gap(text: &str, from: usize, fences: &[Fence<'_>]) -> Option<std::ops::Range<usize>> {
    let mut at = from;
    loop {
        let start = at + text.get(at..)?.find('\n')?;
        match parted(fences, start) {
            // Nothing of a block is a gap.
            Some(block) => at = block.span.end.max(start + 1),
            None => match gap_at(text, start) {
                Some(gap) => return Some(gap),
                None => at = start + 1,
            },
        }
    }
}

fn gap_at(text: &str, start: usize) -> Option<std::ops::Range<usize>> {
    let rest = text.get(start + 1..)?;
    let line = rest.trim_start_matches([' ', '\t']);
    let after = line.trim_start_matches('\n');
    (after.len() < line.len()).then_some(start..text.len() - after.len())
}
