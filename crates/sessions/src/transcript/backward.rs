//! Reading a transcript from its end: the branch of the last entry, without reading what is before (spec §4.9).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use super::file::HEADER_WITHIN;
use super::format::{EntryId, Header, VERSION};
use super::index::{Index, Kind, LineHead};
use super::scan::{Lines, MAX_LINE_BYTES};
use crate::disk::open_regular;
use crate::mend::mend;

const CHUNK: usize = 64 * 1024;

/// The lines of a file, last first.
struct LinesBackward<R> {
    reader: R,
    /// Nothing before this is read.
    stop: u64,
    /// Everything before this is unread.
    start: u64,
    /// The unread part's neighbour: bytes from `start` on, up to the last line given out.
    pending: Vec<u8>,
    /// Whether the beginning of the current line was thrown away because it is too long.
    cut: bool,
    finished: bool,
}

impl<R: Read + Seek> LinesBackward<R> {
    fn new(mut reader: R, reach: u64) -> io::Result<Self> {
        let start = reader.seek(SeekFrom::End(0))?;
        Ok(Self {
            reader,
            stop: start.saturating_sub(reach),
            start,
            pending: Vec::new(),
            cut: false,
            finished: false,
        })
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
            if self.start > 0 && self.start == self.stop {
                // The rest of this line is out of reach.
                return Ok(None);
            }
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

    /// Where the line given out last begins.
    fn offset(&self) -> u64 {
        if self.finished { 0 } else { self.start + self.pending.len() as u64 + 1 }
    }

    fn finish_line(&mut self, line: Vec<u8>) -> Vec<u8> {
        if std::mem::take(&mut self.cut) || line.len() > MAX_LINE_BYTES { Vec::new() } else { line }
    }

    /// Reads the chunk before `start`; chunks grow with the line so that long lines cost linear time.
    fn read_before(&mut self) -> io::Result<()> {
        let left = usize::try_from(self.start - self.stop).unwrap_or(usize::MAX);
        let most = MAX_LINE_BYTES.saturating_sub(self.pending.len()) + 1;
        let want = CHUNK.max(self.pending.len()).min(left).min(most);
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
/// other branches and malformed lines are passed over; an entry whose parent is not in the file goes on from the entry
/// before it. Blocking.
pub(crate) fn walk_branch(
    path: &Path,
    visit: impl FnMut(&LineHead, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    walk_end(path, u64::MAX, visit)
}

/// [`walk_branch`] that reads no more than the last `reach` bytes of the file.
pub(crate) fn walk_end(
    path: &Path,
    reach: u64,
    mut visit: impl FnMut(&LineHead, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let file = open_regular(path)?;
    let version = match beginning_of(&file)? {
        Beginning::Header(header) => header.version,
        Beginning::Entry => VERSION,
        Beginning::Something => return Ok(()),
    };
    let linear = version < 2;
    let mut lines = LinesBackward::new(&file, reach)?;
    let mut wanted = Wanted::Any;
    let mut visited_at = 0;
    while let Some(line) = lines.next_line()? {
        let Some(head) = LineHead::parse(&line) else { continue };
        if head.kind == Kind::Header || !(linear || wanted.is(&head)) {
            continue;
        }
        visited_at = lines.offset();
        if visit(&head, &line).is_break() || (!linear && head.is_root) {
            return Ok(());
        }
        wanted = head.parent_id.map_or(Wanted::Any, Wanted::This);
    }
    match wanted {
        // Its parent is not there: what is before it has to be known to be gone through.
        Wanted::This(_) if !linear && lines.start == 0 => walk_before(&file, visited_at, version, visit),
        Wanted::This(_) | Wanted::Any => Ok(()),
    }
}

/// The entry that comes next on the way to the root.
enum Wanted {
    /// The one before, whichever that is.
    Any,
    /// The last one of this id.
    This(EntryId),
}

impl Wanted {
    fn is(&self, head: &LineHead) -> bool {
        match (self, &head.id) {
            (Self::Any, Some(_)) => true,
            (Self::This(wanted), Some(id)) => wanted == id,
            (_, None) => false,
        }
    }
}

/// Goes on with [`walk_branch`] from the last entry before `end`, by an index of all that is before.
fn walk_before(
    mut file: &File,
    end: u64,
    version: u32,
    mut visit: impl FnMut(&LineHead, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut index = Index::default();
    let mut lines = Lines::new(BufReader::with_capacity(CHUNK, file.take(end)), 0);
    while let Some(line) = lines.advance()? {
        let head = if line.cut { None } else { LineHead::parse(lines.bytes()) };
        if let (Some(head), Ok(len)) = (head, u32::try_from(line.len))
            && head.kind != Kind::Header
        {
            index.push_line(line.offset, len, head, version);
        }
    }
    for at in index.path(index.last()).path.into_iter().rev() {
        let Some(place) = index.get(at) else { continue };
        let mut line = vec![0; place.len as usize];
        file.seek(SeekFrom::Start(place.offset))?;
        file.read_exact(&mut line)?;
        if let Some(head) = LineHead::parse(&line)
            && visit(&head, &line).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// Whether a file begins with a session header. Blocking.
pub(crate) fn is_transcript(path: &Path) -> bool {
    open_regular(path).and_then(|file| header_of(&file)).is_ok_and(|header| header.is_some())
}

/// Visits the first `count` entries of a file in their order, reading no more than `budget` bytes. Blocking.
pub(crate) fn first_entries(
    path: &Path,
    count: usize,
    budget: u64,
    mut visit: impl FnMut(&LineHead, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(open_regular(path)?.take(budget)), 0);
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

/// What a file begins with.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// A header.
    Header(Header),
    /// An entry: OpenClaw 2026.2.9's `sessions.compact` cuts the header off.
    Entry,
    /// Nothing a transcript begins with.
    Something,
}

/// What the first line that is JSON says.
pub(crate) fn beginning_of(mut file: &File) -> io::Result<Beginning> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    file.seek(SeekFrom::Start(0))?;
    let mut lines = Lines::new(BufReader::with_capacity(4096, file.take(HEADER_WITHIN)), 0);
    while lines.advance()?.is_some() {
        let bytes = lines.bytes();
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
            let header = serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&mend(bytes)));
            return Ok(match (header, LineHead::parse(bytes)) {
                (Ok(header), _) => Beginning::Header(header),
                (Err(_), Some(LineHead { kind, id: Some(_), .. }))
                    if !matches!(kind, Kind::Header | Kind::Other) =>
                {
                    Beginning::Entry
                }
                (Err(_), _) => Beginning::Something,
            });
        }
    }
    Ok(Beginning::Something)
}

/// The header, when the first line that is JSON is one.
pub(crate) fn header_of(file: &File) -> io::Result<Option<Header>> {
    Ok(match beginning_of(file)? {
        Beginning::Header(header) => Some(header),
        Beginning::Entry | Beginning::Something => None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn backward(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = LinesBackward::new(Cursor::new(bytes), u64::MAX).unwrap();
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

    /// Whatever a file says, both ways of reading it agree.
    #[test]
    fn damaged_links_hide_nothing_and_lead_nowhere_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let rows: [(&str, &[&str], &[&str]); 7] = [
            ("an unknown parent", &["a null", "b a", "c gone", "d c"], &["d", "c", "b", "a"]),
            ("two of them", &["a gone", "b a", "c a", "d gone", "e gone"], &["e", "d", "c", "a"]),
            ("no word of a parent", &["a null", "b -", "c b"], &["c", "b", "a"]),
            ("a line without id", &["a null", "- a", "b a"], &["b", "a"]),
            ("a line without id as parent", &["a null", "- a", "b 00000001"], &["b", "a"]),
            ("cycles", &["a c", "b a", "c c"], &["c", "b", "a"]),
            ("a new root", &["a null", "b null", "c b"], &["c", "b"]),
        ];
        for (name, entries, expect) in rows {
            let mut text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned();
            for entry in entries {
                let (id, parent) = entry.split_once(' ').unwrap();
                let id = if id == "-" { String::new() } else { format!(",\"id\":\"{id}\"") };
                let parent = match parent {
                    "-" => String::new(),
                    "null" => ",\"parentId\":null".to_owned(),
                    parent => format!(",\"parentId\":\"{parent}\""),
                };
                text += &format!("{{\"type\":\"message\"{id}{parent},\"timestamp\":\"t\"}}\n");
            }
            std::fs::write(&path, text).unwrap();
            let mut seen = Vec::new();
            walk_branch(&path, |head, _| {
                seen.push(head.id.clone().unwrap().to_string());
                ControlFlow::Continue(())
            })
            .unwrap();
            assert_eq!(seen, expect, "{name}");
            let mut file = crate::transcript::TranscriptFile::open(&path).unwrap();
            let mut read: Vec<String> =
                file.branch_entries().unwrap().iter().map(|entry| entry.id.to_string()).collect();
            read.reverse();
            assert_eq!(read, expect, "{name}");
        }
    }
}
