//! Markdown, cut by length (spec `streaming.md` §9.2): as plain text is, but a code block that has to be parted is closed in the one part
//! and opened again in the next.

use std::borrow::Cow;

use super::breakpoint::{self, CutRule};
use super::fence::{Fence, FenceLine, before_fence_like, fences, is_fence_like, parted};
use super::grapheme::{is_grapheme_boundary, trim_line_breaks};
use super::limit::Limit;

/// The parts of a Markdown text.
pub fn chunk_markdown(text: &str, limit: Limit) -> Vec<String> {
    let mut cutter = Cutter { text, limit, fences: fences(text), at: 0, reopened: None, parts: Vec::new() };
    while cutter.cut() {}
    cutter.parts
}

struct Cutter<'t> {
    text: &'t str,
    limit: Limit,
    fences: Vec<Fence<'t>>,
    /// Start of the next part.
    at: usize,
    /// First line of the block which that part goes on with.
    reopened: Option<FenceLine<'t>>,
    parts: Vec<String>,
}

impl<'t> Cutter<'t> {
    /// Cuts off one part; says whether there is more.
    fn cut(&mut self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let reopened = self.reopened.filter(|open| self.limit.fits(open.line));
        let head = reopened.map_or(Cow::Borrowed(""), |open| Cow::Owned(format!("{}\n", open.line)));
        // A first line that takes all the room is not written again: the text is worth more than the colours.
        let (head, room, may_split) = match self.limit.minus(self.limit.len(&head)) {
            Some(room) => (head, room, reopened.is_some() == self.reopened.is_some()),
            None => (Cow::Borrowed(""), self.limit, false),
        };
        let full = room.prefix(rest);
        if full == rest.len() {
            self.push(&head, rest, "");
            return false;
        }
        let from = self.at;
        let place = |at: usize| if self.may_break_at(from + at) { CutRule::Prose } else { CutRule::Whole };
        let soft = breakpoint::best(rest.get(..full).unwrap_or_default(), place);
        let end = from + soft.unwrap_or(full);
        let fence = parted(&self.fences, end).cloned().filter(|_| may_split);
        let split = fence.and_then(|fence| Some((cut_in_fence(self.text, from, &fence, room)?, fence)));
        match split {
            Some((cut, fence)) => {
                let body = self.text.get(from..cut).unwrap_or_default();
                let line_break = if body.ends_with('\n') { "" } else { "\n" };
                self.push(&head, body, &format!("{line_break}{}", fence.open.closing()));
                self.go_on_in(&fence, cut);
            }
            None => {
                let end =
                    if soft.is_some() { end } else { before_fence_like(self.text, from, end).unwrap_or(end) };
                self.push(&head, self.text.get(from..end).unwrap_or_default(), "");
                self.go_on_after(end);
            }
        }
        self.at < self.text.len()
    }

    /// Returns true if a part may end at a blank: not in a block, not before one on its line, and
    /// not before text that would look like one.
    fn may_break_at(&self, at: usize) -> bool {
        let starts_fence = self.fences.binary_search_by_key(&at, |fence| fence.span.start).is_ok();
        let after = self.text.get(at + 1..).unwrap_or_default();
        let is_line_end = self.text.get(at..).is_some_and(|rest| rest.starts_with(['\n', '\r']));
        !starts_fence && parted(&self.fences, at).is_none() && (is_line_end || !is_fence_like(after))
    }

    fn push(&mut self, head: &str, body: &str, tail: &str) {
        if !body.trim().is_empty() {
            self.parts.push(format!("{head}{body}{tail}"));
        }
    }

    /// The next part goes on with a block, unless only the line that closes it is left: that stands at the end of this part already.
    fn go_on_in(&mut self, fence: &Fence<'t>, cut: usize) {
        let left = self.text.get(cut..fence.content_end()).unwrap_or_default();
        if left.trim_matches(['\n', '\r']).is_empty() {
            self.go_on_after(fence.span.end);
        } else {
            let is_mid_line = !self.text.get(..cut).is_some_and(|before| before.ends_with('\n'));
            self.at = cut + if is_mid_line { line_break_len(left) } else { 0 };
            self.reopened = Some(fence.open);
        }
    }

    /// The next part begins after a separator and the line breaks behind it.
    fn go_on_after(&mut self, end: usize) {
        if let Some(fence) = parted(&self.fences, end) {
            // Cut hard inside a block: where it goes on counts.
            self.at = end;
            self.reopened = Some(fence.open);
            return;
        }
        self.reopened = None;
        let rest = self.text.get(end..).unwrap_or_default();
        let blank = rest.chars().next().filter(|c| c.is_whitespace()).map_or(0, char::len_utf8);
        let blank = if is_grapheme_boundary(rest, blank) { blank } else { 0 };
        let starts_fence = self.fences.binary_search_by_key(&end, |fence| fence.span.start).is_ok();
        let rest = rest.get(if starts_fence { 0 } else { blank }..).unwrap_or_default();
        self.at = self.text.len() - trim_line_breaks(rest).len();
    }
}

fn line_break_len(text: &str) -> usize {
    ["\r\n", "\n"].into_iter().find(|line_break| text.starts_with(line_break)).map_or(0, str::len)
}

/// Returns the end of a part that begins at `from` and ends inside a block, with room for the line
/// that closes it: after the last line that fits, else inside of one. `None` where there is not
/// even room for one character of the block.
///
/// Also suits callers that cut a text while it is still written.
pub fn cut_in_fence(text: &str, from: usize, fence: &Fence<'_>, room: Limit) -> Option<usize> {
    let first = (fence.span.start + fence.open.line.len() + 1).max(from);
    let rest = text.get(from..)?;
    let close = fence.open.closing_len();
    let with_line_break = from + room.minus(close)?.prefix(rest).min(fence.content_end() - from);
    let line_end =
        text.get(first..with_line_break).and_then(|lines| lines.rfind('\n')).map(|at| first + at + 1);
    if let Some(end) = line_end.filter(|end| !text.get(first..*end).unwrap_or_default().trim().is_empty()) {
        return Some(end);
    }
    let hard = from + room.minus(close + 1)?.prefix(rest).min(fence.content_end() - from);
    let hard = before_fence_like(text, first, hard)?;
    (hard > first).then_some(hard)
}
