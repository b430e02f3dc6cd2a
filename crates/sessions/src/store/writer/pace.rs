//! When `sessions.json` is written.
//!
//! Nothing is lost while it waits: every acknowledged change is in the journal. The file is for other eyes (a person, an
//! OpenClaw command beside us), and writing it costs all of it, however little has changed. So a small store shows a
//! change after a second of quiet, and a bigger one waits longer in proportion to its size, which bounds what is written
//! by the second whatever the number of sessions. A store that is never quiet is written after four times that pause at
//! the latest, or when its journal has grown to a quarter of the file: then each byte of journal has cost four of the
//! file, and a start has little to replay.

use std::time::Duration;

use crate::store::file::FileStoreOptions;

/// A pause of one second for so many bytes of the file. 10,000 sessions of some 600 bytes wait three quarters of a minute.
const BYTES_PER_SECOND: u64 = 128 * 1024;
/// A slow disk makes for longer pauses: the file is at least this many times longer at rest than being written.
const REST_RATIO: u32 = 20;
/// How many pauses pass at most in a store that is never quiet.
const PAUSES_AT_MOST: u32 = 4;
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The journal may grow to the file's size divided by this.
const JOURNAL_SHARE: u64 = 4;

/// The delays of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// How long the store must be quiet.
    pub(super) quiet: Duration,
    /// How long a change waits at most.
    pub(super) at_most: Duration,
    /// Bytes of journal after which it is written at once.
    pub(super) journal_limit: u64,
}

impl Pace {
    /// The delays of a file of `len` bytes that took `took` to write, never shorter than configured.
    pub(super) fn of(options: &FileStoreOptions, len: u64, took: Duration) -> Self {
        let for_size = Duration::from_millis(len.saturating_mul(1000) / BYTES_PER_SECOND);
        let pause = for_size.max(took.saturating_mul(REST_RATIO)).min(LONGEST);
        Self {
            quiet: options.quiet.max(pause),
            at_most: options.at_most.max(pause * PAUSES_AT_MOST),
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
    fn a_small_store_is_written_after_a_second_and_a_big_one_seldom() {
        let options = FileStoreOptions::new(
            Layout::new("/s", "/h", None),
            KeyRules::default(),
            vec![AgentId::default()],
        );
        let rows = [
            // Bytes, ms it took; ms of quiet, ms at most, bytes of journal.
            ((0, 0), (1_000, 30_000, 4 << 20)),
            ((100 << 10, 3), (1_000, 30_000, 4 << 20)),
            ((600 << 10, 10), (4_687, 30_000, 4 << 20)),
            ((6 << 20, 60), (48_000, 192_000, 4 << 20)),
            ((50 << 20, 500), (400_000, 1_600_000, (50 << 20) / 4)),
            ((100 << 10, 9_000), (180_000, 720_000, 4 << 20)),
            ((u64::MAX, 0), (900_000, 3_600_000, u64::MAX / 4)),
        ];
        for ((len, took), (quiet, at_most, journal_limit)) in rows {
            let ms = Duration::from_millis;
            let expect = Pace { quiet: ms(quiet), at_most: ms(at_most), journal_limit };
            assert_eq!(Pace::of(&options, len, ms(took)), expect, "{len} bytes in {took} ms");
        }
    }
}
