//! Reading the lines of a log forwards, whatever they hold.

use std::io::{self, BufRead, Read as _};

use super::storage::{LogPart, TranscriptLog};

/// Longest line that is read; a longer one counts as malformed and is skipped.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Line of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScannedLine {
    /// Offset of its first byte.
    pub(crate) offset: u64,
    /// Length in bytes, without the newline.
    pub(crate) len: u64,
    /// True if a newline ended it.
    pub(crate) ended: bool,
    /// True if it was too long to be kept; then the buffer holds its beginning.
    pub(crate) cut: bool,
}

/// Lines one after the other, in one buffer.
pub(crate) struct Lines<R> {
    reader: R,
    offset: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R, offset: u64) -> Self {
        Self { reader, offset, buffer: Vec::new() }
    }

    /// The next line; its bytes are in [`Self::bytes`] until the next call.
    pub(crate) fn advance(&mut self) -> io::Result<Option<ScannedLine>> {
        self.buffer.clear();
        let mut line = ScannedLine { offset: self.offset, len: 0, ended: false, cut: false };
        while !line.ended {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            let content = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let room = MAX_LINE_BYTES.saturating_sub(self.buffer.len());
            line.cut |= content.len() > room;
            self.buffer.extend_from_slice(content.get(..room).unwrap_or(content));
            line.len += content.len() as u64;
            line.ended = end.is_some();
            let used = content.len() + usize::from(line.ended);
            self.offset += used as u64;
            self.reader.consume(used);
        }
        Ok((line.len > 0 || line.ended).then_some(line))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }
}

/// Start of a line about `want` bytes before `end`, which is itself the start of a line or the end
/// of the log. A longer line is not parted: then it begins further in front.
pub(crate) fn line_start(log: &dyn TranscriptLog, end: u64, want: u64) -> io::Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    // The newline just before `end` ends the line that is looked for.
    let Some(end) = end.checked_sub(1) else { return Ok(0) };
    let from = (end + 1).saturating_sub(want.max(1));
    if from == 0 {
        return Ok(0);
    }
    let mut buffer = Vec::new();
    let mut read = |from: u64, to: u64, find: fn(u8, &[u8]) -> Option<usize>| {
        buffer.clear();
        buffer.reserve(usize::try_from(to - from).unwrap_or(0));
        LogPart::new(log, from, to).read_to_end(&mut buffer)?;
        Ok::<_, io::Error>(find(b'\n', &buffer).map(|at| from + at as u64 + 1))
    };
    let mut at = from - 1;
    while at < end {
        let to = (at + CHUNK).min(end);
        if let Some(start) = read(at, to, memchr::memchr)? {
            return Ok(start);
        }
        at = to;
    }
    let mut to = from - 1;
    while to > 0 {
        let at = to.saturating_sub(CHUNK);
        if let Some(start) = read(at, to, memchr::memrchr)? {
            return Ok(start);
        }
        to = at;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::MemoryLogs;

    #[test]
    fn lines_know_their_place_and_end() {
        let mut lines = Lines::new(&b"ab\n\nc"[..], 10);
        let mut got = Vec::new();
        while let Some(line) = lines.advance().unwrap() {
            got.push((line.offset, line.len, line.ended, lines.bytes().to_vec()));
        }
        let expect =
            [(10, 2, true, b"ab".to_vec()), (13, 0, true, Vec::new()), (14, 1, false, b"c".to_vec())];
        assert_eq!(got, expect);
    }

    proptest::proptest! {
        #[test]
        fn a_part_begins_with_a_line_and_makes_way(text in "[a\n]{0,40}", want in 0..50_u64) {
            let mut end = text.len() as u64;
            let log = MemoryLogs::log_of(text.as_bytes());
            while end > 0 {
                let start = line_start(&*log, end, want).unwrap();
                let before = &text.as_bytes()[..start as usize];
                proptest::prop_assert!(start < end && (before.is_empty() || before.ends_with(b"\n")));
                // No more than is asked for, unless one line is longer.
                let inner = &text.as_bytes()[start as usize..end as usize - 1];
                proptest::prop_assert!(end - start <= want.max(1) || !inner.contains(&b'\n'));
                end = start;
            }
        }
    }
}
