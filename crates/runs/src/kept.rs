//! Transcripts that stay open between runs, with the last requests to models: the next message of a
//! long conversation neither reads nor writes all of it anew.

use std::collections::VecDeque;

use openclaw_agent::pruning::Pruned;
use openclaw_agent::sent_images::SentImages;
use openclaw_models::KeptRequest;
use openclaw_sessions::transcript::{KeptTranscript, Transcript, TranscriptRef};
use parking_lot::Mutex;

/// Memory in bytes that all kept transcripts may take together, with their requests.
const MOST_MEMORY: usize = 12 * 1024 * 1024;
/// Transcripts that may take all of it, the newest.
const FEW: usize = 8;
/// Transcripts that are kept at most: as many conversations at once find theirs.
const MANY: usize = 64;

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
        let mut sizes: Vec<KeptSizes> = kept.iter().map(CachedTranscript::sizes).collect();
        while let Some(excess) = excess(&sizes) {
            match excess {
                Excess::Request(at) => {
                    if let (Some(kept), Some(sizes)) = (kept.get_mut(at), sizes.get_mut(at)) {
                        kept.remembered.asked = KeptRequest::default();
                        sizes.request = 0;
                    }
                }
                Excess::Transcript(at) => {
                    sizes.remove(at);
                    kept.remove(at);
                }
            }
        }
    }
}

/// Memory in bytes of a kept transcript.
#[derive(Debug, Clone, Copy, Default)]
struct KeptSizes {
    transcript: usize,
    /// The last request, which can be let go alone.
    request: usize,
}

/// Memory to let go of, by the index of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Request(usize),
    Transcript(usize),
}

/// Returns what to let go of, of transcripts of these sizes, the newest at the end: the request of
/// the oldest, since writing it anew costs less than reading a transcript; then the oldest
/// transcript, or the largest of the older ones. With more conversations in turn than there is room
/// for, letting the oldest go would let each go just before its turn.
fn excess(sizes: &[KeptSizes]) -> Option<Excess> {
    let memory: usize = sizes.iter().map(|sizes| sizes.transcript + sizes.request).sum();
    if sizes.len() > MANY {
        return Some(Excess::Transcript(0));
    }
    if memory <= MOST_MEMORY || sizes.is_empty() {
        return None;
    }
    let older = sizes.get(..sizes.len().saturating_sub(FEW)).unwrap_or_default();
    if let Some(at) = older.iter().position(|sizes| sizes.request > 0) {
        return Some(Excess::Request(at));
    }
    let largest = older.iter().enumerate().rev().max_by_key(|(_, sizes)| sizes.transcript);
    Some(Excess::Transcript(largest.map_or(0, |(at, _)| at)))
}

impl CachedTranscript {
    fn sizes(&self) -> KeptSizes {
        let Remembered { asked, pruned, images } = &self.remembered;
        KeptSizes {
            transcript: self.transcript.memory() + pruned.memory() + images.memory(),
            request: asked.memory(),
        }
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
    fn requests_go_before_transcripts_and_large_ones_before_small_ones() {
        let sizes = |transcript, request| KeptSizes { transcript, request };
        let with = |at: usize, large: usize, request: usize, count: usize| {
            let mut all = vec![sizes(1, request); count];
            all[at] = sizes(large, request);
            all
        };
        let rows = [
            (vec![], None),
            (vec![sizes(MOST_MEMORY / MANY, 0); MANY], None),
            (vec![sizes(0, 0); MANY + 1], Some(Excess::Transcript(0))),
            (vec![sizes(MOST_MEMORY / FEW, 0); FEW], None),
            (with(FEW - 1, MOST_MEMORY, 1, FEW), Some(Excess::Transcript(0))),
            (vec![sizes(MOST_MEMORY, 1)], Some(Excess::Transcript(0))),
            // Requests of the older ones, the oldest first.
            (with(3, MOST_MEMORY, 1, FEW + 5), Some(Excess::Request(0))),
            // The largest of the older ones, and the oldest of those.
            (with(3, MOST_MEMORY, 0, FEW + 5), Some(Excess::Transcript(3))),
            (with(FEW + 4, MOST_MEMORY, 0, FEW + 5), Some(Excess::Transcript(0))),
        ];
        for (sizes, expect) in rows {
            assert_eq!(excess(&sizes), expect, "{sizes:?}");
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
        let conversation = Arc::new(vec![Arc::new(message)]);
        remembered.images.view(&conversation, &CancellationToken::new()).await.unwrap();
        assert!(remembered.images.memory() > 0);
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
