//! The desk of one conversation: decides about what happens there, in the order in which it happened.
//!
//! What was let in waits here for what belongs to it (albums, cut texts, what is typed at once), then for its files. In a group, whether it
//! speaks to the agent is decided once it is whole ([`whole`]). A message that asks to stop waits for nothing: all that comes is looked at
//! as it comes, and what has no room is left in the inbox ([`backlog`](super::backlog)).

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_channels::Address;
use openclaw_sessions::key::SessionKey;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, Behind, Gathering, Session};
use super::desks::{Desks, Letter, Waiting};
use super::gate::{Admitted, Verdict};
use super::whole::{self, Whole};
use super::{Fate, decide, gate, handover, press};
use crate::incoming::debounce::{Gather, Machine};
use crate::shared::Shared;

/// How long an idle desk waits for more. It takes 7 KB, and another one is begun in microseconds.
const LINGER: Duration = Duration::from_secs(1);

/// After how long the inbox is asked again that could not be read.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// One conversation's.
pub(super) struct Desk {
    at: Address,
    desks: Arc<Desks>,
    mailbox: mpsc::UnboundedReceiver<Letter>,
    /// What waits for more of the same.
    gathering: Machine<Admitted>,
    /// Messages that wait for the one before.
    backlog: Backlog<Admitted, SessionKey>,
    /// Before that the inbox is not asked for more.
    ask_at: Instant,
    /// The one that is handed over.
    current: Option<Current>,
}

/// A message on its way to its session.
struct Current {
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Ends it where it waits; what is accepted already stays.
    cancel: CancellationToken,
}

enum Step {
    Came(Letter),
    HandedOver,
    /// There is room for what was left in the inbox.
    Room,
    Due,
    Idle,
    Stop,
}

impl Desk {
    pub(super) fn new(at: Address, desks: Arc<Desks>, mailbox: mpsc::UnboundedReceiver<Letter>) -> Self {
        let (gathering, backlog) = (Machine::default(), Backlog::default());
        Self { at, desks, mailbox, gathering, backlog, ask_at: Instant::now(), current: None }
    }

    /// Works until nothing is left to do, or the gateway stops: what is not decided about then is taken up by the next start.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Step::Came(Letter::Whole(waiting)) => self.on_arrival(*waiting).await,
                Step::Came(Letter::Stored(number)) => match self.desks.read(number).await {
                    Ok(Some(waiting)) => self.on_arrival(waiting).await,
                    Ok(None) => {}
                    Err(error) => {
                        tracing::error!(number, %error, "an event of a platform can't be read; it is read later");
                        self.backlog.leave_unread(number);
                        self.ask_at = Instant::now() + ASK_AGAIN;
                    }
                },
                Step::Room => self.take_from_the_inbox().await,
                Step::HandedOver => self.current = None,
                Step::Due => {
                    let gathered = self.gathering.tick(Instant::now());
                    self.complete(gathered).await;
                }
                Step::Idle if self.is_empty() && self.desks.retire(&self.at, &self.mailbox) => return,
                Step::Idle => {}
                Step::Stop => return,
            }
            self.begin_next();
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        self.desks.dispatch.shared()
    }

    fn is_empty(&self) -> bool {
        self.has_nothing_in_memory() && !self.backlog.has_behind()
    }

    fn has_nothing_in_memory(&self) -> bool {
        self.current.is_none() && self.backlog.has_nothing_ready() && self.gathering.due().is_none()
    }

    /// Whether one more may be kept in memory: it has a part of what all desks may keep, or this one has nothing else, or waits for it.
    fn has_room(&self, has_part: bool) -> bool {
        let gathering = Gathering { held: self.gathering.len(), holds_a_part: self.gathering.holds_a_part() };
        let is_needed = gathering.holds_a_part || self.has_nothing_in_memory();
        self.backlog.has_room(gathering) && (has_part || is_needed)
    }

    async fn next(&mut self) -> Step {
        let stopping = self.shared().stopping.clone();
        let (due, is_empty) = (self.gathering.due(), self.is_empty());
        let has_room = self.backlog.has_behind() && self.has_room(self.desks.has_room_in_memory());
        let ask_at = self.ask_at;
        // Whoever speaks without end does not keep what they said before from being handed over.
        let step = async {
            tokio::select! {
                letter = self.mailbox.recv() => letter.map_or(Step::Stop, Step::Came),
                () = over(self.current.as_mut()) => Step::HandedOver,
                () = tokio::time::sleep_until(ask_at.into()), if has_room => Step::Room,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => Step::Due,
                () = tokio::time::sleep(LINGER), if is_empty => Step::Idle,
            }
        };
        tokio::select! { biased;
            () = stopping.cancelled() => Step::Stop,
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

    /// Something has come. What can't be kept now is judged once more when there is room, as what waits for the next start is.
    async fn on_arrival(&mut self, waiting: Waiting) {
        let number = waiting.number;
        let Some(admitted) = self.judged(waiting).await else { return };
        if admitted.is_stop() {
            // What was left in the inbox was said before it.
            let numbers = self.backlog.stop_behind(&admitted.route.session_key);
            return self.stop(admitted, numbers).await;
        }
        let has_part = admitted.in_memory.is_some();
        if !self.backlog.has_behind() && !self.has_room(has_part) {
            // Nobody is kept waiting by what nobody is spoken to with.
            let left_out = self.gathering.take_ready(whole::is_left_out);
            self.complete(left_out).await;
        }
        let is_kept = !self.backlog.has_behind() && self.has_room(has_part);
        if !is_kept && admitted.is_left_out() && !self.may_belong(&admitted) {
            self.complete(vec![vec![admitted]]).await;
        } else if is_kept {
            self.gather(admitted).await;
        } else {
            let goes_on = (admitted.gathering() == Gather::GoesOn).then(|| admitted.gathering_key());
            // It does not yet speak to a session that could be stopped.
            let session = match admitted.is_left_out() {
                true => Session::Nobody,
                false => Session::Known(admitted.route.session_key),
            };
            self.backlog.leave(Behind { number, session, goes_on });
        }
    }

    /// Whether something may belong to what was said before or is said next.
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
            return decide(self.shared(), &[number], Fate::handled("stopped")).await;
        }
        // Settings may have changed since it was left there; what is behind it was said later.
        if admitted.is_stop() { self.stop(admitted, Vec::new()).await } else { self.gather(admitted).await }
    }

    /// A message that is for a session; what is none is decided about.
    async fn judged(&mut self, waiting: Waiting) -> Option<Admitted> {
        let number = waiting.number;
        let admitted = match gate::judge(&self.desks.dispatch, waiting).await {
            Verdict::Decided(fate) => {
                decide(self.shared(), &[number], fate).await;
                return None;
            }
            Verdict::Edited { message_id, text } => {
                self.reword(&message_id, &text);
                decide(self.shared(), &[number], Fate::handled("edited")).await;
                return None;
            }
            Verdict::Admitted(admitted) => *admitted,
        };
        if admitted.press().is_some() && !admitted.is_stop() {
            press::turn(&self.desks.dispatch, &admitted).await;
            decide(self.shared(), &[number], Fate::handled("button")).await;
            return None;
        }
        Some(admitted)
    }

    /// A message has other words now. What is not handed over yet is answered as it is now; what stays in the inbox was changed there.
    fn reword(&mut self, message_id: &str, text: &str) {
        let kept = self.gathering.held_mut().chain(self.backlog.ready_mut());
        let is_it = |one: &Admitted| one.message().is_some_and(|message| message.message_id == message_id);
        for one in kept.filter(|one| is_it(one)) {
            one.edit(text);
        }
    }

    async fn gather(&mut self, admitted: Admitted) {
        let (key, policy, piece) = (admitted.gathering_key(), admitted.gathering(), admitted.piece());
        let gathered = self.gathering.push(Instant::now(), &key, policy, piece, admitted);
        self.complete(gathered).await;
    }

    /// What is whole waits to be handed over where it speaks to the agent. Of the rest each event has its own fate.
    async fn complete(&mut self, gathered: Vec<Vec<Admitted>>) {
        for parts in gathered {
            match whole::settle(parts) {
                Whole::Said(parts) => self.backlog.extend([parts]),
                Whole::LeftOut(fates) => {
                    for (fate, numbers) in fates {
                        decide(self.shared(), &numbers, fate).await;
                    }
                }
            }
        }
    }

    /// Everything that was said before in the same session is stopped, whether it has reached it or not. What others have said by halves,
    /// and not to the agent so far, goes on.
    async fn stop(&mut self, admitted: Admitted, mut numbers: Vec<i64>) {
        let gathered = self.gathering.flush(&admitted.gathering_key(), |parts| !whole::is_left_out(parts));
        self.complete(gathered).await;
        let key = &admitted.route.session_key;
        numbers.extend(self.backlog.stop_ready(key, |one| (&one.route.session_key, one.number)));
        if !numbers.is_empty() {
            decide(self.shared(), &numbers, Fate::handled("stopped")).await;
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
