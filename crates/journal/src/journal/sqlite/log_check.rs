//! Check of a write-ahead log: tells if SQLite will read all of it. SQLite passes over what it
//! can't read without a word, which is right for the torn end of a log and wrong for anything else:
//! the messages in it would be lost without a trace.
//!
//! The format: <https://www.sqlite.org/fileformat2.html#walformat>.

use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Magic number without its last bit, which tells the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// Returns the reason for which SQLite would pass over a part of the log; `None` if it reads all of
/// it.
pub(super) fn flaw(database: &Path, log: &Path) -> Option<String> {
    let log = std::fs::read(log).ok().filter(|log| !log.is_empty())?;
    if std::fs::metadata(database).map_or(0, |found| found.len()) == 0 {
        return Some("the file is empty and its log is not".to_owned());
    }
    let Some(reader) = Log::read(&log) else { return Some("the head of its log can't be read".to_owned()) };
    let sound = reader.sound_frames();
    // A kill leaves one page half written at most, and pages of a transaction that it cut short, which the next process writes over
    // as far as it needs the room. What is behind them and was committed was lost in another way.
    let is_lost = |frame: &&[u8]| reader.is_of_this_log(frame) && word(frame, 4) != Some(0);
    let lost = reader.frames().skip(sound + 1).filter(is_lost).count();
    (lost > 0).then(|| format!("{lost} changes in its log can't be read, behind {sound} pages that can"))
}

/// A log whose head is sound.
struct Log<'a> {
    bytes: &'a [u8],
    page: usize,
    is_big_endian: bool,
}

impl<'a> Log<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let magic = word(bytes, 0)?;
        let page = usize::try_from(word(bytes, 8)?).ok()?;
        let log = Self { bytes, page, is_big_endian: magic & 1 == 1 };
        let checksum = log.checksum((0, 0), bytes.get(..24)?);
        let is_sound = magic & !1 == MAGIC
            && page.is_power_of_two()
            && (512..=65_536).contains(&page)
            && word(bytes, 24)? == checksum.0
            && word(bytes, 28)? == checksum.1;
        is_sound.then_some(log)
    }

    fn frames(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.get(HEADER..).unwrap_or_default().chunks_exact(FRAME_HEADER + self.page)
    }

    /// True if a frame was written since the log was begun anew: frames behind its end are older.
    fn is_of_this_log(&self, frame: &[u8]) -> bool {
        frame.get(8..16) == self.bytes.get(16..24)
    }

    /// Counts the frames up to the first that is not sound.
    fn sound_frames(&self) -> usize {
        let mut sum = (word(self.bytes, 24).unwrap_or(0), word(self.bytes, 28).unwrap_or(0));
        let is_sound = |frame: &&[u8]| {
            let (Some(head), Some(page)) = (frame.get(..8), frame.get(FRAME_HEADER..)) else { return false };
            sum = self.checksum(self.checksum(sum, head), page);
            self.is_of_this_log(frame) && word(frame, 16) == Some(sum.0) && word(frame, 20) == Some(sum.1)
        };
        self.frames().take_while(is_sound).count()
    }

    fn checksum(&self, (mut a, mut b): (u32, u32), bytes: &[u8]) -> (u32, u32) {
        let word = |at: &[u8]| -> u32 {
            let four = at.first_chunk().copied().unwrap_or_default();
            if self.is_big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        for pair in bytes.chunks_exact(8) {
            let (first, second) = pair.split_at(4);
            a = a.wrapping_add(word(first)).wrapping_add(b);
            b = b.wrapping_add(word(second)).wrapping_add(a);
        }
        (a, b)
    }
}

/// Numbers of the format are big-endian, those that are summed up excepted.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// Makes a database whose log has some commits, as a kill leaves it.
    fn killed(dir: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
        let (live, path) = (dir.join("live"), dir.join("db"));
        let db = Connection::open(&live).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        db.execute_batch("CREATE TABLE t (x)").unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        for n in 0..20 {
            db.execute("INSERT INTO t VALUES (?1)", [format!("{n}").repeat(900)]).unwrap();
        }
        let log = dir.join("db-wal");
        std::fs::copy(&live, &path).unwrap();
        std::fs::copy(dir.join("live-wal"), &log).unwrap();
        (path, log)
    }

    #[test]
    fn what_sqlite_would_pass_over_is_found() {
        type Damage = fn(&mut Vec<u8>);
        let rows: [(&str, Damage, Option<&str>); 8] = [
            ("as it was", |_| {}, None),
            ("no log", |log| log.clear(), None),
            ("a torn end", |log| log.truncate(log.len() - 100), None),
            (
                "its last page is wrong",
                |log| {
                    let at = log.len() - 9;
                    log[at] ^= 1;
                },
                None,
            ),
            ("its head is gone", |log| log[..32].fill(0), Some("the head of its log")),
            ("a short head", |log| log.truncate(20), Some("the head of its log")),
            (
                "a bit in the middle",
                |log| {
                    let at = log.len() / 2;
                    log[at] ^= 1;
                },
                Some("changes in its log"),
            ),
            (
                "a hole",
                |log| {
                    let at = log.len() / 2;
                    log[at..at + 5000].fill(0);
                },
                Some("changes in its log"),
            ),
        ];
        for (name, damage, expect) in rows {
            let dir = tempfile::tempdir().unwrap();
            let (path, log) = killed(dir.path());
            let mut bytes = std::fs::read(&log).unwrap();
            damage(&mut bytes);
            std::fs::write(&log, bytes).unwrap();
            let found = flaw(&path, &log);
            assert_eq!(found.is_some(), expect.is_some(), "{name}: {found:?}");
            if let (Some(found), Some(expect)) = (found, expect) {
                assert!(found.contains(expect), "{name}: {found}");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let (path, log) = killed(dir.path());
        std::fs::write(&path, "").unwrap();
        assert!(flaw(&path, &log).unwrap().contains("is empty"));
        std::fs::remove_file(&path).unwrap();
        assert!(flaw(&path, &log).unwrap().contains("is empty"));
    }
}
