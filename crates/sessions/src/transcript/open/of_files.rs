//! Transcripts in files, for tests and benchmarks.

use std::path::Path;
use std::sync::Arc;

use super::{NewTranscript, OpenTranscript};
use crate::transcript::{FileLogs, TranscriptError, TranscriptLogs, TranscriptRef};

fn logs() -> Arc<dyn TranscriptLogs> {
    Arc::new(FileLogs::default())
}

impl OpenTranscript {
    /// Opens a file that is there.
    pub fn open_file(path: &Path) -> Result<Self, TranscriptError> {
        Self::open(&logs(), &TranscriptRef::new(path))
    }

    /// Creates a file.
    #[cfg(test)]
    pub(crate) fn create_file(path: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        Self::create(&logs(), &TranscriptRef::new(path), new)
    }

    /// Opens a file, or creates it.
    pub fn open_or_create_file(path: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        Self::open_or_create(&logs(), &TranscriptRef::new(path), new)
    }

    /// Opens a file of whose end this many bytes are read at first.
    #[cfg(test)]
    pub(crate) fn open_file_tail(path: &Path, bytes: u64) -> Result<Self, TranscriptError> {
        Self::open_tail(&logs(), &TranscriptRef::new(path), bytes)
    }
}
