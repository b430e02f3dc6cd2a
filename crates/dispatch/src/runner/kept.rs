//! Transcripts that stay open between runs: the next message of a long conversation does not read it all anew.

use std::collections::VecDeque;
use std::path::Path;

use openclaw_sessions::transcript::Transcript;
use parking_lot::Mutex;

/// Transcripts that are kept.
const MOST: usize = 8;
/// Entries they have altogether; each takes about a quarter of a KiB.
const MOST_ENTRIES: usize = 20_000;

/// The transcripts used last, the newest at the end. A run takes its own out and puts it back.
#[derive(Default)]
pub(super) struct KeptTranscripts(Mutex<VecDeque<Transcript>>);

impl KeptTranscripts {
    /// Takes the one of this file.
    pub(super) fn take(&self, path: &Path) -> Option<Transcript> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|transcript| transcript.path() == path)?;
        kept.remove(at)
    }

    /// Keeps one, and lets go of the oldest that are too many.
    pub(super) fn put(&self, transcript: Transcript) {
        let mut kept = self.0.lock();
        kept.push_back(transcript);
        while kept.len() > MOST || kept.iter().map(Transcript::len).sum::<usize>() > MOST_ENTRIES {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_sessions::transcript::NewTranscript;

    #[tokio::test]
    async fn the_newest_are_kept_each_for_one_taker() {
        let dir = tempfile::tempdir().unwrap();
        let path = |n: usize| dir.path().join(format!("{n}.jsonl"));
        let kept = KeptTranscripts::default();
        for n in 0..=MOST {
            let new = NewTranscript { session_id: n.to_string(), cwd: "/".to_owned(), parent: None };
            kept.put(Transcript::create(path(n), new).await.unwrap());
        }
        assert!(kept.take(&path(0)).is_none(), "the oldest made room");
        assert_eq!(kept.take(&path(1)).map(|taken| taken.path().to_path_buf()), Some(path(1)));
        assert!(kept.take(&path(1)).is_none(), "it was taken");
    }
}
