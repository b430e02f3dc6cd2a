//! Reading a transcript for counting, from the beginning or from where the last reading ended. Blocking.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use openclaw_config::shared_place;

use super::digest::Counting;
use super::line;
use crate::disk::FileVersion;
use crate::transcript::scan::Lines;

const BUFFER: usize = 64 * 1024;
/// Bytes before the end of a reading that must still be there for the next one to go on from it.
const MARK: u64 = 64;

/// A transcript as far as it was read.
#[derive(Debug, Clone)]
pub(super) struct Scanned {
    pub(super) counting: Counting,
    /// The version of the file.
    pub(super) stamp: FileVersion,
    /// Offset up to which the file was counted.
    read_to: u64,
    /// The last bytes before it.
    mark: Vec<u8>,
}

/// Reads a file as far as it was not read before. A file that was replaced or rewritten is read anew.
pub(super) fn scan(path: &Path, before: Option<&Scanned>) -> io::Result<Scanned> {
    let mut file = shared_place::open(path)?;
    let stamp = FileVersion::from_meta(&file.metadata()?);
    let fallback = unix_ms(stamp.modified());
    let (mut counting, from) = match before {
        Some(before) if goes_on(&mut file, &stamp, before)? => (before.counting.clone(), before.read_to),
        Some(_) | None => (Counting::default(), 0),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut read_to = from;
    // Only what was there at the stamp: what comes meanwhile is for the next reading.
    let rest = BufReader::with_capacity(BUFFER, (&file).take(stamp.len().saturating_sub(from)));
    let mut lines = Lines::new(rest, from);
    while let Some(line) = lines.advance()? {
        let read = if line.cut { line::UsageLine::Other } else { line::read(lines.bytes()) };
        if !line.ended && read == line::UsageLine::Other {
            // Being written, perhaps: whole at the next reading.
            break;
        }
        counting.line(&read, fallback);
        read_to = line.offset + line.len + u64::from(line.ended);
    }
    let mark = mark(&mut file, read_to)?;
    Ok(Scanned { counting, stamp, read_to, mark })
}

/// True if a file is the one read before, possibly with lines added.
fn goes_on(file: &mut File, stamp: &FileVersion, before: &Scanned) -> io::Result<bool> {
    Ok(stamp.is_same_file(&before.stamp)
        && stamp.len() >= before.read_to
        && mark(file, before.read_to)? == before.mark)
}

fn mark(file: &mut File, end: u64) -> io::Result<Vec<u8>> {
    let start = end.saturating_sub(MARK);
    file.seek(SeekFrom::Start(start))?;
    let mut mark = Vec::new();
    Read::by_ref(file).take(end - start).read_to_end(&mut mark)?;
    Ok(mark)
}

/// A file's time in Unix milliseconds.
pub(super) fn unix_ms(time: Option<SystemTime>) -> i64 {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
