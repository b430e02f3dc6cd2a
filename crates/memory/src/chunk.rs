//! Cutting a file into chunks. Pure: a text and two numbers in, chunks out.
//!
//! The same chunks as OpenClaw 2026.2.9 makes of ordinary text, so that either program uses the other's index. They
//! differ where that program is wrong: a chunk never exceeds its limit because of the overlap, pieces of one long line
//! are not joined by a newline that is not in the file, no character is cut in two, and a character of a script that
//! is written without spaces counts as a whole token.

use sha2::{Digest, Sha256};
use unicode_segmentation::UnicodeSegmentation;

/// Version of this algorithm. An index that was made by another one is made anew.
pub const CHUNKER_VERSION: u32 = 1;

/// UTF-16 code units that are taken for one token.
const UNITS_PER_TOKEN: usize = 4;

/// Smallest limit of a chunk, in units.
const SMALLEST_LIMIT: usize = 32;

/// Sizes of chunks, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunking {
    /// Largest size of a chunk.
    pub tokens: usize,
    /// Tokens at the end of a chunk that the next one repeats.
    pub overlap: usize,
}

impl Default for Chunking {
    fn default() -> Self {
        Self { tokens: 400, overlap: 80 }
    }
}

impl Chunking {
    /// Returns the sizes that are meant: at least one token, and less overlap than a chunk holds.
    #[must_use]
    pub fn resolved(self) -> Self {
        let tokens = self.tokens.max(1);
        Self { tokens, overlap: self.overlap.min(tokens - 1) }
    }

    fn limit(self) -> usize {
        self.tokens.saturating_mul(UNITS_PER_TOKEN).max(SMALLEST_LIMIT)
    }

    fn overlap_units(self) -> usize {
        self.overlap.saturating_mul(UNITS_PER_TOKEN)
    }
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// First line, counted from one.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Text of these lines.
    pub text: String,
}

impl Chunk {
    /// Returns the SHA-256 of the text, in hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256_hex(self.text.as_bytes())
    }

    /// Returns whether nothing but white space stands there. Such chunks are not indexed.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// Returns the SHA-256 of `bytes` in hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| DIGITS.get(usize::from(digit))).map(|digit| char::from(*digit)).collect()
}

/// A line, or a piece of one that is longer than a chunk may be.
#[derive(Debug, Clone, Copy)]
struct LinePiece<'a> {
    text: &'a str,
    /// Weight of `text`, see [`weight`].
    size: usize,
    line: u32,
    /// True if the piece continues the line of the segment before it.
    continues: bool,
}

impl<'a> LinePiece<'a> {
    /// Returns what the segment adds to a chunk behind other segments: its text and the newline before it.
    fn added(&self) -> usize {
        self.size + usize::from(!self.continues)
    }

    /// Returns the end of the segment that weighs at most `limit`, or `None` if not one character does.
    fn tail(&self, limit: usize) -> Option<Self> {
        let mut size = 0;
        let mut start = self.text.len();
        for (at, grapheme) in self.text.grapheme_indices(true).rev() {
            let more = weight(grapheme);
            if size + more > limit {
                break;
            }
            size += more;
            start = at;
        }
        let text: &'a str = self.text.get(start..)?;
        (!text.is_empty()).then_some(Self { text, size, ..*self })
    }
}

/// Cuts `content` into chunks. At least one comes back, also for an empty text; blank ones are for the caller to drop.
#[must_use]
pub fn chunks(content: &str, chunking: Chunking) -> Vec<Chunk> {
    let chunking = chunking.resolved();
    let limit = chunking.limit();
    let mut done = Vec::new();
    let mut current: Vec<LinePiece<'_>> = Vec::new();
    // Counts a newline for every segment, as OpenClaw 2026.2.9 does when it decides whether a chunk is full.
    let mut size = 0;
    for (index, line) in content.split('\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        for segment in segments(line, number, limit) {
            if size + segment.size + 1 > limit && !current.is_empty() {
                done.push(joined(&current));
                current = carried(&current, &segment, limit, chunking.overlap_units());
                size = current.iter().map(|carried| carried.size + 1).sum();
            }
            size += segment.size + 1;
            current.push(segment);
        }
    }
    if !current.is_empty() {
        done.push(joined(&current));
    }
    done
}

/// Returns the segments of the chunk before that are repeated in front of `next`: whole ones until they make the
/// overlap, fewer if the chunk would grow beyond its limit; one that is longer than the overlap gives its end alone.
fn carried<'a>(
    before: &[LinePiece<'a>],
    next: &LinePiece<'a>,
    limit: usize,
    overlap: usize,
) -> Vec<LinePiece<'a>> {
    let mut kept = Vec::new();
    let mut counted = 0;
    let Some(mut room) = limit.checked_sub(next.added()) else { return kept };
    for (index, segment) in before.iter().enumerate().rev() {
        if counted >= overlap {
            break;
        }
        // The first segment of a chunk has no newline before it.
        if segment.size <= room {
            kept.push(*segment);
            counted += segment.size + 1;
            let Some(left) = room.checked_sub(segment.added()) else { break };
            room = left;
            continue;
        }
        let is_cut = index + 1 == before.len();
        if let Some(tail) = segment.tail(room.min(overlap)).filter(|_| is_cut) {
            kept.push(tail);
        }
        break;
    }
    kept.reverse();
    kept
}

fn joined(segments: &[LinePiece<'_>]) -> Chunk {
    let mut text = String::with_capacity(segments.iter().map(|segment| segment.text.len() + 1).sum());
    for (index, segment) in segments.iter().enumerate() {
        if index > 0 && !segment.continues {
            text.push('\n');
        }
        text.push_str(segment.text);
    }
    let line = |segment: Option<&LinePiece<'_>>| segment.map_or(1, |segment| segment.line);
    Chunk { start_line: line(segments.first()), end_line: line(segments.last()), text }
}

fn segments(line: &str, number: u32, limit: usize) -> Vec<LinePiece<'_>> {
    let size = weight(line);
    if size <= limit {
        return vec![LinePiece { text: line, size, line: number, continues: false }];
    }
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = cut(rest, limit);
        let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        pieces.push(LinePiece {
            text: piece,
            size: weight(piece),
            line: number,
            continues: !pieces.is_empty(),
        });
        rest = after;
    }
    pieces
}

/// Returns the byte at which a text is cut so that its beginning weighs at most `limit`: between two characters as
/// readers see them, or between code points if one such character alone is too long. At least one code point.
fn cut(text: &str, limit: usize) -> usize {
    let mut size = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        size += weight(grapheme);
        if size > limit && at > 0 {
            return at;
        }
        if size > limit {
            break;
        }
    }
    if size <= limit {
        return text.len();
    }
    let mut size = 0;
    for (at, letter) in text.char_indices() {
        size += char_weight(letter);
        if size > limit && at > 0 {
            return at;
        }
    }
    text.len()
}

/// Returns how many UTF-16 code units `text` counts for.
fn weight(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_weight).sum() }
}

fn char_weight(letter: char) -> usize {
    if is_whole_token(letter) { UNITS_PER_TOKEN } else { letter.len_utf16() }
}

/// Returns whether models take about one token for the character alone: Han, kana and Hangul.
fn is_whole_token(letter: char) -> bool {
    matches!(u32::from(letter),
        0x1100..=0x11FF | 0x2E80..=0x2FDF | 0x3040..=0x30FF | 0x3130..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC
        | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests;
