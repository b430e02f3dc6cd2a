//! Bounds on heavy requests that are worked on at once, and on the memory of large answers until clients have read them.
//!
//! A request that waits holds its params and no more. One that is worked on keeps its place until
//! its answer has its bytes; the answer holds those until the last of it was written to the socket,
//! or the connection has ended. A holder of bytes waits only for its client, and no longer than its
//! line may take: so none of these waits is endless. Small answers take bytes of their own, and only
//! while their client is behind. Clients that may write have a budget of their own, so that nobody
//! else keeps them waiting.

use std::sync::Arc;

use openclaw_protocol::Payload;
use openclaw_protocol::access::Role;
use openclaw_protocol::method::Weight;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::connection::frame_budget::{LARGEST, SMALL, may_write};

/// Heavy requests that are worked on at once for those who may write.
const HEAVY_OF_WRITERS: usize = 2;
/// Heavy requests that are worked on at once for all others together.
const HEAVY_OF_OTHERS: usize = 1;
/// Requests that count all transcripts; the second would wait for the first one anyway.
const COUNTING: usize = 1;
/// Bytes of large answers that wait to be read: one of the largest and some others.
const ANSWERS: u32 = LARGEST + LARGEST / 4;

/// Bytes of small answers that wait for clients who are behind.
const SMALL_ANSWERS: usize = ANSWERS as usize;

/// The work and memory that all connections together may take.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    writers: Share,
    others: Share,
}

/// The part of the budget that a client's requests take from.
#[derive(Debug, Clone)]
pub(super) struct Share {
    heavy: Arc<Semaphore>,
    counting: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    small_answers: Arc<Semaphore>,
}

/// A large answer on its way: tells when its client has it.
pub(super) struct Sent {
    /// Bytes that it holds.
    pub(super) bytes: u32,
    given_back: oneshot::Receiver<()>,
}

impl Default for WorkBudget {
    fn default() -> Self {
        Self { writers: Share::of(HEAVY_OF_WRITERS), others: Share::of(HEAVY_OF_OTHERS) }
    }
}

impl WorkBudget {
    /// The part that a client with these rights takes from.
    pub(super) fn share(&self, role: Role, scopes: &[String]) -> Share {
        if may_write(role, scopes) { self.writers.clone() } else { self.others.clone() }
    }
}

impl Share {
    fn of(heavy: usize) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self {
            heavy: semaphore(heavy),
            counting: semaphore(COUNTING),
            answers: semaphore(ANSWERS as usize),
            small_answers: semaphore(SMALL_ANSWERS),
        }
    }

    /// The bytes that small answers take while they wait for clients who are behind. Whoever finds
    /// too little left is cut off: a small answer is there before it is known that it must wait.
    pub(super) fn small_answers(&self) -> Arc<Semaphore> {
        Arc::clone(&self.small_answers)
    }

    /// Waits until a request of this weight may be worked on; a light one may at once.
    pub(super) async fn begin(&self, weight: Weight) -> Option<OwnedSemaphorePermit> {
        let places = match weight {
            Weight::Light => return None,
            Weight::Heavy => &self.heavy,
            Weight::Counting => &self.counting,
        };
        // The semaphore is never closed.
        Arc::clone(places).acquire_owned().await.ok()
    }

    /// Waits until a large answer has its bytes, and binds them to it.
    pub(super) async fn hold(&self, answer: &mut Payload) -> Sent {
        let bytes = u32::try_from(answer.bytes().len()).unwrap_or(ANSWERS).min(ANSWERS);
        // The semaphore is never closed.
        let room = Arc::clone(&self.answers).acquire_many_owned(bytes).await.ok();
        let (guard, given_back) = oneshot::channel::<()>();
        *answer = answer.clone().guarded_by((room, guard));
        Sent { bytes, given_back }
    }
}

/// True if an answer is so large that it waits for its bytes.
pub(super) fn is_large(answer: &Payload) -> bool {
    answer.bytes().len() > SMALL as usize
}

impl Sent {
    /// Resolves when the answer's memory was given back.
    pub(super) async fn given_back(self) {
        // The sender is dropped, and never sends.
        let _ = self.given_back.await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use openclaw_protocol::access::{READ, WRITE};

    use super::*;

    fn share_of(scope: &str) -> Share {
        WorkBudget::default().share(Role::Operator, &[scope.to_owned()])
    }

    #[test]
    fn heavy_requests_wait_for_each_other_and_for_no_others() {
        for (scope, places) in [(WRITE, HEAVY_OF_WRITERS), (READ, HEAVY_OF_OTHERS)] {
            let share = share_of(scope);
            let begin = |weight| share.begin(weight).now_or_never();
            let mut held: Vec<_> = (0..places).map(|_| begin(Weight::Heavy).unwrap()).collect();
            assert!(begin(Weight::Heavy).is_none(), "{scope}");
            assert!(begin(Weight::Light).is_some() && begin(Weight::Counting).is_some(), "{scope}");
            held.pop();
            assert!(begin(Weight::Heavy).is_some(), "{scope}");
        }
    }

    #[tokio::test]
    async fn an_answer_holds_its_bytes_until_nobody_holds_it() {
        let share = share_of(READ);
        let mut answer = Payload::of(&"x".repeat(LARGEST as usize)).unwrap();
        let text = answer.bytes().clone();
        let sent = share.hold(&mut answer).await;
        assert_eq!((answer.bytes(), is_large(&answer)), (&text, true));
        let mut second = answer.clone();
        assert!(share.hold(&mut second).now_or_never().is_none(), "they do not fit together");
        let being_written = answer.bytes().clone();
        drop((answer, second));
        assert_eq!(share.answers.available_permits(), (ANSWERS - sent.bytes) as usize);
        drop(being_written);
        sent.given_back().await;
        assert_eq!(share.answers.available_permits(), ANSWERS as usize);
    }
}
