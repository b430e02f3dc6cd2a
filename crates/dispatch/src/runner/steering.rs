//! Handing messages to a run under way.
//!
//! The run polls; the transcript adapter tells which of the polled messages it has written, and under which entry id.
//! What the run did not write by its end becomes a follow-up: nothing is lost in the last instant.

use std::collections::VecDeque;

use openclaw_agent::Steering;
use openclaw_agent::transcript::QueuedMessage;
use openclaw_protocol::RunId;
use openclaw_protocol::message::UserMessage;
use parking_lot::Mutex;

use crate::api::AbortReason;
use crate::job::Job;

/// The messages one run is handed.
#[derive(Debug, Default)]
pub(crate) struct SteeringQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Not seen by the run yet.
    pending: VecDeque<Pending>,
    /// Seen, not in the transcript yet.
    polled: VecDeque<Job>,
    /// In the transcript.
    taken: Vec<Job>,
    /// To be stopped, found too late to keep the run from it.
    stopped: Vec<(RunId, AbortReason)>,
}

/// A message that the run has not seen yet.
#[derive(Debug)]
struct Pending {
    job: Job,
    message: UserMessage,
    /// Its job waits behind the run: what becomes of the copy changes nothing for it.
    is_copy: bool,
}

impl SteeringQueue {
    /// Queues a message; `message` is its form for the model.
    pub(crate) fn push(&self, job: Job, message: UserMessage) {
        self.state.lock().pending.push_back(Pending { job, message, is_copy: false });
    }

    /// The same of a message that has a run of its own behind this one.
    pub(crate) fn push_copy(&self, job: Job, message: UserMessage) {
        self.state.lock().pending.push_back(Pending { job, message, is_copy: true });
    }

    /// Takes the copy of a message back, if the run has not seen it.
    pub(crate) fn forget_copy(&self, run_id: &RunId) {
        let mut state = self.state.lock();
        state.pending.retain(|pending| !pending.is_copy || pending.job.row.run_id != *run_id);
    }

    /// Whether a message can still be kept from the run.
    pub(crate) fn can_withdraw(&self, run_id: &RunId) -> bool {
        let state = self.state.lock();
        let pending = state.pending.iter().filter(|pending| !pending.is_copy).map(|pending| &pending.job);
        let mut waiting = pending.chain(&state.polled);
        waiting.any(|job| job.row.run_id == *run_id)
    }

    /// Takes a message back that the run has not seen. One that it has seen and not written yet is noted: should the run
    /// not write it, [`SteeringQueue::stopped`] knows.
    pub(crate) fn withdraw(&self, run_id: &RunId, reason: AbortReason) -> Option<Job> {
        let mut state = self.state.lock();
        let is_it = |pending: &Pending| !pending.is_copy && pending.job.row.run_id == *run_id;
        let place = state.pending.iter().position(is_it);
        let withdrawn = place.and_then(|place| state.pending.remove(place)).map(|pending| pending.job);
        if withdrawn.is_none() {
            state.stopped.push((run_id.clone(), reason));
        }
        withdrawn
    }

    /// Why a message that the run did not take is not to be worked on either.
    pub(crate) fn stopped(&self, run_id: &RunId) -> Option<AbortReason> {
        self.state.lock().stopped.iter().find(|(stopped, _)| stopped == run_id).map(|(_, reason)| *reason)
    }

    /// The job whose message the run is about to write, oldest first.
    pub(crate) fn writing(&self) -> Option<Job> {
        self.state.lock().polled.front().cloned()
    }

    /// The message [`SteeringQueue::writing`] named is in the transcript.
    pub(crate) fn written(&self) {
        let mut state = self.state.lock();
        if let Some(job) = state.polled.pop_front() {
            state.taken.push(job);
        }
    }

    /// What the run took so far.
    pub(crate) fn taken(&self) -> Vec<Job> {
        self.state.lock().taken.clone()
    }

    /// What the run took, emptied.
    pub(crate) fn drain_taken(&self) -> Vec<Job> {
        std::mem::take(&mut self.state.lock().taken)
    }

    /// What the run did not take, oldest first, emptied.
    pub(crate) fn drain_untaken(&self) -> Vec<Job> {
        let mut state = self.state.lock();
        let mut jobs: Vec<Job> = state.polled.drain(..).collect();
        jobs.extend(state.pending.drain(..).filter(|pending| !pending.is_copy).map(|pending| pending.job));
        jobs
    }
}

impl Steering for SteeringQueue {
    fn poll(&self) -> Option<QueuedMessage> {
        let mut state = self.state.lock();
        let Pending { job, message, is_copy } = state.pending.pop_front()?;
        if is_copy {
            // One of the message's own ids, and none under which its own turn looks for it.
            let entry_id = Some(format!("{}-copy", job.row.fresh_id));
            return Some(QueuedMessage { message, entry_id });
        }
        let entry_id = Some(job.row.entry_id.clone());
        state.polled.push_back(job);
        Some(QueuedMessage { message, entry_id })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_protocol::{SessionId, SessionKey};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::backlog::Backlog;
    use crate::inbox::{Attempts, Queued, Row};
    use crate::request::Request;

    fn job(name: &str) -> Job {
        let row = Row {
            run_id: RunId::new(name),
            session_key: SessionKey::global(),
            payload: Queued::of(Request::default(), Attempts::default(), Backlog::default().count(0)),
            accepted_at: 0,
            entry_id: format!("id-{name}"),
            fresh_id: SessionId::new("s"),
            session_id: None,
            abort: None,
            answered: None,
            recovered: false,
            gathering: None,
        };
        Job::new(Arc::new(row), CancellationToken::new())
    }

    fn names(jobs: &[Job]) -> Vec<&str> {
        jobs.iter().map(|job| job.row.run_id.as_str()).collect()
    }

    fn queue(names: &[&str]) -> SteeringQueue {
        let queue = SteeringQueue::default();
        for name in names {
            queue.push(job(name), UserMessage::text(*name, 0));
        }
        queue
    }

    #[test]
    fn a_message_counts_as_taken_once_it_is_written() {
        let queue = queue(&["a", "b", "c"]);
        let polled = queue.poll().unwrap();
        assert_eq!(
            (polled.message.content.to_text(), polled.entry_id),
            ("a".to_owned(), Some("id-a".to_owned()))
        );
        assert_eq!(queue.writing().unwrap().row.run_id.as_str(), "a");
        queue.written();
        assert!(queue.writing().is_none());
        queue.poll().unwrap();
        assert_eq!(names(&queue.drain_taken()), ["a"]);
        assert_eq!(names(&queue.drain_untaken()), ["b", "c"], "polled and never written is not taken");
    }

    #[test]
    fn a_copy_is_read_and_nothing_else() {
        let queue = queue(&["a"]);
        queue.push_copy(job("b"), UserMessage::text("b", 0));
        queue.push_copy(job("c"), UserMessage::text("c", 0));
        queue.forget_copy(&RunId::new("c"));
        assert!(!queue.can_withdraw(&RunId::new("b")), "it waits behind the run, and is stopped there");
        queue.poll().unwrap();
        queue.written();
        let copy = queue.poll().unwrap();
        assert_eq!(
            (copy.message.content.to_text(), copy.entry_id),
            ("b".to_owned(), Some("s-copy".to_owned()))
        );
        assert!(queue.writing().is_none() && queue.poll().is_none());
        queue.push_copy(job("d"), UserMessage::text("d", 0));
        assert_eq!((names(&queue.drain_taken()), queue.drain_untaken().len()), (vec!["a"], 0));
    }

    #[test]
    fn a_message_the_run_has_not_seen_can_be_taken_back() {
        let queue = queue(&["a", "b"]);
        queue.poll().unwrap();
        assert!(queue.can_withdraw(&RunId::new("a")) && !queue.can_withdraw(&RunId::new("z")));
        assert_eq!(names(&[queue.withdraw(&RunId::new("b"), AbortReason::Rpc).unwrap()]), ["b"]);
        assert!(queue.withdraw(&RunId::new("a"), AbortReason::Stop).is_none(), "the run has seen it");
        assert_eq!(names(&queue.drain_untaken()), ["a"]);
        assert_eq!(queue.stopped(&RunId::new("a")), Some(AbortReason::Stop));
    }
}
