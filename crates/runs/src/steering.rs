//! Steering: hands messages to a run under way.
//!
//! The run polls; the transcript adapter tells which of the polled messages it has written, and
//! under which entry id. Messages that the run did not write by its end become follow-ups: none is
//! lost in the last instant.

use std::collections::VecDeque;

use openclaw_agent::Steering;
use openclaw_agent::transcript::QueuedMessage;
use openclaw_journal::api::AbortReason;
use openclaw_journal::job::Job;
use openclaw_protocol::RunId;
use openclaw_protocol::message::UserMessage;
use parking_lot::Mutex;

/// The messages one run is handed.
#[derive(Debug, Default)]
pub struct SteeringQueue {
    state: Mutex<SteeringState>,
}

#[derive(Debug, Default)]
struct SteeringState {
    /// Messages that the run has not seen yet.
    pending: VecDeque<(Job, UserMessage)>,
    /// Messages that the run has seen, but that are not in the transcript yet.
    polled: VecDeque<Job>,
    /// Messages in the transcript.
    taken: Vec<Job>,
    /// Messages of which the run has read a copy, which is in the transcript.
    read: Vec<RunId>,
    /// Left to the run, which has not written the copy that it was handed of them yet.
    left: Vec<Job>,
    /// True if the run's answer is stored, or about to be: no more messages are left to the run.
    is_closed: bool,
    /// Messages that are to be stopped, but that could not be kept from the run any more.
    stopped: Vec<(RunId, AbortReason)>,
    /// True once the transcript has a whole answer of the run.
    has_answered: bool,
    /// Messages in the transcript since the last whole answer, copies too.
    unanswered: Vec<RunId>,
}

impl SteeringQueue {
    /// Queues a message; `message` is its form for the model.
    pub fn push(&self, job: Job, message: UserMessage) {
        self.state.lock().pending.push_back((job, message));
    }

    /// True if a message can still be kept from the run.
    pub fn can_withdraw(&self, run_id: &RunId) -> bool {
        let state = self.state.lock();
        let mut waiting = state.pending.iter().map(|(job, _)| job).chain(&state.polled);
        waiting.any(|job| job.row.run_id == *run_id)
    }

    /// Takes a message back that the run has not seen. One that it has seen and not written yet is noted: should the run
    /// not write it, [`SteeringQueue::stopped`] knows.
    pub fn withdraw(&self, run_id: &RunId, reason: AbortReason) -> Option<Job> {
        let mut state = self.state.lock();
        let place = state.pending.iter().position(|(job, _)| job.row.run_id == *run_id);
        let withdrawn = place.and_then(|place| state.pending.remove(place)).map(|(job, _)| job);
        if withdrawn.is_none() {
            state.stopped.push((run_id.clone(), reason));
        }
        withdrawn
    }

    /// Takes the copy of a message back, if the run has not seen it.
    pub fn retract(&self, run_id: &RunId) {
        self.state.lock().pending.retain(|(job, _)| !job.is_copy || job.row.run_id != *run_id);
    }

    /// Leaves a message to the run that was handed a copy of it. `true`: that is in the transcript already. A run that is past its
    /// [`SteeringQueue::close`] does not answer it any more: it is untaken then.
    pub fn leave(&self, job: Job) -> bool {
        let mut state = self.state.lock();
        let run_id = &job.row.run_id;
        if !state.is_closed && state.read.contains(run_id) {
            state.taken.push(job);
            return true;
        }
        // Not seen yet, it is handed over as any message.
        match state.pending.iter_mut().find(|(copy, _)| copy.is_copy && copy.row.run_id == *run_id) {
            Some((copy, _)) => *copy = job,
            None => state.left.push(job),
        }
        false
    }

    /// True if a message that the run has a copy of is left to it.
    pub fn is_left(&self, run_id: &RunId) -> bool {
        self.state.lock().left.iter().any(|job| job.row.run_id == *run_id)
    }

    /// Takes out the messages of which the run has read a copy.
    pub fn drain_read(&self) -> Vec<RunId> {
        std::mem::take(&mut self.state.lock().read)
    }

    /// Returns the reason for which a message that the run did not take is not to be worked on
    /// either.
    pub fn stopped(&self, run_id: &RunId) -> Option<AbortReason> {
        self.state.lock().stopped.iter().find(|(stopped, _)| stopped == run_id).map(|(_, reason)| *reason)
    }

    /// Returns the job whose message the run is about to write, oldest first.
    pub fn writing(&self) -> Option<Job> {
        self.state.lock().polled.front().cloned()
    }

    /// The message [`SteeringQueue::writing`] named is in the transcript.
    pub fn written(&self) {
        let mut state = self.state.lock();
        let Some(written) = state.polled.pop_front() else { return };
        state.unanswered.push(written.row.run_id.clone());
        if !written.is_copy {
            return state.taken.push(written);
        }
        let run_id = written.row.run_id.clone();
        match state.left.iter().position(|job| job.row.run_id == run_id) {
            Some(at) => {
                let left = state.left.remove(at);
                state.taken.push(left);
            }
            None => state.read.push(run_id),
        }
    }

    /// A whole answer is in the transcript, to all messages before it.
    pub fn answered(&self) {
        let mut state = self.state.lock();
        state.has_answered = true;
        state.unanswered.clear();
    }

    /// Returns the number of messages that the run has read behind its last whole answer; 0 without
    /// such an answer.
    pub fn behind_answer(&self) -> usize {
        let state = self.state.lock();
        if state.has_answered { state.unanswered.len() } else { 0 }
    }

    /// True if the run has read a message since its last whole answer.
    pub fn is_unanswered(&self, run_id: &RunId) -> bool {
        self.state.lock().unanswered.contains(run_id)
    }

    /// Returns the messages that the run took and answers; the run takes none after this. The
    /// message of a copy has an answer of its own.
    pub fn close(&self) -> Vec<Job> {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.taken.clone()
    }

    /// Returns the ids of the messages that the run took.
    pub fn taken(&self) -> Vec<RunId> {
        self.state.lock().taken.iter().map(|job| job.row.run_id.clone()).collect()
    }

    /// Takes out the messages that the run took.
    pub fn drain_taken(&self) -> Vec<Job> {
        std::mem::take(&mut self.state.lock().taken)
    }

    /// Takes out the messages that the run did not take, oldest first. Copies are gone: their
    /// messages wait anyway.
    pub fn drain_untaken(&self) -> Vec<Job> {
        let mut state = self.state.lock();
        let mut jobs: Vec<Job> = state.polled.drain(..).collect();
        jobs.extend(state.pending.drain(..).map(|(job, _)| job));
        jobs.retain(|job| !job.is_copy);
        jobs.append(&mut state.left);
        jobs
    }
}

impl Steering for SteeringQueue {
    fn poll(&self) -> Option<QueuedMessage> {
        let mut state = self.state.lock();
        let (job, message) = state.pending.pop_front()?;
        let [entry_id, _] = job.steered_entries();
        let entry_id = Some(entry_id);
        state.polled.push_back(job);
        Some(QueuedMessage { message, entry_id })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_journal::backlog::Backlog;
    use openclaw_journal::inbox::{Attempts, InboxRow, Queued};
    use openclaw_journal::request::RunRequest;
    use openclaw_protocol::{SessionId, SessionKey};
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn job(name: &str) -> Job {
        let row = InboxRow {
            run_id: RunId::new(name),
            session_key: SessionKey::global(),
            payload: Queued::of(RunRequest::default(), Attempts::default(), Backlog::default().count(0)),
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

    fn copy(name: &str) -> Job {
        Job { is_copy: true, ..job(name) }
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
    fn a_message_the_run_has_not_seen_can_be_taken_back() {
        let queue = queue(&["a", "b"]);
        queue.poll().unwrap();
        assert!(queue.can_withdraw(&RunId::new("a")) && !queue.can_withdraw(&RunId::new("z")));
        assert_eq!(names(&[queue.withdraw(&RunId::new("b"), AbortReason::Rpc).unwrap()]), ["b"]);
        assert!(queue.withdraw(&RunId::new("a"), AbortReason::Stop).is_none(), "the run has seen it");
        assert_eq!(names(&queue.drain_untaken()), ["a"]);
        assert_eq!(queue.stopped(&RunId::new("a")), Some(AbortReason::Stop));
    }

    #[test]
    fn a_copy_is_neither_taken_nor_left_over() {
        let queue = SteeringQueue::default();
        for name in ["a", "b", "c"] {
            queue.push(copy(name), UserMessage::text(name, 0));
        }
        let polled = queue.poll().unwrap();
        assert_eq!(polled.entry_id.as_deref(), Some("s-copy"), "never the entry of the message itself");
        queue.written();
        queue.retract(&RunId::new("b"));
        assert_eq!(queue.poll().unwrap().message.content.to_text(), "c");
        assert!(queue.drain_taken().is_empty());
        assert!(queue.drain_untaken().is_empty());
    }

    /// Wherever its copy is when a message is left to the run: it is taken once, or left over.
    #[test]
    fn a_message_that_is_left_to_the_run_is_taken_by_it_if_it_reads_the_copy() {
        let queue = SteeringQueue::default();
        for name in ["a", "b", "c", "d"] {
            queue.push(copy(name), UserMessage::text(name, 0));
        }
        queue.poll().unwrap();
        queue.written();
        assert!(queue.leave(job("a")), "it was read");
        queue.poll().unwrap();
        assert!(!queue.leave(job("b")) && queue.is_left(&RunId::new("b")));
        queue.written();
        assert!(!queue.leave(job("c")), "it is handed over as itself");
        assert_eq!(queue.poll().unwrap().entry_id.as_deref(), Some("id-c"));
        queue.written();
        assert!(!queue.leave(job("d")) && !queue.leave(job("e")), "of e it never had a copy");
        assert_eq!(names(&queue.drain_taken()), ["a", "b", "c"]);
        assert_eq!(names(&queue.drain_untaken()), ["d", "e"]);
        assert_eq!(queue.drain_read(), [RunId::new("a")]);
    }

    #[test]
    fn nothing_is_left_to_a_run_whose_answers_are_being_stored() {
        let queue = SteeringQueue::default();
        for name in ["a", "b"] {
            queue.push(copy(name), UserMessage::text(name, 0));
            queue.poll().unwrap();
            queue.written();
        }
        assert!(queue.leave(job("a")));
        assert_eq!(names(&queue.close()), ["a"]);
        assert!(!queue.leave(job("b")), "its end would be stored by nobody");
        assert_eq!(names(&queue.drain_taken()), ["a"]);
        assert_eq!(names(&queue.drain_untaken()), ["b"], "it has a run of its own");
    }
}
