//! Recovery after a failed sync. Linux reports a failed write only once and marks its pages as clean, so that the next sync would succeed
//! without having written them. The data is therefore written again first.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::FileLog;
use crate::disk::FileVersion;
use crate::transcript::storage::TranscriptLog as _;

/// Maximum number of bytes that are written again in one call.
const PIECE: usize = 256 * 1024;

impl FileLog {
    /// Writes everything that no sync has made durable once more, where it stands.
    pub(super) fn write_again(&self) -> io::Result<()> {
        // A file opened for appending can't be written at another position.
        let file = OpenOptions::new().write(true).open(self.name.path())?;
        let ours = self.version()?;
        if !FileVersion::from_meta(&file.metadata()?).is_same_file(&ours) {
            return Err(io::Error::other("another file has taken its place"));
        }
        let mut piece = vec![0; PIECE];
        let mut at = self.durable;
        while at < ours.len() {
            let left = usize::try_from(ours.len() - at).unwrap_or(PIECE).min(PIECE);
            let piece = piece.get_mut(..left).unwrap_or_default();
            self.file.read_exact_at(piece, at)?;
            file.write_all_at(piece, at)?;
            at += left as u64;
        }
        Ok(())
    }
}
