//! Files that are not as they should be: of an old version, without a header, no transcript at all.
//! The file as it was always stays beside the new one.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use openclaw_config::shared_place;

use super::window::FileWindow;
use super::{NewTranscript, TranscriptFile, new_header};
use crate::disk::{self, RealDisk};
use crate::transcript::backward::{Beginning, beginning_of};
use crate::transcript::format::{TranscriptHeader, VERSION};
use crate::transcript::storage::{OpenTranscript, TranscriptRef};
use crate::transcript::{TranscriptError, keep_old};

impl TranscriptFile {
    /// Rewrites a file of an old version as the current one; the old file stays as a `.bak` copy.
    pub(super) fn upgrade(&mut self) -> Result<(), TranscriptError> {
        let leaf = self.leaf().cloned();
        let header = TranscriptHeader { version: VERSION, ..self.header.clone() };
        let path = self.path.clone();
        let fail = |source| TranscriptError::io("upgrade", &path, source);
        let temporary = disk::Temporary::write(&RealDisk, &path, |out| self.write_upgraded(&header, out))
            .map_err(fail)?;
        let kept = disk::backup_path(&path);
        keep_old(&path, &kept).and_then(|()| temporary.persist(&path)).map_err(fail)?;
        let (file, kept) = (path.display(), kept.display());
        tracing::info!(%file, %kept, from = self.header.version, "rewrote a transcript of an old version");
        self.reopen()?;
        self.leaf = match leaf {
            Some(id) => self.tail.index.position(id.as_str()),
            None => None,
        };
        Ok(())
    }

    /// Fields that nobody knows stay; lines that are no entries do not.
    fn write_upgraded(&mut self, header: &TranscriptHeader, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        serde_json::to_writer(&mut out, header)?;
        out.write_all(b"\n")?;
        let mut window = FileWindow::ahead();
        for at in self.tail.index.all() {
            let Some(place) = self.place(at).cloned() else { continue };
            let line = window.line(&self.file, place.offset, place.len, self.len)?;
            if let Some(entry) = self.read_old(line, at) {
                serde_json::to_writer(&mut out, &entry)?;
                out.write_all(b"\n")?;
            }
        }
        out.flush()
    }
}

/// Makes a file that is no transcript one that is, where only the header is missing; otherwise takes it out of the way. A
/// file that does not bear the session's id is somebody else's, whatever a row says: it stays.
///
/// # Errors
/// [`TranscriptError::NotATranscript`] for such a file.
pub(super) fn put_aside(path: &Path, new: &NewTranscript) -> Result<(), TranscriptError> {
    let fail = |what, source| TranscriptError::io(what, path, source);
    let mut file = shared_place::open(path).map_err(|source| fail("read", source))?;
    if file.metadata().is_ok_and(|meta| meta.len() == 0) {
        return std::fs::remove_file(path).map_err(|source| fail("replace", source));
    }
    let kept = disk::backup_path(path);
    let beginning = beginning_of(&file).map_err(|source| fail("read", source))?;
    if matches!(beginning, Beginning::Entry) {
        let repaired = disk::Temporary::write(&RealDisk, path, |out| {
            serde_json::to_writer(&mut *out, &new_header(new))?;
            out.write_all(b"\n")?;
            file.seek(SeekFrom::Start(0))?;
            io::copy(&mut file, out).map(|_| ())
        });
        let repaired = repaired.and_then(|repaired| {
            keep_old(path, &kept)?;
            repaired.persist(path)
        });
        repaired.map_err(|source| fail("repair", source))?;
        tracing::warn!(file = %path.display(), kept = %kept.display(), "gave a transcript the header it lacked");
    } else if !is_of(path, &new.session_id) {
        return Err(TranscriptError::NotATranscript(TranscriptRef::new(path)));
    } else {
        std::fs::rename(path, &kept).map_err(|source| fail("move aside", source))?;
        tracing::warn!(file = %path.display(), kept = %kept.display(), "no transcript, moved aside and begun anew");
    }
    Ok(())
}

/// True if a file is named after a session: `<id>.jsonl`, `<id>-topic-<n>.jsonl`,
/// `<time>_<id>.jsonl`.
fn is_of(path: &Path, session_id: &str) -> bool {
    path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.contains(session_id))
}
