//! Reading a transcript from its end: the branch of the last entry, without reading the part before
//! (spec §4.9).

use std::io::{self, BufReader};

use super::format::{TranscriptHeader, VERSION};
use super::head::{Kind, LineHead};
use super::open::{HEADER_WITHIN, LineWindow};
use super::reader::Visit;
use super::scan::Lines;
use super::storage::{LogPart, TranscriptLog};
use super::tail::Tail;
use crate::mend::mend;

/// Bytes at the end of a log that are read at first.
const FIRST_PART: u64 = 4 * 1024;

/// Visits the entries of the branch that ends with the last entry of the log, leaf first, until `visit` breaks; no more is
/// read than that takes, nor than the last `reach` bytes of the file. Lines of other branches and malformed lines are passed
/// over; an entry whose parent is not there goes on from the entry before it. Blocking.
pub(crate) fn walk_branch(log: &dyn TranscriptLog, reach: u64, visit: &mut Visit<'_>) -> io::Result<()> {
    walk_in_parts(log, reach, FIRST_PART, visit)
}

fn walk_in_parts(
    log: &dyn TranscriptLog,
    reach: u64,
    first_part: u64,
    visit: &mut Visit<'_>,
) -> io::Result<()> {
    let version = match beginning_of(log)? {
        Beginning::Header(header) => header.version,
        Beginning::Entry => VERSION,
        Beginning::Something => return Ok(()),
    };
    let end = log.version()?.len();
    let mut tail = Tail::new(end, end.saturating_sub(reach), first_part / 2);
    let mut window = LineWindow::backward();
    let mut visited = 0;
    loop {
        let branch = tail.index.path(tail.index.last());
        for at in branch.path.iter().rev().skip(visited) {
            let Some(place) = tail.index.get(*at) else { continue };
            let line = window.line(log, place.offset, place.len, end)?;
            // Ids of the first version are made up, and not those of all readers while not all is read.
            let id = (version > 1).then_some(&place.id);
            if visit(place.kind, id, line).is_break() {
                return Ok(());
            }
        }
        visited = branch.path.len();
        if tail.is_at_stop() || (branch.is_whole && visited > 0) {
            return Ok(());
        }
        // Skipped lines are reported when the transcript is opened.
        tail.load_more(log, version)?;
    }
}

/// Visits the first `count` entries of a log in their order, reading no more than `budget` bytes. Blocking.
pub(crate) fn first_entries(
    log: &dyn TranscriptLog,
    count: usize,
    budget: u64,
    visit: &mut Visit<'_>,
) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(LogPart::new(log, 0, budget)), 0);
    let mut seen = 0;
    while seen < count && lines.advance()?.is_some() {
        seen += 1;
        if let Some(head) = LineHead::parse(lines.bytes())
            && visit(head.kind, head.id.as_ref(), lines.bytes()).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// Beginning of a log.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// A header.
    Header(TranscriptHeader),
    /// An entry: OpenClaw 2026.2.9's `sessions.compact` cuts the header off.
    Entry,
    /// No beginning of a transcript.
    Something,
}

/// Reads the first line that is JSON.
pub(crate) fn beginning_of(log: &dyn TranscriptLog) -> io::Result<Beginning> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let mut lines = Lines::new(BufReader::with_capacity(4096, LogPart::new(log, 0, HEADER_WITHIN)), 0);
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
pub(crate) fn header_of(log: &dyn TranscriptLog) -> io::Result<Option<TranscriptHeader>> {
    Ok(match beginning_of(log)? {
        Beginning::Header(header) => Some(header),
        Beginning::Entry | Beginning::Something => None,
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;

    use super::*;
    use crate::transcript::files::FileLogs;
    use crate::transcript::format::EntryId;
    use crate::transcript::storage::{OpenMode, TranscriptLogs as _, TranscriptRef};

    /// The ids of the branch, leaf first, with a first part of this many bytes.
    fn walked(path: &Path, reach: u64, first_part: u64) -> Vec<String> {
        let mut seen = Vec::new();
        let log = FileLogs::default().open(&TranscriptRef::new(path), OpenMode::Read).unwrap();
        walk_in_parts(&*log, reach, first_part, &mut |_, id, line| {
            let value: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert_eq!(value["id"].as_str(), id.map(EntryId::as_str));
            seen.extend(id.map(EntryId::to_string));
            ControlFlow::Continue(())
        })
        .unwrap();
        seen
    }

    #[test]
    fn long_lines_cross_parts_and_what_is_out_of_reach_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let line = |id: &str, size: usize| {
            format!("{{\"type\":\"message\",\"id\":\"{id}\",\"x\":\"{}\"}}\n", "x".repeat(size))
        };
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n".to_owned();
        let long = 3 * FIRST_PART as usize;
        let text = header + &line("a", 1) + &line("b", long) + &line("c", 1);
        std::fs::write(&path, &text).unwrap();
        for first_part in [2, 100, FIRST_PART] {
            assert_eq!(walked(&path, u64::MAX, first_part), ["c", "b", "a"]);
            assert_eq!(walked(&path, FIRST_PART, first_part), ["c"]);
            assert_eq!(walked(&path, long as u64 + 200, first_part), ["c", "b", "a"]);
            assert!(walked(&path, 10, first_part).is_empty());
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
        for first_part in [2, 100, FIRST_PART] {
            assert_eq!(walked(&path, u64::MAX, first_part), ["d", "c", "a"]);
        }
    }

    /// Checks that both ways of reading a file agree, whatever it says.
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
            for first_part in [2, 100, FIRST_PART] {
                assert_eq!(walked(&path, u64::MAX, first_part), expect, "{name}");
            }
            let mut file = crate::transcript::OpenTranscript::open_file(&path).unwrap();
            let mut read: Vec<String> =
                file.branch_entries().unwrap().iter().map(|entry| entry.id.to_string()).collect();
            read.reverse();
            assert_eq!(read, expect, "{name}");
        }
    }
}
