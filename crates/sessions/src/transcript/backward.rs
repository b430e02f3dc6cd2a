//! Reading a transcript from its end: the branch of the last entry, without reading what is before (spec §4.9).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use super::format::Header;
use super::index::{Kind, LineHead};
use super::scan::{Lines, MAX_LINE_BYTES};

const CHUNK: usize = 64 * 1024;

/// The lines of a file, last first.
struct LinesBackward<R> {
    reader: R,
    /// Everything before this is unread.
    start: u64,
    /// The unread part's neighbour: bytes from `start` on, up to the last line given out.
    pending: Vec<u8>,
    /// Whether the beginning of the current line was thrown away because it is too long.
    cut: bool,
    finished: bool,
}

impl<R: Read + Seek> LinesBackward<R> {
    fn new(mut reader: R) -> io::Result<Self> {
        let start = reader.seek(SeekFrom::End(0))?;
        Ok(Self { reader, start, pending: Vec::new(), cut: false, finished: false })
    }

    /// The line before the last one; blank and over-long lines are given as empty.
    fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let unsearched = self.pending.len().saturating_sub(searched);
            let head = self.pending.get(..unsearched).unwrap_or_default();
            if let Some(at) = memchr::memrchr(b'\n', head) {
                let line = self.pending.split_off(at + 1);
                self.pending.truncate(at);
                return Ok(Some(self.finish_line(line)));
            }
            searched = self.pending.len();
            if self.start == 0 {
                if self.finished {
                    return Ok(None);
                }
                self.finished = true;
                let line = std::mem::take(&mut self.pending);
                return Ok(Some(self.finish_line(line)));
            }
            if self.pending.len() > MAX_LINE_BYTES {
                self.pending.clear();
                self.cut = true;
                searched = 0;
            }
            self.read_before()?;
        }
    }

    fn finish_line(&mut self, line: Vec<u8>) -> Vec<u8> {
        if std::mem::take(&mut self.cut) { Vec::new() } else { line }
    }

    /// Reads the chunk before `start`; chunks grow with the line so that long lines cost linear time.
    fn read_before(&mut self) -> io::Result<()> {
        let want = CHUNK.max(self.pending.len()).min(usize::try_from(self.start).unwrap_or(usize::MAX));
        let start = self.start - want as u64;
        self.reader.seek(SeekFrom::Start(start))?;
        let mut chunk = vec![0; want];
        self.reader.read_exact(&mut chunk)?;
        chunk.append(&mut self.pending);
        self.pending = chunk;
        self.start = start;
        Ok(())
    }
}

/// Visits the entries of the branch that ends with the last entry of the file, leaf first, until `visit` breaks. Lines of
/// other branches and malformed lines are passed over. Blocking.
pub fn walk_branch(
    path: &Path,
    mut visit: impl FnMut(&LineHead, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let file = File::open(path)?;
    let Some(header) = header_of(&file)? else { return Ok(()) };
    let linear = header.version < 2;
    let mut lines = LinesBackward::new(file)?;
    let mut wanted = None;
    let mut at_leaf = true;
    while let Some(line) = lines.next_line()? {
        let Some(head) = LineHead::parse(&line) else { continue };
        if head.kind == Kind::Header {
            continue;
        }
        if !linear {
            if head.id.is_none() || (!at_leaf && head.id != wanted) {
                continue;
            }
            at_leaf = false;
            wanted.clone_from(&head.parent_id);
        }
        if visit(&head, &line).is_break() || (!linear && wanted.is_none()) {
            break;
        }
    }
    Ok(())
}

/// Visits the first `count` entries of a file in their order, reading no more than `budget` bytes. Blocking.
pub fn first_entries(
    path: &Path,
    count: usize,
    budget: u64,
    mut visit: impl FnMut(&LineHead, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(File::open(path)?.take(budget)), 0);
    let mut seen = 0;
    while seen < count && lines.advance()?.is_some() {
        seen += 1;
        if let Some(head) = LineHead::parse(lines.bytes())
            && visit(&head, lines.bytes()).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// The header, when the first line that is JSON is one.
pub fn header_of(file: &File) -> io::Result<Option<Header>> {
    let mut lines = Lines::new(BufReader::with_capacity(4096, file), 0);
    while lines.advance()?.is_some() {
        let bytes = lines.bytes();
        if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
            return Ok(serde_json::from_slice(bytes).ok());
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn backward(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = LinesBackward::new(Cursor::new(bytes)).unwrap();
        let mut out = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            out.push(line);
        }
        out
    }

    #[test]
    fn long_lines_cross_chunks() {
        let long = vec![b'x'; 3 * CHUNK + 5];
        let text = [b"a\n".as_slice(), &long, b"\nb"].concat();
        assert_eq!(backward(&text), [b"b".to_vec(), long, b"a".to_vec()]);
    }

    proptest! {
        #[test]
        fn backward_is_forward_reversed(text in "[ab\n]{0,60}") {
            let mut expect: Vec<Vec<u8>> = text.split('\n').map(|line| line.as_bytes().to_vec()).collect();
            expect.reverse();
            prop_assert_eq!(backward(text.as_bytes()), expect);
        }
    }

    #[test]
    fn only_the_branch_of_the_leaf_is_walked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let entry = |id: &str, parent: &str| {
            let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
            format!("{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent}}}\n")
        };
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned();
        let lines =
            [header, entry("a", ""), entry("b", "a"), "torn\n".into(), entry("c", "a"), entry("d", "c")];
        std::fs::write(&path, lines.concat() + "{\"type\":\"mess").unwrap();
        let mut seen = Vec::new();
        walk_branch(&path, |head, _| {
            seen.push(head.id.clone().unwrap().to_string());
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, ["d", "c", "a"]);
    }
}
