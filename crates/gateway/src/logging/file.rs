//! The log file: one a day, replaced when it grows too big, removed when it grows too old (spec `operations.md` §4.1).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use openclaw_config::private_file;

use super::LogFile;

/// A file is set aside at this size, in bytes.
const MAX_BYTES: u64 = 50 * 1024 * 1024;
/// All files of the directory together, in bytes; the oldest go first.
const MAX_TOTAL_BYTES: u64 = 200 * 1024 * 1024;
/// Files are removed when nothing was written to them for this long.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Writes lines to the file of the day.
#[derive(Debug)]
pub(super) struct RollingFile {
    place: LogFile,
    open: Option<OpenLog>,
    limit: u64,
}

#[derive(Debug)]
struct OpenLog {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl RollingFile {
    pub(super) fn new(place: LogFile) -> Self {
        Self { place, open: None, limit: MAX_BYTES }
    }

    /// Appends a line; `today` decides on the file.
    pub(super) fn write(&mut self, line: &str, today: Date) -> io::Result<()> {
        let path = match &self.place {
            LogFile::Daily(dir) => daily_path(dir, today),
            LogFile::Fixed(path) => path.clone(),
        };
        let is_due = self.open.as_ref().is_none_or(|open| open.path != path || open.bytes >= self.limit);
        if is_due {
            self.open = None;
            self.open = Some(self.start(path)?);
        }
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let text = format!("{line}\n");
        open.file.write_all(text.as_bytes())?;
        open.bytes += text.len() as u64;
        Ok(())
    }

    fn start(&self, path: PathBuf) -> io::Result<OpenLog> {
        let dir = path.parent().unwrap_or(Path::new("."));
        private_file::make_dir(dir)?;
        if fs::metadata(&path).is_ok_and(|file| file.len() >= self.limit) {
            fs::rename(&path, aside(&path))?;
        }
        sweep(dir, SystemTime::now(), MAX_TOTAL_BYTES);
        let file = private_file::append(&path)?;
        let bytes = file.metadata()?.len();
        Ok(OpenLog { path, file, bytes })
    }
}

/// The file of a day.
pub(super) fn daily_path(dir: &Path, date: Date) -> PathBuf {
    dir.join(format!("openclaw-{date}.log"))
}

/// A free name for a full file: `<name>.1`, `<name>.2`, …
fn aside(path: &Path) -> PathBuf {
    let numbered = |n: u32| PathBuf::from(format!("{}.{n}", path.display()));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(1))
}

/// Removes old log files of a directory, and the oldest ones beyond the total. Other files are left alone.
fn sweep(dir: &Path, now: SystemTime, total: u64) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut logs: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|entry| is_log_name(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    logs.sort_unstable_by(|a, b| b.cmp(a));
    let mut kept = 0;
    for (modified, bytes, path) in logs {
        kept += bytes;
        let is_old = now.duration_since(modified).is_ok_and(|age| age > MAX_AGE);
        if is_old || kept > total {
            // A file that can't be removed is tried again with the next one that is opened.
            let _ = fs::remove_file(path);
        }
    }
}

fn is_log_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("openclaw-") else { return false };
    let Some((date, number)) = rest.split_once(".log") else { return false };
    date.parse::<Date>().is_ok() && (number.is_empty() || number.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_day_and_a_full_file_start_a_new_file() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("logs");
        let mut file = RollingFile { limit: 10, ..RollingFile::new(LogFile::Daily(dir.clone())) };
        for (line, day) in [("first", 1), ("second", 1), ("third", 1), ("fourth", 2)] {
            file.write(line, date(2026, 2, day)).unwrap();
        }
        let expect = ["openclaw-2026-02-01.log", "openclaw-2026-02-01.log.1", "openclaw-2026-02-02.log"];
        assert_eq!(names(&dir), expect);
        assert_eq!(fs::read_to_string(dir.join("openclaw-2026-02-01.log.1")).unwrap(), "first\nsecond\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&dir), mode(&dir.join("openclaw-2026-02-02.log"))), (0o700, 0o600));
        }
    }

    #[test]
    fn old_and_excess_logs_are_removed_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let make = |name: &str, age: u64, bytes: usize| {
            let path = temp.path().join(name);
            fs::write(&path, vec![b'x'; bytes]).unwrap();
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(now - Duration::from_secs(age))
                .unwrap();
        };
        make("openclaw-2026-02-09.log", 0, 60);
        make("openclaw-2026-02-08.log.1", 86_400, 30);
        make("openclaw-2026-02-08.log", 90_000, 30);
        make("openclaw-2026-01-01.log", 30 * 86_400, 1);
        make("openclaw-notes.log", 30 * 86_400, 1);
        make("gateway.sqlite", 30 * 86_400, 1_000);
        sweep(temp.path(), now, 100);
        assert_eq!(
            names(temp.path()),
            ["gateway.sqlite", "openclaw-2026-02-08.log.1", "openclaw-2026-02-09.log", "openclaw-notes.log"]
        );
    }
}
