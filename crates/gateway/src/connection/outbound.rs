//! Send queue of one client: counted, bounded, and closed rather than grown (spec
//! `gateway-protocol.md` §1.6).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::frame_budget::SMALL;
use crate::events::EncodedEvent;
use crate::frame_text::FrameText;
use crate::handshake::close::Closing;

/// Limit of waiting bytes above which a client counts as slow: `policy.maxBufferedBytes`.
pub const SLOW_BYTES: usize = 1_572_864;

/// Limit of waiting response bytes for a client that asks but never reads, above which it is
/// disconnected. Responses are never dropped, so this bounds the memory of a connection.
pub const HARD_BYTES: usize = 32 * 1024 * 1024;

/// Bytes waiting above which a client is behind. Its answers then count against the room of all, and
/// a run's text is sent as it is now rather than as it grew: an event that shows it takes the place of
/// the one before, which it contains.
const BEHIND_BYTES: usize = 64 * 1024;

/// Outcome of pushing an event to one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The event will be sent.
    Queued,
    /// The client is slow and the event may be missed; its number is used up, so that the client sees a gap.
    Skipped,
    /// The client is slow and the event may not be missed: the connection is being closed.
    Closed,
}

/// A frame that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueuedFrame {
    /// A response.
    Text(FrameText),
    /// A broadcast.
    Event(QueuedEvent),
}

/// A broadcast that waits; its text is put together when it is sent, so that waiting copies share their memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueuedEvent {
    event: Arc<EncodedEvent>,
    /// Difference to the number of the event before on this connection: more than 1 where events
    /// were missed between them. Targeted events have no number.
    step: Option<u64>,
    /// The oldest of the events that it is sent in place of.
    since: Option<Arc<EncodedEvent>>,
}

/// A frame that is about to be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct OutboundFrame {
    pub(crate) text: FrameText,
    /// Size for which it counted in the queue, in bytes.
    pub(crate) bytes: usize,
}

impl QueuedFrame {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Event(waiting) => waiting.event.bytes(),
        }
    }
}

/// The queue and its accounts, without I/O.
#[derive(Debug, Default)]
pub(crate) struct OutboundQueue {
    queue: VecDeque<QueuedFrame>,
    /// Bytes in the queue and in the frame that is being written.
    bytes: usize,
    /// Number of the last event that was sent.
    last_seq: u64,
    /// Events that were missed since the last one that was queued.
    missed: u64,
    /// Payload of the client's last ping.
    ping: Option<Bytes>,
    closing: Option<Closing>,
    /// Bytes that the answers to clients who are behind may take, those of all such clients
    /// together. `None` before the client is admitted.
    room: Option<Arc<Semaphore>>,
}

/// Next step of the writer.
#[derive(Debug, PartialEq)]
pub(crate) enum OutboundStep {
    /// Write this, then report its size with [`OutboundQueue::written`].
    Write(OutboundFrame),
    /// Answer a ping that said this.
    Pong(Bytes),
    /// Everything before it is written: close.
    Close(Closing),
    /// Nothing to do yet.
    Wait,
}

impl OutboundQueue {
    fn push(&mut self, frame: QueuedFrame) {
        self.bytes += frame.bytes();
        self.queue.push_back(frame);
    }

    /// Queues a response.
    pub(crate) fn respond(&mut self, text: FrameText) {
        if self.closing.is_some() {
            return;
        }
        let fits = self.bytes.saturating_add(text.len()) <= HARD_BYTES;
        match self.in_room(text).filter(|_| fits) {
            Some(text) => self.push(QueuedFrame::Text(text)),
            None => self.close(Closing::policy("slow consumer")),
        }
    }

    /// Takes an answer's bytes from the room of all clients if this one is behind. They are given
    /// back when the answer was written, or the connection has ended. `None` if so much is not left.
    fn in_room(&self, text: FrameText) -> Option<FrameText> {
        let Some(room) = self.room.as_ref().filter(|_| self.bytes > BEHIND_BYTES) else { return Some(text) };
        // A large payload has its bytes from the budget of large answers.
        let large = Some(text.payload.len()).filter(|bytes| *bytes > SMALL as usize);
        let bytes = u32::try_from(text.len() - large.unwrap_or_default()).ok()?;
        let held = Arc::clone(room).try_acquire_many_owned(bytes).ok()?;
        Some(text.guarded_by(held))
    }

    /// Queues a numbered event, or drops it, or gives the client up.
    pub(crate) fn broadcast(&mut self, event: &Arc<EncodedEvent>) -> Pushed {
        let pushed = self.offer(event, Some(1 + self.missed));
        match pushed {
            Pushed::Queued => self.missed = 0,
            Pushed::Skipped => self.missed += 1,
            Pushed::Closed => {}
        }
        pushed
    }

    /// Queues an event without a number.
    pub(crate) fn target(&mut self, event: &Arc<EncodedEvent>) -> Pushed {
        self.offer(event, None)
    }

    fn offer(&mut self, event: &Arc<EncodedEvent>, step: Option<u64>) -> Pushed {
        if self.closing.is_some() {
            return Pushed::Closed;
        }
        let mut waiting = QueuedEvent { event: Arc::clone(event), step, since: None };
        if self.bytes > BEHIND_BYTES
            && let Some(step) = &mut waiting.step
            && let Some(older) = self.take_in(event)
        {
            *step += older.step.unwrap_or(1) - 1;
            waiting.since = Some(older.since.unwrap_or(older.event));
        }
        if self.bytes <= SLOW_BYTES {
            self.push(QueuedFrame::Event(waiting));
            return Pushed::Queued;
        }
        if event.droppable() {
            return Pushed::Skipped;
        }
        self.close(Closing::policy("slow consumer"));
        Pushed::Closed
    }

    /// Takes the event out of the queue that this one contains.
    fn take_in(&mut self, event: &EncodedEvent) -> Option<QueuedEvent> {
        let run = event.run()?;
        let of_run = self.queue.iter().enumerate().rev().filter_map(|(at, frame)| {
            let QueuedFrame::Event(QueuedEvent { event: older, step: Some(_), .. }) = frame else {
                return None;
            };
            (older.run()?.id == run.id).then_some((at, older))
        });
        // Other events that show this text say nothing that comes before or after.
        let same_text = |older: &EncodedEvent| older.run() == Some(run);
        let at = of_run.take_while(|(_, older)| same_text(older)).find(|(_, older)| event.contains(older))?.0;
        match self.queue.remove(at)? {
            QueuedFrame::Event(older) => {
                self.bytes -= older.event.bytes();
                Some(older)
            }
            QueuedFrame::Text(_) => None,
        }
    }

    /// Closes after the queued frames; the first reason stays.
    pub(crate) fn close(&mut self, closing: Closing) {
        self.closing.get_or_insert(closing);
    }

    /// Notes a ping. Only the last one is answered (RFC 6455 §5.5.3).
    fn pinged(&mut self, data: Bytes) {
        self.ping = Some(data);
    }

    pub(crate) fn next(&mut self) -> OutboundStep {
        if let Some(data) = self.ping.take() {
            return OutboundStep::Pong(data);
        }
        match (self.queue.pop_front(), &self.closing) {
            (Some(frame), _) => {
                let bytes = frame.bytes();
                let text = match frame {
                    QueuedFrame::Text(text) => text,
                    QueuedFrame::Event(QueuedEvent { event, step, since }) => {
                        let seq = step.map(|step| self.count(step));
                        since.map_or_else(|| event.text(seq), |older| event.text_since(&older, seq))
                    }
                };
                OutboundStep::Write(OutboundFrame { text, bytes })
            }
            (None, Some(closing)) => OutboundStep::Close(closing.clone()),
            (None, None) => OutboundStep::Wait,
        }
    }

    fn count(&mut self, step: u64) -> u64 {
        self.last_seq += step;
        self.last_seq
    }

    /// A frame left for the network.
    pub(crate) fn written(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// True if more answers wait than a client may leave unread for long.
    fn owes_answers(&self) -> bool {
        let answers = self.queue.iter().map(|frame| match frame {
            QueuedFrame::Text(text) => text.len(),
            QueuedFrame::Event(_) => 0,
        });
        answers.sum::<usize>() > BEHIND_BYTES
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.bytes > SLOW_BYTES
    }
}

/// The queue of one connection, shared between those who send and its writer.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    backlog: Mutex<OutboundQueue>,
    /// Notifies that a frame was queued or the connection is to close.
    filled: Notify,
    /// Notifies that a frame was written.
    drained: Notify,
    closing: tokio_util::sync::CancellationToken,
}

impl Outbound {
    /// Sets the room that answers take from while the client is behind.
    pub(crate) fn share_room(&self, room: Arc<Semaphore>) {
        self.backlog.lock().room = Some(room);
    }

    /// True if more answers wait than a client may leave unread for long.
    pub(crate) fn owes_answers(&self) -> bool {
        self.backlog.lock().owes_answers()
    }

    pub(crate) fn respond(&self, text: FrameText) {
        self.update(|backlog| backlog.respond(text));
    }

    pub(crate) fn broadcast(&self, event: &Arc<EncodedEvent>) -> Pushed {
        self.update(|backlog| backlog.broadcast(event))
    }

    pub(crate) fn target(&self, event: &Arc<EncodedEvent>) -> Pushed {
        self.update(|backlog| backlog.target(event))
    }

    pub(crate) fn close(&self, closing: Closing) {
        self.update(|backlog| backlog.close(closing));
    }

    /// The client sent a ping.
    pub(crate) fn pinged(&self, data: Bytes) {
        self.update(|backlog| backlog.pinged(data));
    }

    /// Closes without the queued frames: the socket is gone, or the client has closed it. Tasks
    /// that wait for the close learn of it.
    pub(crate) fn hang_up(&self, closing: Closing) {
        self.update(|backlog| {
            backlog.close(closing);
            backlog.queue.clear();
        });
    }

    fn update<T>(&self, change: impl FnOnce(&mut OutboundQueue) -> T) -> T {
        let mut backlog = self.backlog.lock();
        let result = change(&mut backlog);
        let is_closing = backlog.closing.is_some();
        drop(backlog);
        if is_closing {
            self.closing.cancel();
        }
        self.filled.notify_one();
        result
    }

    /// The writer's next step, if there is one now.
    pub(crate) fn take(&self) -> OutboundStep {
        self.backlog.lock().next()
    }

    /// Waits for the writer's next step. For the one writer.
    pub(crate) async fn next(&self) -> OutboundStep {
        loop {
            let next = self.take();
            if next != OutboundStep::Wait {
                return next;
            }
            self.filled.notified().await;
        }
    }

    pub(crate) fn written(&self, bytes: usize) {
        self.backlog.lock().written(bytes);
        self.drained.notify_one();
    }

    /// Waits until the client has read enough for us to take more of its requests. For the one reader.
    pub(crate) async fn has_room(&self) {
        while self.backlog.lock().is_slow() {
            self.drained.notified().await;
        }
    }

    /// Resolves as soon as the connection is to be closed.
    pub(crate) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }
}

#[cfg(test)]
mod tests;
