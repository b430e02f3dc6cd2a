//! Pace of the writes to `sessions.json`.
//!
//! Nothing is lost while it waits: every acknowledged change is in the journal. The file is for
//! other eyes (a person, the programs of OpenClaw 2026.2.9 beside us), so it is behind by two
//! seconds at most once the store is quiet, and by five in a store that is never quiet. Writing it
//! costs all of it, however little has changed: rows beyond ten thousand add a second for each two
//! MiB, which bounds the bytes written per second whatever the number of sessions. A slow disk gets
//! rests. A journal that has grown to a quarter of the file has it written at once: then each byte
//! of journal has cost four of the file, and a start has little to replay.

use std::time::Duration;

use crate::store::file::FileStoreOptions;

/// Rows up to which the file keeps the shortest delays.
const PROMPT_ROWS: usize = 10_000;
/// A pause of one second for so many bytes of rows beyond those.
const BYTES_PER_SECOND: u64 = 2 * 1024 * 1024;
/// Duration of a write beyond which the disk counts as slow.
const PROMPT_WRITE: Duration = Duration::from_millis(500);
/// Rest after a write to a slow disk, as a multiple of the write's duration.
const REST_RATIO: u32 = 20;
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The journal may grow to the file's size divided by this.
const JOURNAL_SHARE: u64 = 4;

/// The delays of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteDelays {
    /// Quiet time that the store must have before a write.
    pub(super) quiet: Duration,
    /// Longest time that a change waits.
    pub(super) at_most: Duration,
    /// Bytes of journal after which it is written at once.
    pub(super) journal_limit: u64,
}

/// A store file as it was written last.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastWrite {
    /// Number of rows.
    pub(super) rows: usize,
    /// Size in bytes.
    pub(super) len: u64,
    /// Duration of the write.
    pub(super) took: Duration,
}

impl WriteDelays {
    /// The delays of a file after it was written, never shorter than configured.
    pub(super) fn of(options: &FileStoreOptions, written: LastWrite) -> Self {
        let LastWrite { rows, len, took } = written;
        let beyond = rows.saturating_sub(PROMPT_ROWS);
        let bytes = u128::from(len) * beyond as u128 / rows.max(1) as u128;
        let for_size = u64::try_from(bytes * 1000 / u128::from(BYTES_PER_SECOND)).unwrap_or(u64::MAX);
        let for_disk = took.saturating_sub(PROMPT_WRITE).saturating_mul(REST_RATIO);
        let pause = Duration::from_millis(for_size).max(for_disk).min(LONGEST);
        Self {
            quiet: options.quiet + pause,
            at_most: options.at_most + pause,
            journal_limit: options.journal_limit.max(len / JOURNAL_SHARE),
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::AgentId;

    use super::*;
    use crate::{KeyRules, Layout};

    #[test]
    fn ten_thousand_rows_are_written_as_promptly_as_one_and_more_wait_for_their_size() {
        let options = FileStoreOptions::new(
            Layout::new("/s", "/h", None),
            KeyRules::default(),
            vec![AgentId::default()],
        );
        const MIB: u64 = 1 << 20;
        let rows = [
            // Rows, bytes, ms it took; ms of quiet, ms at most, bytes of journal.
            ((0, 0, 0), (1_000, 4_000, 4 * MIB)),
            ((160, MIB / 10, 3), (1_000, 4_000, 4 * MIB)),
            ((10_000, 6 * MIB, 60), (1_000, 4_000, 4 * MIB)),
            ((10_000, 40 * MIB, 500), (1_000, 4_000, 10 * MIB)),
            ((10_001, 6 * MIB, 60), (1_000, 4_000, 4 * MIB)),
            ((20_000, 12 * MIB, 120), (4_000, 7_000, 4 * MIB)),
            ((100_000, 60 * MIB, 400), (28_000, 31_000, 15 * MIB)),
            // A slow disk.
            ((160, MIB / 10, 1_500), (21_000, 24_000, 4 * MIB)),
            ((usize::MAX, u64::MAX, 0), (901_000, 904_000, u64::MAX / 4)),
        ];
        for ((rows, len, took), (quiet, at_most, journal_limit)) in rows {
            let ms = Duration::from_millis;
            let expect = WriteDelays { quiet: ms(quiet), at_most: ms(at_most), journal_limit };
            let written = LastWrite { rows, len, took: ms(took) };
            assert_eq!(WriteDelays::of(&options, written), expect, "{written:?}");
        }
    }
}
