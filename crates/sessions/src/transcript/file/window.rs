//! Reading many lines of a file with few system calls.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes that are read at once when lines are read one after the other.
const AT_ONCE: u64 = 64 * 1024;

/// The piece of a file that was read last. Good for as long as nothing but appends happens to the file.
#[derive(Debug)]
pub(in crate::transcript) struct FileWindow {
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

impl FileWindow {
    /// Window for lines that are read in the order of the file: the following lines are read with
    /// each.
    pub(in crate::transcript) fn ahead() -> Self {
        Self { reads: Reads::WhatFollows, start: 0, bytes: Vec::new() }
    }

    /// Window for lines that are read from the end of the file.
    pub(in crate::transcript) fn backward() -> Self {
        Self { reads: Reads::WhatIsBefore, start: 0, bytes: Vec::new() }
    }

    /// Window for a single line.
    pub(in crate::transcript) fn exact() -> Self {
        Self { reads: Reads::Nothing, start: 0, bytes: Vec::new() }
    }

    /// The `len` bytes at `offset` of a file that is known to have `end` bytes.
    pub(in crate::transcript) fn line(
        &mut self,
        file: &File,
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
            let read = read_at(file, &mut self.bytes, from);
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
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
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
    use std::io::Write as _;

    #[test]
    fn lines_are_the_same_however_they_are_read() {
        let text: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        let end = text.len() as u64;
        let places = [(0, 10), (10, 500), (65_530, 20), (5, 3), (99_990, 10), (0, 100_000)];
        let (mut ahead, mut exact, mut backward) =
            (FileWindow::ahead(), FileWindow::exact(), FileWindow::backward());
        for (offset, len) in places {
            let expect = &text[offset as usize..][..len as usize];
            assert_eq!(ahead.line(&file, offset, len, end).unwrap(), expect, "{offset}");
            assert_eq!(exact.line(&file, offset, len, end).unwrap(), expect, "{offset}");
            assert_eq!(backward.line(&file, offset, len, end).unwrap(), expect, "{offset}");
        }
        assert!(exact.line(&file, 99_995, 10, end).is_err());
    }
}
