//! Reading many lines of a log with few calls.

use std::io;

use crate::transcript::storage::TranscriptLog;

/// Bytes that are read at once when lines are read one after the other.
const AT_ONCE: u64 = 64 * 1024;

/// The piece of a log that was read last. Good for as long as nothing but appends happens to the log.
#[derive(Debug)]
pub(in crate::transcript) struct LineWindow {
    reads: Reads,
    start: u64,
    bytes: Vec<u8>,
}

/// Neighbours that are read with a line.
#[derive(Debug, Clone, Copy)]
enum Reads {
    Nothing,
    WhatFollows,
    WhatIsBefore,
}

impl LineWindow {
    /// Window for lines that are read in the order of the log: the following lines are read with
    /// each.
    pub(in crate::transcript) fn ahead() -> Self {
        Self { reads: Reads::WhatFollows, start: 0, bytes: Vec::new() }
    }

    /// Window for lines that are read from the end of the log.
    pub(in crate::transcript) fn backward() -> Self {
        Self { reads: Reads::WhatIsBefore, start: 0, bytes: Vec::new() }
    }

    /// Window for a single line.
    pub(in crate::transcript) fn exact() -> Self {
        Self { reads: Reads::Nothing, start: 0, bytes: Vec::new() }
    }

    /// The `len` bytes at `offset` of a log that is known to have `end` bytes.
    pub(in crate::transcript) fn line(
        &mut self,
        log: &dyn TranscriptLog,
        offset: u64,
        len: u32,
        end: u64,
    ) -> io::Result<&[u8]> {
        if self.slice(offset, len).is_none() {
            let line_end = offset + u64::from(len);
            let (from, to) = match self.reads {
                Reads::Nothing => (offset, line_end),
                Reads::WhatFollows => (offset, line_end.max(end.min(offset + AT_ONCE))),
                Reads::WhatIsBefore => (offset.min(line_end.saturating_sub(AT_ONCE)), line_end),
            };
            self.start = from;
            self.bytes.resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
            let read = read_at(log, &mut self.bytes, from);
            self.bytes.truncate(read.as_ref().copied().unwrap_or(0));
            read?;
        }
        self.slice(offset, len).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn slice(&self, offset: u64, len: u32) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(len as usize)?)
    }
}

/// Reads as much as there is.
fn read_at(log: &dyn TranscriptLog, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match log.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::MemoryLogs;

    #[test]
    fn lines_are_the_same_however_they_are_read() {
        let text: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let log = MemoryLogs::log_of(&text);
        let end = text.len() as u64;
        let places = [(0, 10), (10, 500), (65_530, 20), (5, 3), (99_990, 10), (0, 100_000)];
        let (mut ahead, mut exact, mut backward) =
            (LineWindow::ahead(), LineWindow::exact(), LineWindow::backward());
        for (offset, len) in places {
            let expect = &text[offset as usize..][..len as usize];
            assert_eq!(ahead.line(&*log, offset, len, end).unwrap(), expect, "{offset}");
            assert_eq!(exact.line(&*log, offset, len, end).unwrap(), expect, "{offset}");
            assert_eq!(backward.line(&*log, offset, len, end).unwrap(), expect, "{offset}");
        }
        assert!(exact.line(&*log, 99_995, 10, end).is_err());
    }
}
