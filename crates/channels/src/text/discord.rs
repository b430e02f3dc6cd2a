//! Text for Discord, cut by length and by lines (spec `streaming.md` §9.4): a message of many lines fills the screen of whoever reads it.

use unicode_segmentation::UnicodeSegmentation;

use super::fence::{FenceLine, before_fence_like, is_fence_like};
use super::grapheme::{is_blank, is_grapheme_boundary};
use super::limit::Limit;
use super::{ChunkMode, paragraphs};

/// Beginning of messages that show what a model thought.
const REASONING: &str = "Reasoning:\n_";

/// A block of code is three lines at least.
const MIN_LINES: usize = 3;

/// Limits of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscordLimits {
    /// UTF-16 units.
    pub chars: usize,
    /// Lines: `channels.discord.maxLinesPerMessage`.
    pub lines: usize,
}

impl Default for DiscordLimits {
    fn default() -> Self {
        Self { chars: 2000, lines: 17 }
    }
}

/// The messages of a Markdown text.
pub fn chunk_discord(text: &str, limits: DiscordLimits, mode: ChunkMode) -> Vec<String> {
    match mode {
        ChunkMode::Length => whole(text, limits),
        ChunkMode::Newline => {
            paragraphs(text).iter().flat_map(|paragraph| whole(paragraph, limits)).collect()
        }
    }
}

fn whole(text: &str, limits: DiscordLimits) -> Vec<String> {
    let limits = DiscordLimits { chars: limits.chars.max(1), lines: limits.lines.max(MIN_LINES) };
    if text.trim().is_empty() {
        return Vec::new();
    }
    if Limit::utf16(limits.chars).fits(text) && text.split('\n').count() <= limits.lines {
        return vec![text.to_owned()];
    }
    let is_reasoning = text.starts_with(REASONING) && text.trim_end().ends_with('_');
    // Room for the underscores at both ends.
    let chars = if is_reasoning { limits.chars.saturating_sub(2).max(1) } else { limits.chars };
    let mut cutter = Cutter { limits: DiscordLimits { chars, ..limits }, ..Cutter::default() };
    for line in text.split('\n') {
        cutter.line(line);
    }
    cutter.flush();
    if is_reasoning { in_italics(cutter.messages) } else { cutter.messages }
}

#[derive(Default)]
struct Cutter<'t> {
    limits: DiscordLimits,
    messages: Vec<String>,
    current: String,
    /// UTF-16 units and lines of it.
    chars: usize,
    lines: usize,
    /// The code block that the text is in.
    open: Option<FenceLine<'t>>,
    /// True if `current` has a line of that block after its first.
    has_content: bool,
}

impl<'t> Cutter<'t> {
    fn line(&mut self, line: &'t str) {
        let fence = FenceLine::parse(line);
        match (self.open, fence) {
            (None, Some(opening)) if opening.opens() && self.has_room_for(opening) => self.opening(opening),
            (Some(open), Some(closing)) if closing.closes(&open) => self.closing(line),
            (Some(open), _) => self.code(line, open),
            (None, _) => self.prose(line),
        }
    }

    /// Returns true if a message has room for a block that starts with this line. A block without
    /// room is treated as ordinary text.
    fn has_room_for(&self, opening: FenceLine<'_>) -> bool {
        Limit::utf16(0).len(opening.line) + opening.closing_len() + 3 <= self.limits.chars / 2
    }

    /// The first line of a block goes to the next message if not even a line of content and its end have room behind it.
    fn opening(&mut self, opening: FenceLine<'t>) {
        let len = Limit::utf16(0).len(opening.line);
        let needs = len + 1 + opening.closing_len() + 3;
        if !self.current.is_empty() && !self.has_room(needs, 3) {
            self.flush();
        }
        self.append_line(opening.line, len);
        self.open = Some(opening);
        self.has_content = false;
    }

    /// A block that was closed when its message was full needs no other end.
    fn closing(&mut self, line: &str) {
        let len = Limit::utf16(0).len(line);
        if !self.current.is_empty() && !self.has_room(len, 1) {
            self.flush();
        }
        if !self.current.is_empty() {
            self.append_line(line, len);
        }
        self.open = None;
    }

    /// Cut where the message is full: blanks matter here.
    fn code(&mut self, line: &str, open: FenceLine<'t>) {
        let mut rest = line;
        loop {
            self.reopen(open);
            let room = self.room(open.closing_len() + 1, 1);
            let fits = room.map_or(0, |room| if room.fits(rest) { rest.len() } else { room.prefix(rest) });
            let is_over =
                room.is_none_or(|room| room.len(rest.get(..fits).unwrap_or_default()) > room.units());
            // The next message has room for a character that is long.
            let is_parted = fits < rest.len() && !is_grapheme_boundary(rest, fits);
            if (is_over || is_parted) && self.has_content {
                self.flush();
                continue;
            }
            if (is_over || is_parted) && self.take_back_opening(open) {
                continue;
            }
            // The next part must not begin with what looks like the end of the block.
            let cut = if fits < rest.len() { before_fence_like(rest, 0, fits) } else { Some(fits) };
            if cut.is_none() && self.has_content {
                self.flush();
                continue;
            }
            let fits = cut.unwrap_or(fits);
            let (piece, more) = rest.split_at(fits);
            self.append_line(piece, Limit::utf16(0).len(piece));
            self.has_content = true;
            if more.is_empty() {
                return;
            }
            rest = more;
            self.flush();
        }
    }

    /// Lets a block begin in the next message where it has no content yet behind other text. Says whether there is such text.
    fn take_back_opening(&mut self, open: FenceLine<'t>) -> bool {
        let before = self.current.strip_suffix(open.line).and_then(|text| text.strip_suffix('\n'));
        let Some(kept) = before.map(str::len) else { return false };
        self.current.truncate(kept);
        self.open = None;
        self.flush();
        self.open = Some(open);
        true
    }

    /// Cut at blanks, which are dropped there.
    fn prose(&mut self, line: &str) {
        let mut rest = line;
        loop {
            let Some(room) = self.room(0, 1) else {
                self.flush();
                continue;
            };
            if room.fits(rest) {
                self.append_line(rest, Limit::utf16(0).len(rest));
                return;
            }
            let (piece, more) = match at_blank(rest, room) {
                Some(cut) => cut,
                None if !self.current.is_empty() => {
                    self.flush();
                    continue;
                }
                None => {
                    let full = room.prefix(rest);
                    rest.split_at(before_fence_like(rest, 0, full).unwrap_or(full))
                }
            };
            if !piece.is_empty() {
                self.append_line(piece, Limit::utf16(0).len(piece));
            }
            self.flush();
            rest = more;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// The room for one more line beside what is reserved; `None` where there is none. An empty message always has some.
    fn room(&self, chars: usize, lines: usize) -> Option<Limit> {
        let line_break = usize::from(!self.current.is_empty());
        let left = self.limits.chars.saturating_sub(self.chars + line_break + chars);
        let reserved = if chars == 0 { 0 } else { 1 };
        let is_full = self.lines + lines + reserved > self.limits.lines || left == 0;
        match self.current.is_empty() {
            true => Some(Limit::utf16(left.max(1))),
            false => (!is_full).then(|| Limit::utf16(left)),
        }
    }

    fn has_room(&self, chars: usize, lines: usize) -> bool {
        self.chars + 1 + chars <= self.limits.chars && self.lines + lines <= self.limits.lines
    }

    fn append_line(&mut self, line: &str, len: usize) {
        if self.current.is_empty() && line.trim().is_empty() && self.open.is_none() {
            // A message starts with something to read.
            return;
        }
        if !self.current.is_empty() {
            self.current.push('\n');
            self.chars += 1;
        }
        self.current.push_str(line);
        self.chars += len;
        self.lines += 1;
    }

    fn reopen(&mut self, open: FenceLine<'t>) {
        if self.current.is_empty() {
            self.append_line(open.line, Limit::utf16(0).len(open.line));
            self.has_content = false;
        }
    }

    fn flush(&mut self) {
        let mut message = std::mem::take(&mut self.current);
        (self.chars, self.lines) = (0, 0);
        if let Some(open) = self.open.filter(|_| !message.is_empty()) {
            message.push('\n');
            message.push_str(&open.closing());
        }
        if !message.trim().is_empty() {
            self.messages.push(message);
        }
    }
}

/// Splits a line at its last blank within the limit, and returns both sides without the blanks
/// between them.
fn at_blank(line: &str, room: Limit) -> Option<(&str, &str)> {
    let full = room.prefix(line);
    let window = line.get(..full)?;
    let rest = line.get(full..)?;
    let is_blank_next = super::grapheme::trim_start(rest).len() < rest.len();
    let is_cut = |at: usize| at > 0 && !is_fence_like(line.get(at..).unwrap_or_default().trim_start());
    let blank = window.grapheme_indices(true).rev().find(|(at, grapheme)| is_blank(grapheme) && is_cut(*at));
    let end = if is_blank_next && room.fits(window) && is_cut(full) { full } else { blank?.0 };
    let (piece, rest) = line.split_at(end);
    Some((piece.trim_end(), super::grapheme::trim_start(rest)))
}

/// Every message in italics, as the whole was.
fn in_italics(mut messages: Vec<String>) -> Vec<String> {
    let last = messages.len().saturating_sub(1);
    for (at, message) in messages.iter_mut().enumerate() {
        if at > 0 && !message.trim_start().starts_with('_') {
            let body = message.trim_start().len();
            message.insert(message.len() - body, '_');
        }
        if at < last && !message.trim_end().ends_with('_') {
            message.push('_');
        }
    }
    messages
}
