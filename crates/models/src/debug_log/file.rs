//! A private file of lines that never grows without bound and never makes a run wait.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use openclaw_config::private_file;

/// Lines that wait to be written; further ones are left out and counted.
const MAX_WAITING: usize = 256;
/// Bytes of the largest line; a longer one is left out and counted.
pub(super) const MAX_LINE: usize = 8 * 1024 * 1024;
/// Bytes after which a file is put aside as `<name>.1`, in place of an earlier one.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// A file to append lines to. Cheap to clone; its thread ends with the last of its clones.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    lines: SyncSender<String>,
    left_out: Arc<AtomicU64>,
}

impl LogFile {
    /// Begins to write at a path, which is made with its folder when the first line comes.
    pub(super) fn begin(path: PathBuf) -> Self {
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let left_out = Arc::default();
        let counted = Arc::clone(&left_out);
        let name = "debug-log".to_owned();
        if let Err(error) =
            std::thread::Builder::new().name(name).spawn(move || write(&path, &waiting, &counted))
        {
            tracing::warn!(%error, "cannot write a debug log");
        }
        Self { lines, left_out }
    }

    /// Hands a line over. It is left out when the disk can't keep up or the line is too long.
    pub(super) fn append(&self, line: String) {
        if line.len() > MAX_LINE || self.lines.try_send(line).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(path: &Path, lines: &Receiver<String>, left_out: &AtomicU64) {
    let mut told = false;
    for line in lines {
        let missing = left_out.swap(0, Ordering::Relaxed);
        let note = if missing > 0 { format!("{{\"leftOut\":{missing}}}\n") } else { String::new() };
        if let Err(error) = append(path, &format!("{note}{line}\n"))
            && !std::mem::replace(&mut told, true)
        {
            tracing::warn!(path = %path.display(), %error, "cannot write a debug log");
        }
    }
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|known| known.len() + text.len() as u64 > MAX_FILE) {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".1");
        std::fs::rename(path, aside)?;
    }
    private_file::append(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_and_the_file_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/x.jsonl");
        append(&path, "one\n").unwrap();
        append(&path, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
    }

    #[test]
    fn a_file_that_is_full_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        // A hole: no bytes are written for it.
        std::fs::File::create(&path).unwrap().set_len(MAX_FILE).unwrap();
        append(&path, "new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(std::fs::metadata(dir.path().join("x.jsonl.1")).unwrap().len(), MAX_FILE);
    }

    #[test]
    fn what_is_too_long_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let (lines, waiting) = sync_channel(4);
        let file = LogFile { lines, left_out: Arc::default() };
        file.append("x".repeat(MAX_LINE + 1));
        for n in 0..6 {
            file.append(n.to_string());
        }
        let left_out = Arc::clone(&file.left_out);
        drop(file);
        write(&path, &waiting, &left_out);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"leftOut\":3}\n0\n1\n2\n3\n");
    }
}
