//! Transcripts that stay open between runs: the next message of a long conversation does not read it all anew.

use std::collections::VecDeque;

use openclaw_sessions::transcript::{KeptTranscript, Transcript, TranscriptRef};
use parking_lot::Mutex;

/// Transcripts that are kept.
const MOST: usize = 8;
/// What they take altogether, in bytes.
const MOST_MEMORY: usize = 24 * 1024 * 1024;

/// The transcripts used last, the newest at the end. A run takes its own out and puts it back.
#[derive(Default)]
pub(super) struct KeptTranscripts(Mutex<VecDeque<KeptTranscript>>);

impl KeptTranscripts {
    /// Takes one of them.
    pub(super) fn take(&self, transcript: &TranscriptRef) -> Option<KeptTranscript> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|kept| kept.transcript() == transcript)?;
        kept.remove(at)
    }

    /// Keeps one, and lets go of the oldest that are too many.
    pub(super) fn put(&self, transcript: Transcript) {
        let mut kept = self.0.lock();
        kept.push_back(transcript.keep());
        while kept.len() > MOST || kept.iter().map(KeptTranscript::memory).sum::<usize>() > MOST_MEMORY {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use openclaw_protocol::{AgentId, SessionId};
    use openclaw_sessions::transcript::{MemoryTranscripts, NewTranscript, TranscriptLock, Transcripts};

    #[tokio::test]
    async fn the_newest_are_kept_each_for_one_taker() {
        let all: Arc<dyn Transcripts> = Arc::new(MemoryTranscripts::default());
        let name = |n: usize| all.of_new(&AgentId::default(), &SessionId::new(n.to_string())).unwrap();
        let kept = KeptTranscripts::default();
        for n in 0..=MOST {
            let new = NewTranscript { session_id: n.to_string(), cwd: "/".to_owned(), parent: None };
            let lock = TranscriptLock::acquire_now(&all, &name(n)).await.unwrap();
            kept.put(lock.reopen(None, new).await.unwrap());
        }
        assert!(kept.take(&name(0)).is_none(), "the oldest made room");
        assert_eq!(kept.take(&name(1)).map(|taken| taken.transcript().clone()), Some(name(1)));
        assert!(kept.take(&name(1)).is_none(), "it was taken");
    }
}
