//! The desk of one conversation: decides about what happens there, in the order in which it happened.
//!
//! What was let in waits here for what belongs to it (albums, cut texts, what is typed at once), then for its files. A message that asks to
//! stop waits for nothing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_channels::Address;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::desks::{Desks, Letter, Waiting};
use super::gate::{Admitted, Verdict};
use super::{Fate, decide, gate, handover, press};
use crate::incoming::debounce::Machine;
use crate::shared::Shared;

/// How long an idle desk waits for more. It takes 7 KB, and another one is begun in microseconds.
const LINGER: Duration = Duration::from_secs(1);

/// One conversation's.
pub(super) struct Desk {
    at: Address,
    desks: Arc<Desks>,
    mailbox: mpsc::UnboundedReceiver<Letter>,
    /// What waits for more of the same.
    gathering: Machine<Admitted>,
    /// Messages that wait for the one before.
    ready: VecDeque<Vec<Admitted>>,
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
    Due,
    Idle,
    Stop,
}

impl Desk {
    pub(super) fn new(at: Address, desks: Arc<Desks>, mailbox: mpsc::UnboundedReceiver<Letter>) -> Self {
        Self { at, desks, mailbox, gathering: Machine::default(), ready: VecDeque::new(), current: None }
    }

    /// Works until nothing is left to do, or the gateway stops: what is not decided about then is taken up by the next start.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Step::Came(letter) => {
                    if let Some(waiting) = self.desks.open(letter).await {
                        self.on_arrival(waiting).await;
                    }
                }
                Step::HandedOver => self.current = None,
                Step::Due => {
                    let gathered = self.gathering.tick(Instant::now());
                    self.ready.extend(gathered);
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
        self.current.is_none() && self.ready.is_empty() && self.gathering.due().is_none()
    }

    async fn next(&mut self) -> Step {
        let stopping = self.shared().stopping.clone();
        let (due, is_empty) = (self.gathering.due(), self.is_empty());
        tokio::select! { biased;
            () = stopping.cancelled() => Step::Stop,
            letter = self.mailbox.recv() => letter.map_or(Step::Stop, Step::Came),
            () = over(self.current.as_mut()) => Step::HandedOver,
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => Step::Due,
            () = tokio::time::sleep(LINGER), if is_empty => Step::Idle,
        }
    }

    fn begin_next(&mut self) {
        if self.current.is_some() {
            return;
        }
        let Some(said) = self.ready.pop_front() else { return };
        let cancel = CancellationToken::new();
        let work = Box::pin(handover::work(self.desks.dispatch.clone(), said, cancel.clone()));
        self.current = Some(Current { work, cancel });
    }

    async fn on_arrival(&mut self, waiting: Waiting) {
        let number = waiting.number;
        let verdict = gate::judge(&self.desks.dispatch, waiting).await;
        match verdict {
            Verdict::Decided(fate) => decide(self.shared(), &[number], fate).await,
            Verdict::Admitted(admitted) if admitted.is_stop() => self.stop(*admitted).await,
            Verdict::Admitted(admitted) if admitted.press().is_some() => {
                press::turn(&self.desks.dispatch, &admitted).await;
                decide(self.shared(), &[number], Fate::handled("button")).await;
            }
            Verdict::Admitted(admitted) => {
                let now = Instant::now();
                let (key, policy) = (admitted.gathering_key(), admitted.gathering());
                let piece = admitted.piece();
                let gathered = self.gathering.push(now, &key, policy, piece, *admitted);
                self.ready.extend(gathered);
            }
        }
    }

    /// Everything that was said before in the same session is stopped, whether it has reached it or not.
    async fn stop(&mut self, admitted: Admitted) {
        let key = &admitted.route.session_key;
        self.ready.extend(self.gathering.flush());
        let is_stopped = |said: &Vec<Admitted>| said.iter().any(|one| one.route.session_key == *key);
        let (stopped, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.ready).into_iter().partition(is_stopped);
        self.ready = others;
        let numbers: Vec<i64> = stopped.iter().flatten().map(|one| one.number).collect();
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
