//! Text as it arrives, cut into blocks (spec `streaming.md` §2).

use std::ops::Range;

use openclaw_channels::text::fence::{Fence, FenceLine, fences, parted};
use openclaw_channels::text::{Limit, cut_in_fence, is_grapheme_boundary, next_gap};
use openclaw_config::settings::BreakPreference;

/// Size and breaks of blocks (chunking).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSettings {
    /// UTF-16 units that are waited for.
    pub min: usize,
    /// UTF-16 units of a block, at most.
    pub max: usize,
    /// Preferred break between blocks.
    pub prefer: BreakPreference,
    /// True if every paragraph is a block.
    pub by_paragraph: bool,
}

/// A block of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Text of the block.
    pub text: String,
    /// Tells if it goes on with code that the block before was cut in.
    pub continues: Continues,
    /// End of its last words, in bytes of all that was appended ([`BlockChunker::appended`]).
    pub end: usize,
}

/// Connection of a block with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Continues {
    /// Starts anew.
    #[default]
    Nothing,
    /// Continues with the next line of the code: the last line of that block and the first of this
    /// one were put in.
    Code,
    /// Continues the same line of the code: the line break before the last line was put in too.
    CodeLine,
}

/// Part of the text that is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Only text that can be a block already.
    Ready,
    /// All of the text: it, or this part of it, is at its end.
    All,
}

/// Gathers text and gives it back in blocks.
#[derive(Debug, Clone)]
pub struct BlockChunker {
    settings: ChunkSettings,
    buffer: String,
    /// Start of the held text in the buffer. Text before it is gone, and removed from time to time.
    start: usize,
    /// Connection of the held text with the last block; if it continues code, it begins with a line
    /// that was put in.
    continues: Continues,
    appended: usize,
}

/// End of a block.
enum BlockCut {
    /// Outside of code.
    Plain(usize),
    /// Inside a block of code, with the code's first line as `open` and the content's end as `at`.
    InFence { at: usize, open: String, closing: String, rest_from: usize },
}

impl BlockChunker {
    /// Creates an empty chunker.
    pub fn new(settings: ChunkSettings) -> Self {
        let max = settings.max.max(1);
        let settings = ChunkSettings { min: settings.min.clamp(1, max), max, ..settings };
        Self { settings, buffer: String::new(), start: 0, continues: Continues::Nothing, appended: 0 }
    }

    /// Appends new text.
    pub fn append(&mut self, text: &str) {
        self.forget_start();
        self.buffer.push_str(text);
        self.appended += text.len();
    }

    /// Bytes of all that was ever appended.
    pub fn appended(&self) -> usize {
        self.appended
    }

    /// True if no text is held.
    pub fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// Text that is held.
    fn held(&self) -> &str {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Part of the held text that decides on a block's end: whole lines, some blocks long. Without
    /// this limit a text that comes at once would be looked through to its end for every block.
    fn view(&self) -> &str {
        let held = self.held();
        let near = held.floor_char_boundary(VIEW.saturating_mul(self.settings.max).saturating_add(VIEW));
        let line_end =
            held.get(near..).and_then(|rest| rest.find('\n')).map_or(held.len(), |at| near + at + 1);
        held.get(..line_end).unwrap_or(held)
    }

    /// Removes text that is gone, once it is the larger part.
    fn forget_start(&mut self) {
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }

    /// Forgets the held text.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.start = 0;
        self.continues = Continues::Nothing;
    }

    /// Takes out the blocks that are ready, or all of the held text.
    pub fn drain(&mut self, drain: Drain) -> Vec<Block> {
        let mut blocks = Vec::new();
        match drain {
            Drain::Ready if self.settings.by_paragraph => self.paragraphs(&mut blocks),
            Drain::Ready => self.ready(&mut blocks),
            Drain::All => self.all(&mut blocks),
        }
        blocks
    }

    fn ready(&mut self, blocks: &mut Vec<Block>) {
        while self.has(self.settings.min) {
            let Some(cut) = self.cut(self.settings.min, Drain::Ready) else { return };
            if self.emit(&cut, blocks) && !self.has(self.settings.max) {
                return;
            }
        }
    }

    fn all(&mut self, blocks: &mut Vec<Block>) {
        if !self.has(self.settings.max + 1) {
            return self.emit_rest(blocks);
        }
        while !self.is_empty() {
            let is_tail = !self.has(self.settings.max + 1);
            let cut = if is_tail { self.soft_cut().map(BlockCut::Plain) } else { self.cut(1, Drain::All) };
            match cut {
                Some(cut) => self.emit(&cut, blocks),
                None => return self.emit_rest(blocks),
            };
        }
    }

    /// Takes out every complete paragraph; of one that is too long, the part that fits.
    fn paragraphs(&mut self, blocks: &mut Vec<Block>) {
        while !self.is_empty() {
            let view = self.view();
            let gap = next_gap(view, 0, &fences(view));
            let fits = |gap: &Range<usize>| self.limit().fits(view.get(..gap.start).unwrap_or_default());
            let cut = match gap.filter(fits) {
                Some(gap) => Some(BlockCut::Plain(gap.start)),
                None if self.has(self.settings.max) => self.cut(1, Drain::Ready),
                None => None,
            };
            let Some(cut) = cut else { return };
            self.emit(&cut, blocks);
        }
    }

    fn limit(&self) -> Limit {
        Limit::utf16(self.settings.max)
    }

    /// True if so many UTF-16 units are held.
    fn has(&self, units: usize) -> bool {
        match units {
            0 => true,
            1 => !self.is_empty(),
            more => !Limit::utf16(more - 1).fits(self.held()),
        }
    }

    /// Finds the best end for a block of at least `min` UTF-16 units.
    fn cut(&self, min: usize, drain: Drain) -> Option<BlockCut> {
        let text = self.view();
        let fences = fences(text);
        let window = text.get(..self.limit().prefix(text))?;
        let least = Limit::utf16(min).prefix(text);
        let found = Breaks { text, fences: &fences, least }.best(window, self.settings.prefer, drain);
        if let Some(at) = found {
            return Some(BlockCut::Plain(at));
        }
        if self.settings.prefer == BreakPreference::Newline && !self.has(self.settings.max) {
            return None;
        }
        let breaks = Breaks { text, fences: &fences, least };
        breaks.blank(window).map(BlockCut::Plain).or_else(|| self.hard_cut(window.len(), &fences))
    }

    /// Finds the end of a full block: code is closed, as far as there is room for that.
    fn hard_cut(&self, full: usize, fences: &[Fence<'_>]) -> Option<BlockCut> {
        // Whether the last character is whole is known only with one more.
        if !self.has(self.settings.max + 1) {
            return None;
        }
        let Some(fence) = parted(fences, full) else {
            return Some(BlockCut::Plain(self.before_marks(full, fences)));
        };
        let view = self.view();
        let Some(at) = cut_in_fence(view, 0, fence, self.limit()) else {
            // The code begins where there is no room for its end: it goes to the next block.
            let before = fence.span.start.saturating_sub(1);
            let is_text = view.get(..before).is_some_and(|text| !text.trim().is_empty());
            return Some(BlockCut::Plain(if is_text { before } else { full }));
        };
        let left = view.get(at..fence.content_end())?;
        // If only the code's last line is left, that is the line that is put in.
        let is_over = fence.closed_at.is_some() && left.trim().is_empty();
        let rest_from = if is_over { fence.span.end } else { at };
        let open = if is_over { String::new() } else { fence.open.line.to_owned() };
        Some(BlockCut::InFence { at, open, closing: fence.open.closing(), rest_from })
    }

    /// Returns the end of a full block, moved before a last line of marks of which more may come:
    /// the first line of code.
    fn before_marks(&self, full: usize, fences: &[Fence<'_>]) -> usize {
        let window = self.held().get(..full).unwrap_or_default();
        let Some(line) = window.rfind('\n') else { return full };
        let (text, marks) = window.split_at(line);
        let marks = marks.trim();
        let is_marks = |mark: char| !marks.is_empty() && marks.chars().all(|c| c == mark);
        let is_cut =
            (is_marks('`') || is_marks('~')) && !text.trim().is_empty() && parted(fences, line).is_none();
        if is_cut { line } else { full }
    }

    /// Finds the place where the tail of a text may be parted once more: at its first paragraph or
    /// line, or its last sentence.
    fn soft_cut(&self) -> Option<usize> {
        let text = self.held();
        let fences = fences(text);
        let breaks = Breaks { text, fences: &fences, least: 1 };
        let first = |mark: &str| text.match_indices(mark).map(|(at, _)| at).find(|at| breaks.allows(*at));
        let prefer = self.settings.prefer;
        let paragraph = || first("\n\n").filter(|_| prefer == BreakPreference::Paragraph);
        let line = || first("\n").filter(|_| prefer != BreakPreference::Sentence);
        let sentence = || breaks.sentence(text, Drain::All).filter(|_| prefer != BreakPreference::Newline);
        paragraph().or_else(line).or_else(sentence).filter(|at| *at < text.len())
    }

    /// Puts a line before the held text, in the place of text that is gone: the block before had
    /// that line too, so there is room.
    fn put_back(&mut self, line: &str) {
        let from = self.buffer.floor_char_boundary(self.start.saturating_sub(line.len()));
        let gone = self.start - from;
        // Not to part a character some bytes more may be overwritten.
        let unused = " ".repeat(gone.saturating_sub(line.len()));
        self.buffer.replace_range(from..self.start, &format!("{unused}{line}"));
        self.start = from + unused.len();
    }

    fn emit_rest(&mut self, blocks: &mut Vec<Block>) {
        let continues = std::mem::take(&mut self.continues);
        push(blocks, self.held(), continues, self.appended);
        self.clear();
    }

    /// Cuts a block off; says whether there was anything in it.
    fn emit(&mut self, cut: &BlockCut, blocks: &mut Vec<Block>) -> bool {
        let before = blocks.len();
        let continues = std::mem::take(&mut self.continues);
        let (BlockCut::Plain(at) | BlockCut::InFence { at, .. }) = *cut;
        let end = self.appended.saturating_sub(self.held().len().saturating_sub(at));
        match *cut {
            BlockCut::Plain(at) => {
                let (text, rest) = self.held().split_at(at);
                push(blocks, text, continues, end);
                self.start = self.buffer.len() - after_break(rest).len();
            }
            BlockCut::InFence { at, ref open, ref closing, rest_from } => {
                let (content, _) = self.held().split_at(at);
                let is_line_end = content.ends_with('\n');
                let line_break = if is_line_end { "" } else { "\n" };
                push(blocks, &format!("{content}{line_break}{closing}"), continues, end);
                let rest = self.held().get(rest_from..).unwrap_or_default();
                let rest = match (open.is_empty(), is_line_end) {
                    (true, _) => after_break(rest),
                    (false, true) => rest,
                    (false, false) => line_rest(rest),
                };
                self.start = self.buffer.len() - rest.len();
                self.continues = match (open.is_empty(), is_line_end) {
                    (true, _) => Continues::Nothing,
                    (false, true) => Continues::Code,
                    (false, false) => Continues::CodeLine,
                };
                if self.continues != Continues::Nothing {
                    self.put_back(&format!("{open}\n"));
                }
            }
        }
        blocks.len() > before
    }
}

/// Number of blocks, at most, by which the held text is looked through.
const VIEW: usize = 4;

/// Returns the rest of a line of code, without a line break if the line was cut just before its
/// end.
fn line_rest(rest: &str) -> &str {
    rest.strip_prefix('\n').unwrap_or(rest)
}

/// Returns the text behind a break, without the blank at the break and the line breaks behind it.
fn after_break(rest: &str) -> &str {
    let blank = rest.chars().next().filter(|c| c.is_whitespace()).map_or(0, char::len_utf8);
    let blank = if is_grapheme_boundary(rest, blank) { blank } else { 0 };
    let rest = rest.get(blank..).unwrap_or_default();
    rest.trim_start_matches(['\n', '\r'])
}

fn push(blocks: &mut Vec<Block>, text: &str, continues: Continues, end: usize) {
    let is_empty_code = continues != Continues::Nothing && is_empty_code(text);
    if !text.trim().is_empty() && !is_empty_code {
        let words = text.trim_end();
        let end = end.saturating_sub(text.len() - words.len());
        blocks.push(Block { text: words.to_owned(), continues, end });
    }
}

/// True if a block of code has nothing between the line that was put in and its end.
fn is_empty_code(text: &str) -> bool {
    let mut lines = text.lines();
    let Some(open) = lines.next().and_then(FenceLine::parse) else { return false };
    lines.all(|line| line.trim().is_empty() || FenceLine::parse(line).is_some_and(|line| line.closes(&open)))
}

/// Places at which a text may be cut.
struct Breaks<'a, 't> {
    text: &'t str,
    fences: &'a [Fence<'t>],
    /// First place at which a cut is allowed.
    least: usize,
}

impl Breaks<'_, '_> {
    fn allows(&self, at: usize) -> bool {
        at >= self.least && at > 0 && parted(self.fences, at).is_none()
    }

    fn best(&self, window: &str, prefer: BreakPreference, drain: Drain) -> Option<usize> {
        let paragraph = || window.rmatch_indices("\n\n").find_map(|(at, _)| self.first_of(at, at + 1));
        let line = || window.rmatch_indices('\n').map(|(at, _)| at).find(|at| self.allows(*at));
        match prefer {
            BreakPreference::Paragraph => paragraph().or_else(line).or_else(|| self.sentence(window, drain)),
            BreakPreference::Newline => line(),
            BreakPreference::Sentence => self.sentence(window, drain),
        }
    }

    fn first_of(&self, a: usize, b: usize) -> Option<usize> {
        [a, b].into_iter().find(|at| self.allows(*at) && *at < self.text.len())
    }

    /// Finds the place behind the last sentence. The very end of a text that goes on does not
    /// count: it may be half a number.
    fn sentence(&self, window: &str, drain: Drain) -> Option<usize> {
        let ends = window.char_indices().rev().filter(|(_, c)| matches!(c, '.' | '!' | '?'));
        let mut ends = ends.map(|(at, c)| (at, at + c.len_utf8()));
        let is_end = |after: usize| match self.text.get(after..).and_then(|rest| rest.chars().next()) {
            Some(next) => next.is_whitespace(),
            None => drain == Drain::All,
        };
        ends.find(|(at, after)| *at >= self.least && self.allows(*after) && is_end(*after))
            .map(|(_, after)| after)
    }

    fn blank(&self, window: &str) -> Option<usize> {
        let blanks = window.char_indices().rev().filter(|(_, c)| c.is_whitespace());
        blanks.map(|(at, _)| at).find(|at| self.allows(*at) && !self.starts_fence(*at) && self.is_whole(*at))
    }

    fn starts_fence(&self, at: usize) -> bool {
        self.fences.binary_search_by_key(&at, |fence| fence.span.start).is_ok()
    }

    /// True if the character at a place is whole, rather than the bearer of an accent.
    fn is_whole(&self, at: usize) -> bool {
        let after = at + self.text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        // The next character may be an accent.
        let is_known = after < self.text.len();
        is_known && is_grapheme_boundary(self.text, at) && is_grapheme_boundary(self.text, after)
    }
}

#[cfg(test)]
mod tests;
