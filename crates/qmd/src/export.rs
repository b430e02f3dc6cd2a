//! Transcripts as Markdown files that `qmd` can search, without secrets.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use openclaw_config::private_file::{self, Durability};
use openclaw_memory::{TranscriptSource, transcript_text};

use crate::settings::QmdExports;

/// Brings the files in step with the transcripts: new and changed ones are written, and files of transcripts that are gone
/// or too old are removed. Files that were not made here stay. A transcript that can't be read is left as it is. Blocks.
pub(crate) fn export(exports: &QmdExports, transcripts: &dyn TranscriptSource) -> io::Result<()> {
    private_file::make_dir(&exports.dir)?;
    let oldest = exports.retention.and_then(|age| SystemTime::now().checked_sub(age));
    let oldest = oldest.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let mut wanted = HashSet::new();
    for listed in transcripts.list()? {
        let modified = Duration::from_nanos(u64::try_from(listed.modified).unwrap_or_default());
        let Some(session) = listed.name.strip_suffix(".jsonl").filter(|name| is_plain(name)) else {
            continue;
        };
        if oldest.is_some_and(|oldest| modified < oldest) {
            continue;
        }
        let file = format!("{session}.md");
        let path = exports.dir.join(&file);
        wanted.insert(file);
        if is_of(&path, modified) {
            continue;
        }
        match transcripts.read(&listed.name) {
            Ok(jsonl) => {
                let said = transcript_text(&jsonl, |text| transcripts.redact(text));
                let said = if said.is_empty() { "(empty)" } else { &said };
                let text = format!("{}\n\n{said}\n", title(session));
                private_file::replace(&path, text.as_bytes(), Durability::Renewable)?;
                File::options().write(true).open(&path)?.set_modified(SystemTime::UNIX_EPOCH + modified)?;
            }
            Err(error) => tracing::debug!(%error, session, "a transcript was not exported for qmd"),
        }
    }
    remove_others(&exports.dir, &wanted)
}

/// First line of the file of a session.
fn title(session: &str) -> String {
    format!("# Session {session}")
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// True if the file has the transcript's own time of change, which it is given when it is written.
fn is_of(path: &Path, modified: Duration) -> bool {
    let written = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file);
    let written = written.and_then(|metadata| metadata.modified().ok());
    written.is_some_and(|written| written == SystemTime::UNIX_EPOCH + modified)
}

/// Removes the files that begin as an export does and are not wanted: the directory may be one of the owner's.
fn remove_others(dir: &Path, wanted: &HashSet<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(session) = name.strip_suffix(".md").filter(|_| !wanted.contains(&name)) else { continue };
        if entry.file_type()?.is_file() && begins_with(&entry.path(), &format!("{}\n", title(session))) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn begins_with(path: &Path, start: &str) -> bool {
    let mut read = vec![0; start.len()];
    let read_start = File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut read));
    read_start.is_ok() && read == start.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use openclaw_memory::TranscriptFile;
    use parking_lot::Mutex;

    use super::*;
    use crate::tests::golden;

    /// Transcripts with their text, and the time of their last change.
    #[derive(Default)]
    struct Said(Mutex<BTreeMap<String, (String, i64)>>);

    impl TranscriptSource for Said {
        fn list(&self) -> io::Result<Vec<TranscriptFile>> {
            let all = self.0.lock();
            let file = |(name, (text, modified)): (&String, &(String, i64))| TranscriptFile {
                name: name.clone(),
                size: text.len() as u64,
                modified: *modified,
            };
            Ok(all.iter().map(file).collect())
        }

        fn read(&self, name: &str) -> io::Result<String> {
            self.0.lock().get(name).map(|(text, _)| text.clone()).ok_or(io::ErrorKind::NotFound.into())
        }

        fn redact(&self, text: &str) -> String {
            text.replace("sk-abcdefghijklmnopqrstuvwx", "sk-abc…uvwx")
        }
    }

    #[test]
    fn transcripts_are_written_as_recorded_and_go_when_they_are_old_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let exports =
            QmdExports { dir: dir.path().join("said"), retention: Some(Duration::from_secs(3 * 86_400)) };
        let render = golden("memory-text.json")["session_render"].clone();
        let id = "11111111-1111-4111-8111-111111111111";
        let said = Said::default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let put = |name: &str, text: &str, days: u64| {
            let modified = i64::try_from((now - Duration::from_secs(days * 86_400)).as_nanos()).unwrap();
            said.0.lock().insert(name.to_owned(), (text.to_owned(), modified));
        };
        put(&format!("{id}.jsonl"), render["jsonl"].as_str().unwrap(), 1);
        put("quiet.jsonl", "", 2);
        put("old.jsonl", "", 4);
        put("../out.jsonl", "", 1);
        export(&exports, &said).unwrap();
        let read = |name: &str| std::fs::read_to_string(exports.dir.join(name));
        assert_eq!(read(&format!("{id}.md")).unwrap(), render["qmd_export_2026_2_9"]);
        assert_eq!(read("quiet.md").unwrap(), "# Session quiet\n\n(empty)\n");
        assert_eq!(std::fs::read_dir(&exports.dir).unwrap().count(), 2);
        assert_eq!(
            std::fs::metadata(exports.dir.join("quiet.md")).unwrap().permissions().mode() & 0o777,
            0o600
        );

        std::fs::write(exports.dir.join("diary.md"), "# Session of mine\n").unwrap();
        let quiet = || std::fs::metadata(exports.dir.join("quiet.md")).unwrap().ino();
        let before = quiet();
        said.0.lock().remove(&format!("{id}.jsonl"));
        export(&exports, &said).unwrap();
        assert!(read(&format!("{id}.md")).is_err());
        assert_eq!(quiet(), before, "an unchanged transcript is not written again");
        assert_eq!(read("diary.md").unwrap(), "# Session of mine\n");
    }
}
