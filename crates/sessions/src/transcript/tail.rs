//! Known last part of a transcript's log, as much of it as has been read. Everybody who follows a
//! branch does so here, whether the log is open for writing or only looked at.

use std::io::{self, BufRead, BufReader};

use super::head::{Kind, LineHead};
use super::index::Index;
use super::scan::{Lines, ScannedLine, line_start};
use super::storage::{LogPart, TranscriptLog, TranscriptRef};

/// Maximum number of bytes that are read at once when more is needed.
const MOST_AT_ONCE: u64 = 32 * 1024 * 1024;
/// Largest buffer that lines are read through.
const BUFFER: usize = 256 * 1024;

/// Size of the buffer for reading so many bytes.
pub(super) fn buffer_for(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(BUFFER).clamp(1, BUFFER)
}

/// The last part of a log.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) index: Index,
    /// Offset at which the known part begins.
    start: u64,
    /// Offset before which nothing is read.
    stop: u64,
    /// Number of bytes read last.
    step: u64,
}

impl Tail {
    /// Creates a tail that knows nothing yet of what is before or behind `start`. Not twice `step`
    /// is read at first, nor anything before `stop`.
    pub(super) fn new(start: u64, stop: u64, step: u64) -> Self {
        let index = if start == 0 { Index::default() } else { Index::of_tail() };
        Self { index, start, stop, step }
    }

    /// True if no more can be read.
    pub(super) fn is_at_stop(&self) -> bool {
        self.start <= self.stop
    }

    /// Reads a part before the one that is known, as long again as the last one and as much more.
    pub(super) fn load_more(&mut self, log: &dyn TranscriptLog, version: u32) -> io::Result<SkippedLines> {
        let mut skipped = SkippedLines::default();
        self.step = (2 * self.step).min(MOST_AT_ONCE);
        let start = line_start(log, self.start, self.step.min(self.start - self.stop))?;
        if start < self.stop {
            self.start = self.stop;
            return Ok(skipped);
        }
        let mut before = if start == 0 { Index::default() } else { Index::of_tail() };
        let part = LogPart::new(log, start, self.start);
        let buffer = buffer_for(self.start - start);
        let mut lines = Lines::new(BufReader::with_capacity(buffer, part), start);
        while let Some(line) = lines.advance()? {
            skipped.note(&line, index_line(&mut before, &line, &lines, version));
        }
        self.index.prepend(before);
        self.start = start;
        Ok(skipped)
    }
}

/// Kind of line that was indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexed {
    /// A header, or an entry, which is in the index now.
    Read,
    /// Only white space.
    Blank,
    /// An entry without an id, which cannot be one.
    Nameless,
    /// Line that can't be read.
    Malformed,
}

/// Puts the line that was read last into an index, if it is an entry.
pub(super) fn index_line<R: BufRead>(
    index: &mut Index,
    line: &ScannedLine,
    lines: &Lines<R>,
    version: u32,
) -> Indexed {
    if line.cut {
        return Indexed::Malformed;
    }
    if lines.bytes().iter().all(u8::is_ascii_whitespace) {
        return Indexed::Blank;
    }
    match (LineHead::parse(lines.bytes()), u32::try_from(line.len)) {
        (Some(head), Ok(_)) if head.kind == Kind::Header => Indexed::Read,
        (Some(head), Ok(len)) => match index.push_line(line.offset, len, head, version) {
            Some(_) => Indexed::Read,
            None => Indexed::Nameless,
        },
        _ => Indexed::Malformed,
    }
}

/// Lines that are no entries, logged together.
#[derive(Debug, Default)]
pub(super) struct SkippedLines {
    count: usize,
    first: u64,
}

impl SkippedLines {
    pub(super) fn note(&mut self, line: &ScannedLine, indexed: Indexed) {
        if matches!(indexed, Indexed::Nameless | Indexed::Malformed) {
            if self.count == 0 {
                self.first = line.offset;
            }
            self.count += 1;
        }
    }

    pub(super) fn warn(&self, transcript: &TranscriptRef) {
        if self.count > 0 {
            let (lines, first) = (self.count, self.first);
            tracing::warn!(file = %transcript, lines, first_offset = first, "skipped malformed lines");
        }
    }
}
