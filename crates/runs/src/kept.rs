//! Transcripts that stay open between runs, with the last requests to models: the next message of a
//! long conversation neither reads nor writes all of it anew.

use std::collections::VecDeque;

use openclaw_agent::pruning::Pruned;
use openclaw_agent::sent_images::SentImages;
use openclaw_models::KeptRequest;
use openclaw_sessions::transcript::{KeptTranscript, Transcript, TranscriptRef};
use parking_lot::Mutex;

/// Memory in bytes that all kept transcripts may take together.
const MOST_MEMORY: usize = 12 * 1024 * 1024;
/// Transcripts that may take all of it, the newest.
const FEW: usize = 8;
/// Transcripts that are kept as long as they are small.
const MANY: usize = 64;
/// Memory in bytes that transcripts beyond the newest few may take: many conversations at once find
/// theirs, and the gateway's memory does not grow with their number.
const MANY_MEMORY: usize = 2 * 1024 * 1024;

/// The transcripts used last, the newest at the end. A run takes its own out and puts it back.
#[derive(Default)]
pub(super) struct KeptTranscripts(Mutex<VecDeque<CachedTranscript>>);

struct CachedTranscript {
    transcript: KeptTranscript,
    remembered: Remembered,
}

/// State that is kept together with a transcript.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// Last request to a model.
    pub(super) asked: KeptRequest,
    /// Tool results that are not sent any more (pruning).
    pub(super) pruned: Pruned,
    /// Replacements that are sent for images that are too large.
    pub(super) images: SentImages,
}

impl Remembered {
    fn memory(&self) -> usize {
        self.asked.memory() + self.pruned.memory() + self.images.memory()
    }
}

impl KeptTranscripts {
    /// True if this transcript is kept.
    pub(super) fn has(&self, transcript: &TranscriptRef) -> bool {
        self.0.lock().iter().any(|kept| kept.transcript.transcript() == transcript)
    }

    /// Takes a transcript out, if it is kept.
    pub(super) fn take(&self, transcript: &TranscriptRef) -> Option<(KeptTranscript, Remembered)> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|kept| kept.transcript.transcript() == transcript)?;
        kept.remove(at).map(|CachedTranscript { transcript, remembered }| (transcript, remembered))
    }

    /// Keeps one, and lets go of those that are too many.
    pub(super) fn put(&self, transcript: Transcript, remembered: Remembered) {
        let mut kept = self.0.lock();
        kept.push_back(CachedTranscript { transcript: transcript.keep(), remembered });
        // The last request repeats the whole prompt; writing it anew costs less than reading a
        // transcript.
        if let Some(older) = kept.len().checked_sub(FEW + 1).and_then(|at| kept.get_mut(at)) {
            older.remembered.asked = KeptRequest::default();
        }
        let mut sizes: Vec<usize> = kept.iter().map(CachedTranscript::memory).collect();
        while let Some(at) = too_much(&sizes) {
            sizes.remove(at);
            kept.remove(at);
        }
    }
}

/// Returns the index of the transcript to let go, of transcripts that take so many bytes, the
/// newest at the end: the oldest, or the largest of the older ones. With more conversations in turn
/// than there is room for, letting the oldest go would let each go just before its turn.
fn too_much(sizes: &[usize]) -> Option<usize> {
    let memory: usize = sizes.iter().sum();
    let older = sizes.len().saturating_sub(FEW);
    if sizes.len() > MANY {
        Some(0)
    } else if older > 0 && memory > MANY_MEMORY {
        sizes.iter().take(older).enumerate().rev().max_by_key(|(_, size)| **size).map(|(at, _)| at)
    } else {
        (memory > MOST_MEMORY && !sizes.is_empty()).then_some(0)
    }
}

impl CachedTranscript {
    fn memory(&self) -> usize {
        self.transcript.memory() + self.remembered.memory()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use openclaw_protocol::message::{Block, ImageBlock, Message, UserContent, UserMessage};
    use openclaw_protocol::{AgentId, SessionId};
    use openclaw_sessions::transcript::{MemoryLogs, NewTranscript, TranscriptLock};
    use tokio_util::sync::CancellationToken;

    #[test]
    fn many_small_ones_or_a_few_large_ones_are_kept() {
        let with = |at: usize, size: usize, count: usize| {
            let mut sizes = vec![1; count];
            sizes[at] = size;
            sizes
        };
        let rows = [
            (vec![], None),
            (vec![MANY_MEMORY / MANY; MANY], None),
            (vec![0; MANY + 1], Some(0)),
            (vec![MOST_MEMORY / FEW; FEW], None),
            (with(FEW - 1, MOST_MEMORY, FEW), Some(0)),
            (vec![MOST_MEMORY + 1], Some(0)),
            // The largest of the older ones, and the oldest of those.
            (with(3, MANY_MEMORY, FEW + 5), Some(3)),
            (with(FEW + 4, MANY_MEMORY, FEW + 5), Some(0)),
            (with(0, MANY_MEMORY, FEW + 1), Some(0)),
        ];
        for (sizes, expect) in rows {
            assert_eq!(too_much(&sizes), expect, "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn what_is_sent_in_the_place_of_images_counts() {
        let image = ImageBlock {
            mime_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
            ..ImageBlock::default()
        };
        let content = UserContent::Blocks(vec![Block::Image(image)]);
        let message = Message::User(UserMessage { content, ..UserMessage::default() });
        let mut remembered = Remembered::default();
        let before = remembered.memory();
        let conversation = Arc::new(vec![Arc::new(message)]);
        remembered.images.view(&conversation, &CancellationToken::new()).await.unwrap();
        assert!(remembered.memory() > before);
    }

    #[tokio::test]
    async fn the_newest_are_kept_each_for_one_taker() {
        let all = MemoryLogs::default().transcripts();
        let name = |n: usize| all.of_new(&AgentId::default(), &SessionId::new(n.to_string())).unwrap();
        let kept = KeptTranscripts::default();
        for n in 0..=MANY {
            let new = NewTranscript { session_id: n.to_string(), cwd: "/".to_owned(), parent: None };
            let lock = TranscriptLock::acquire_now(&all, &name(n)).await.unwrap();
            kept.put(lock.reopen(None, new).await.unwrap(), Remembered::default());
        }
        assert!(kept.take(&name(0)).is_none(), "the oldest made room");
        assert_eq!(kept.take(&name(1)).map(|(taken, _)| taken.transcript().clone()), Some(name(1)));
        assert!(kept.take(&name(1)).is_none(), "it was taken");
    }
}
