//! Logs that are not as they should be: of an old version, without a header, no transcript at all.
//! The log as it was always stays beside the new one.

use std::io::{self, BufWriter, Write};

use super::load::free_backup;
use super::window::LineWindow;
use super::{NewTranscript, OpenTranscript, new_header};
use crate::transcript::TranscriptError;
use crate::transcript::backward::{Beginning, beginning_of};
use crate::transcript::format::{TranscriptHeader, VERSION};
use crate::transcript::storage::{LogPart, OpenMode, TranscriptLogs, TranscriptRef};

impl OpenTranscript {
    /// Rewrites a transcript of an old version as the current one; the old one stays as a `.bak` copy.
    pub(super) fn upgrade(&mut self) -> Result<(), TranscriptError> {
        let leaf = self.leaf().cloned();
        let header = TranscriptHeader { version: VERSION, ..self.header.clone() };
        let upgraded = free_backup(&*self.logs, &self.transcript).and_then(|kept| {
            let write = &mut |out: &mut dyn Write| self.write_upgraded(&header, out);
            self.logs.replace(&self.transcript, Some(&kept), write)?;
            Ok(kept)
        });
        let kept = upgraded.map_err(|source| self.fail("upgrade", source))?;
        let file = &self.transcript;
        tracing::info!(%file, %kept, from = self.header.version, "rewrote a transcript of an old version");
        self.reopen()?;
        self.leaf = match leaf {
            Some(id) => self.tail.index.position(id.as_str()),
            None => None,
        };
        Ok(())
    }

    /// Fields that nobody knows stay; lines that are no entries do not.
    fn write_upgraded(&self, header: &TranscriptHeader, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        serde_json::to_writer(&mut out, header)?;
        out.write_all(b"\n")?;
        let mut window = LineWindow::ahead();
        for at in self.tail.index.all() {
            let Some(place) = self.place(at).cloned() else { continue };
            let line = window.line(&*self.log, place.offset, place.len, self.len)?;
            if let Some(entry) = self.read_old(line, at) {
                serde_json::to_writer(&mut out, &entry)?;
                out.write_all(b"\n")?;
            }
        }
        out.flush()
    }
}

/// Makes a log that is no transcript one that is: where only the header is missing it gets one, otherwise a transcript that
/// begins now takes its place. A log that does not bear the session's id is somebody else's, whatever a row says: it stays.
///
/// # Errors
/// [`TranscriptError::NotATranscript`] for such a log.
pub(super) fn begin_anew(
    logs: &dyn TranscriptLogs,
    transcript: &TranscriptRef,
    new: &NewTranscript,
) -> Result<(), TranscriptError> {
    let fail = |what, source| TranscriptError::io(what, transcript, source);
    let log = logs.open(transcript, OpenMode::Read).map_err(|source| fail("read", source))?;
    let len = log.version().map_err(|source| fail("read", source))?.len();
    let beginning = beginning_of(&*log).map_err(|source| fail("read", source))?;
    let goes_on = matches!(beginning, Beginning::Entry);
    if len > 0 && !goes_on && !is_of(transcript, &new.session_id) {
        return Err(TranscriptError::NotATranscript(transcript.clone()));
    }
    let begun = || {
        let kept = if len > 0 { Some(free_backup(logs, transcript)?) } else { None };
        logs.replace(transcript, kept.as_ref(), &mut |out| {
            serde_json::to_writer(&mut *out, &new_header(new))?;
            out.write_all(b"\n")?;
            let rest = if goes_on { u64::MAX } else { 0 };
            io::copy(&mut LogPart::new(&*log, 0, rest), out).map(drop)
        })?;
        Ok(kept)
    };
    match (begun().map_err(|source| fail("repair", source))?, goes_on) {
        (Some(kept), true) => {
            tracing::warn!(file = %transcript, %kept, "gave a transcript the header it lacked");
        }
        (Some(kept), false) => {
            tracing::warn!(file = %transcript, %kept, "no transcript, moved aside and begun anew");
        }
        (None, _) => {}
    }
    Ok(())
}

/// True if a log is named after a session: `<id>.jsonl`, `<id>-topic-<n>.jsonl`,
/// `<time>_<id>.jsonl`.
fn is_of(transcript: &TranscriptRef, session_id: &str) -> bool {
    transcript.path().file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.contains(session_id))
}
