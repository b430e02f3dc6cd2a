//! Reading the lines of a file forwards, whatever they hold.

use std::io::{self, BufRead};

/// Longest line that is read; a longer one counts as malformed and is skipped.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it begins.
    pub(crate) offset: u64,
    /// Its length without newline.
    pub(crate) len: u64,
    /// Whether a newline ended it.
    pub(crate) ended: bool,
    /// Whether it was too long to be kept; then the buffer holds its beginning.
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
    pub(crate) fn advance(&mut self) -> io::Result<Option<Line>> {
        self.buffer.clear();
        let mut line = Line { offset: self.offset, len: 0, ended: false, cut: false };
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
