//! The desk of one conversation: decides about its events in the order in which they happened.
//!
//! Messages that were let in wait here for what belongs to them (albums, cut texts, texts typed in
//! quick succession), then for their files. In a group, the desk decides whether a message speaks
//! to the agent once it is whole ([`whole`]). A message that asks to stop waits for nothing: every
//! event is looked at as it comes, and events without room are left in the inbox
//! ([`backlog`](super::backlog)).

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::parts::ArrivalParts;
use openclaw_channels::Address;
use openclaw_delivery::incoming::debounce::{Gather, Machine};
use openclaw_sessions::key::SessionKey;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::backlog::{BacklogSession, Behind, DeskQueue, Gathering};
use super::desks::{Desks, Letter, LetterContent, UndecidedEvent};
use super::gate::{Admitted, GateOutcome};
use super::whole::{self, Whole};
use super::{Fate, decide, gate, handover, press};

/// Time for which an idle desk waits for more. A desk takes 7 KB, and starting another takes
/// microseconds.
const LINGER: Duration = Duration::from_secs(1);

/// Pause before an inbox that could not be read is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The desk of one conversation.
pub(super) struct Desk {
    at: Address,
    desks: Arc<Desks>,
    mailbox: mpsc::UnboundedReceiver<Letter>,
    /// Messages that wait for more of the same.
    gathering: Machine<Admitted>,
    /// Messages that wait for the one before.
    backlog: DeskQueue<Admitted, SessionKey>,
    /// Time before which the inbox is not asked for more.
    ask_at: Instant,
    /// Message that is being handed over.
    current: Option<Current>,
}

/// A message on its way to its session.
struct Current {
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Cancels the handover while it waits; a message that is accepted already stays.
    cancel: CancellationToken,
}

enum DeskStep {
    Came(Letter),
    HandedOver,
    /// Room is free for messages that were left in the inbox.
    Room,
    Due,
    Idle,
    Stop,
}

impl Desk {
    pub(super) fn new(at: Address, desks: Arc<Desks>, mailbox: mpsc::UnboundedReceiver<Letter>) -> Self {
        let (gathering, backlog) = (Machine::default(), DeskQueue::default());
        Self { at, desks, mailbox, gathering, backlog, ask_at: Instant::now(), current: None }
    }

    /// Works until no work is left, or the gateway stops: events that are undecided by then are
    /// taken up by the next start.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                DeskStep::Came(letter) => self.open(letter).await,
                DeskStep::Room => self.take_from_the_inbox().await,
                DeskStep::HandedOver => self.current = None,
                DeskStep::Due => self.on_due().await,
                DeskStep::Idle if self.is_empty() && self.desks.retire(&self.at, &self.mailbox) => return,
                DeskStep::Idle => {}
                DeskStep::Stop => return,
            }
            self.begin_next();
        }
    }

    fn arrivals(&self) -> &ArrivalParts {
        self.desks.dispatch.arrivals()
    }

    fn is_empty(&self) -> bool {
        self.has_nothing_in_memory() && !self.backlog.has_behind()
    }

    fn has_nothing_in_memory(&self) -> bool {
        self.current.is_none() && self.backlog.has_nothing_ready() && self.gathering.due().is_none()
    }

    /// True if one more message may be kept in memory: it has a permit of the limit over all desks,
    /// or this desk has nothing else or waits for it.
    fn has_room(&self, has_part: bool) -> bool {
        let gathering =
            Gathering { held: self.gathering.message_count(), holds_a_part: self.gathering.holds_a_part() };
        let is_needed = gathering.holds_a_part || self.has_nothing_in_memory();
        self.backlog.has_room(gathering) && (has_part || is_needed)
    }

    async fn next(&mut self) -> DeskStep {
        let stopping = self.arrivals().stopping.clone();
        let (due, is_empty) = (self.gathering.due(), self.is_empty());
        let has_room = self.backlog.has_behind() && self.has_room(self.desks.has_room_in_memory());
        let ask_at = self.ask_at;
        // Whoever speaks without end does not keep what they said before from being handed over.
        let step = async {
            tokio::select! {
                letter = self.mailbox.recv() => letter.map_or(DeskStep::Stop, DeskStep::Came),
                () = over(self.current.as_mut()) => DeskStep::HandedOver,
                () = tokio::time::sleep_until(ask_at.into()), if has_room => DeskStep::Room,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => DeskStep::Due,
                () = tokio::time::sleep(LINGER), if is_empty => DeskStep::Idle,
            }
        };
        tokio::select! { biased;
            () = stopping.cancelled() => DeskStep::Stop,
            step = step => step,
        }
    }

    fn begin_next(&mut self) {
        if self.current.is_some() {
            return;
        }
        let Some(said) = self.backlog.next() else { return };
        let cancel = CancellationToken::new();
        let work = Box::pin(handover::work(self.desks.dispatch.clone(), said, cancel.clone()));
        self.current = Some(Current { work, cancel });
    }

    async fn open(&mut self, Letter { at, content }: Letter) {
        match content {
            LetterContent::Whole(waiting) => self.on_arrival(*waiting, at).await,
            LetterContent::Stored(number) => match self.desks.read(number).await {
                Ok(Some(waiting)) => self.on_arrival(waiting, at).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(number, %error, "an event of a platform can't be read; it is read later");
                    self.backlog.leave_unread(number);
                    self.ask_at = Instant::now() + ASK_AGAIN;
                }
            },
        }
    }

    /// Hands over groups that have waited for long enough. Letters that are here by now are opened
    /// first, because a part of an album may lie behind a stop that took a while; no more than
    /// those, so that a sender who goes on writing can't hold it up.
    async fn on_due(&mut self) {
        let now = Instant::now();
        for _ in 0..self.mailbox.len() {
            let Ok(letter) = self.mailbox.try_recv() else { break };
            self.open(letter).await;
        }
        let gathered = self.gathering.tick(now);
        self.complete(gathered).await;
    }

    /// Handles a new event. An event that can't be kept now is judged once more when there is room,
    /// like one that waits for the next start.
    async fn on_arrival(&mut self, waiting: UndecidedEvent, at: Instant) {
        let number = waiting.number;
        let Some(admitted) = self.judged(waiting).await else { return };
        if admitted.is_stop() {
            // Messages left in the inbox were said before it.
            let numbers = self.backlog.stop_behind(&admitted.route.session_key);
            return self.stop(admitted, numbers).await;
        }
        let has_part = admitted.in_memory.is_some();
        if !self.backlog.has_behind() && !self.has_room(has_part) {
            // Messages that address nobody must not keep others waiting.
            let left_out = self.gathering.take_ready(whole::is_left_out);
            self.complete(left_out).await;
        }
        let is_kept = !self.backlog.has_behind() && self.has_room(has_part);
        if !is_kept && admitted.is_left_out() && !self.may_belong(&admitted) {
            self.complete(vec![vec![admitted]]).await;
        } else if is_kept {
            self.gather(admitted, at).await;
        } else {
            let goes_on = (admitted.gathering() == Gather::GoesOn).then(|| admitted.gathering_key());
            // The message does not address a session yet that could be stopped.
            let session = match admitted.is_left_out() {
                true => BacklogSession::Nobody,
                false => BacklogSession::Known(admitted.route.session_key),
            };
            self.backlog.leave(Behind { number, session, goes_on });
        }
    }

    /// True if the message may belong to an earlier or a later one.
    fn may_belong(&self, admitted: &Admitted) -> bool {
        match admitted.gathering() {
            Gather::Alone => false,
            Gather::Text(window) if window.is_zero() => {
                let sender = admitted.gathering_key();
                self.gathering.awaits(&sender) || self.backlog.awaits(&sender)
            }
            Gather::Text(_) | Gather::Album(_) | Gather::GoesOn => true,
        }
    }

    /// Takes the next message up that was left in the inbox.
    async fn take_from_the_inbox(&mut self) {
        let Some(number) = self.backlog.next_behind() else { return };
        let waiting = match self.desks.read(number).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::error!(number, %error, "an event of a platform can't be read; it is read later");
                self.ask_at = Instant::now() + ASK_AGAIN;
                return;
            }
        };
        let behind = self.backlog.came();
        let Some(waiting) = waiting else { return };
        let Some(admitted) = self.judged(waiting).await else { return };
        if behind.is_some_and(|behind| behind.was_stopped(&admitted.route.session_key)) {
            return decide(self.arrivals(), &[number], Fate::handled("stopped")).await;
        }
        // Settings may have changed since it was left there; what is behind it was said later.
        if admitted.is_stop() {
            self.stop(admitted, Vec::new()).await
        } else {
            self.gather(admitted, Instant::now()).await
        }
    }

    /// Judges a message. Returns it if it is for a session; any other event gets its fate.
    async fn judged(&mut self, waiting: UndecidedEvent) -> Option<Admitted> {
        let number = waiting.number;
        let admitted = match gate::judge(&self.desks.dispatch, waiting).await {
            GateOutcome::Decided(fate) => {
                decide(self.arrivals(), &[number], fate).await;
                return None;
            }
            GateOutcome::Edited { message_id, text } => {
                self.reword(&message_id, &text);
                decide(self.arrivals(), &[number], Fate::handled("edited")).await;
                return None;
            }
            GateOutcome::Admitted(admitted) => *admitted,
        };
        if admitted.press().is_some() && !admitted.is_stop() {
            press::turn(&self.desks.dispatch, &admitted).await;
            decide(self.arrivals(), &[number], Fate::handled("button")).await;
            return None;
        }
        Some(admitted)
    }

    /// Applies an edit. Messages that are not handed over yet get the new words; those that stay in
    /// the inbox were changed there.
    fn reword(&mut self, message_id: &str, text: &str) {
        let kept = self.gathering.held_mut().chain(self.backlog.ready_mut());
        let is_it = |one: &Admitted| one.message().is_some_and(|message| message.message_id == message_id);
        for one in kept.filter(|one| is_it(one)) {
            one.edit(text);
        }
    }

    async fn gather(&mut self, admitted: Admitted, at: Instant) {
        let (key, policy, piece) = (admitted.gathering_key(), admitted.gathering(), admitted.piece());
        let gathered = self.gathering.push(at, &key, policy, piece, admitted);
        self.complete(gathered).await;
    }

    /// Queues complete messages that speak to the agent. Of the others each event gets its own
    /// fate.
    async fn complete(&mut self, gathered: Vec<Vec<Admitted>>) {
        for parts in gathered {
            match whole::settle(parts) {
                Whole::Said(parts) => self.backlog.extend([parts]),
                Whole::LeftOut(fates) => {
                    for (fate, numbers) in fates {
                        decide(self.arrivals(), &numbers, fate).await;
                    }
                }
            }
        }
    }

    /// Stops every earlier message of the same session, whether it has reached the session or not.
    /// Incomplete messages of others that do not address the agent so far go on.
    async fn stop(&mut self, admitted: Admitted, mut numbers: Vec<i64>) {
        let gathered = self.gathering.flush(&admitted.gathering_key(), |parts| !whole::is_left_out(parts));
        self.complete(gathered).await;
        let key = &admitted.route.session_key;
        numbers.extend(self.backlog.stop_ready(key, |one| (&one.route.session_key, one.number)));
        if !numbers.is_empty() {
            decide(self.arrivals(), &numbers, Fate::handled("stopped")).await;
        }
        if let Some(current) = self.current.take() {
            current.cancel.cancel();
            current.work.await;
        }
        handover::stop(&self.desks.dispatch, admitted).await;
    }
}

async fn over(current: Option<&mut Current>) {
    match current {
        Some(current) => current.work.as_mut().await,
        None => std::future::pending().await,
    }
}
