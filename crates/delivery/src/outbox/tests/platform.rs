//! A chat platform with a script.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{
    Address, ChannelFuture, OutgoingPart, PartFate, RateTurn, Receipt, Repeats, SendAttempt, SendError,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::testing::send_only::Sends;

/// Note of a file that is refused.
pub(super) const NOTE: &str = "(file x.png was not sent: no such file)";

/// Reaction of the platform to a request; without a script it takes the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Take,
    Refuse(SendError),
    /// Shows the message, and breaks the connection.
    TakeThenSilence,
    /// Shows the message, and never answers.
    TakeThenHang,
    /// Shows the message, and answers when the test says so.
    TakeThenWait,
    TakeThenPanic,
    /// Shows nothing, and never answers.
    Hang,
}

/// Facts that can be learnt from the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knows {
    /// Recognises a repeated id.
    Ids,
    /// Can be asked what it shows.
    Contents,
    Nothing,
}

pub(super) struct Platform {
    knows: Knows,
    state: Mutex<State>,
    requests: watch::Sender<usize>,
    release: Notify,
    /// Time that each conversation that has to wait for its turn still waits.
    turns: Mutex<HashMap<String, Duration>>,
    turns_asked: watch::Sender<usize>,
    /// Time that it grants a request.
    limit: Mutex<Duration>,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    /// Reply to each request for a conversation.
    dead: HashMap<String, Reply>,
    /// Target, id and shown text of each message.
    shown: Vec<(String, String, String)>,
}

impl Platform {
    pub(super) fn new(knows: Knows, script: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let state = State { script: script.into_iter().collect(), ..State::default() };
        let (requests, _) = watch::channel(0);
        let (turns, turns_asked) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(Self {
            knows,
            state: Mutex::new(state),
            requests,
            release: Notify::new(),
            turns,
            turns_asked,
            limit: Mutex::default(),
        })
    }

    /// Sets the time that one request may take.
    pub(super) fn grants(&self, limit: Duration) {
        *self.limit.lock() = limit;
    }

    /// Sets the time that a conversation waits for its turn; `None` for no wait.
    pub(super) fn holds(&self, target: &str, wait: Option<Duration>) {
        let mut turns = self.turns.lock();
        match wait {
            Some(wait) => drop(turns.insert(target.to_owned(), wait)),
            None => drop(turns.remove(target)),
        }
    }

    /// Waits until conversations that have to wait were asked for so often.
    pub(super) async fn turn_asked(&self, count: usize) {
        self.turns_asked.subscribe().wait_for(|asked| *asked >= count).await.unwrap();
    }

    pub(super) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.lock().script.extend(replies);
    }

    /// Makes the platform take everything from now on.
    pub(super) fn clear_script(&self) {
        self.state.lock().script.clear();
    }

    /// Sets the reply to each request for a conversation; `None` for the usual one.
    pub(super) fn answers_in(&self, target: &str, reply: Option<Reply>) {
        let mut state = self.state.lock();
        match reply {
            Some(reply) => drop(state.dead.insert(target.to_owned(), reply)),
            None => drop(state.dead.remove(target)),
        }
    }

    /// Messages that the people in a chat see.
    pub(super) fn shown_in(&self, target: &str) -> Vec<String> {
        let state = self.state.lock();
        let here = state.shown.iter().filter(|(where_to, ..)| where_to == target);
        here.map(|(_, _, text)| text.clone()).collect()
    }

    pub(super) fn requests(&self) -> usize {
        *self.requests.borrow()
    }

    /// Waits until there were so many requests.
    pub(super) async fn asked(&self, count: usize) {
        self.requests.subscribe().wait_for(|requests| *requests >= count).await.unwrap();
    }

    pub(super) fn release(&self) {
        self.release.notify_one();
    }

    fn show(&self, delivery: OutgoingPart<'_>, attempt: SendAttempt) {
        let mut state = self.state.lock();
        let known = state.shown.iter().any(|(_, id, _)| id == delivery.id);
        if known && self.knows == Knows::Ids {
            return;
        }
        let words = delivery.part.words().unwrap_or_default();
        // Long texts are only there to take room.
        let own = format!("text of {}", delivery.id);
        let is_noted = words == format!("{own}\n\n{NOTE}");
        let is_note = words == NOTE;
        assert!(words.len() > 1_000 || words == own || is_noted || is_note, "{words}");
        assert_eq!(delivery.address.thread.as_deref(), Some("7"));
        let mut text = delivery.id.to_owned();
        if is_noted {
            text.push_str(" (noted)");
        }
        if is_note {
            text.push_str(" (note)");
        }
        if attempt.late {
            text.push_str(" (late)");
        }
        if attempt.may_repeat {
            text.push_str(" (again)");
        }
        state.shown.push((delivery.address.target.clone(), delivery.id.to_owned(), text));
    }
}

fn receipt(delivery: OutgoingPart<'_>) -> Receipt {
    Receipt { message_ids: vec![format!("id-of-{}", delivery.id)], ..Receipt::default() }
}

impl Sends for Platform {
    fn repeats(&self) -> Repeats {
        match self.knows {
            Knows::Ids => Repeats::Recognised,
            Knows::Contents | Knows::Nothing => Repeats::Doubled,
        }
    }

    fn turn(&self, at: &Address) -> RateTurn {
        match self.turns.lock().get(&at.target) {
            Some(wait) => {
                self.turns_asked.send_modify(|asked| *asked += 1);
                RateTurn::After(*wait)
            }
            None => RateTurn::Now,
        }
    }

    fn request_limit(&self) -> Duration {
        *self.limit.lock()
    }

    fn send<'a>(
        &'a self,
        delivery: OutgoingPart<'a>,
        attempt: SendAttempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>> {
        Box::pin(async move {
            let reply = {
                let mut state = self.state.lock();
                let dead = state.dead.get(&delivery.address.target).cloned();
                dead.or_else(|| state.script.pop_front()).unwrap_or(Reply::Take)
            };
            match reply {
                Reply::Refuse(_) | Reply::Hang => {}
                _ => self.show(delivery, attempt),
            }
            self.requests.send_modify(|requests| *requests += 1);
            match reply {
                Reply::Take => Ok(receipt(delivery)),
                Reply::Refuse(error) => Err(error),
                Reply::TakeThenSilence => Err(SendError::Uncertain { reason: "connection reset".to_owned() }),
                Reply::TakeThenHang | Reply::Hang => std::future::pending().await,
                Reply::TakeThenPanic => panic!("a bug of the channel"),
                Reply::TakeThenWait => {
                    self.release.notified().await;
                    Ok(receipt(delivery))
                }
            }
        })
    }

    fn confirm<'a>(&'a self, delivery: OutgoingPart<'a>) -> ChannelFuture<'a, Result<PartFate, SendError>> {
        Box::pin(async move {
            if self.knows == Knows::Nothing {
                return Ok(PartFate::Unknown);
            }
            let there = self.state.lock().shown.iter().any(|(_, id, _)| id == delivery.id);
            Ok(if there { PartFate::Sent(receipt(delivery)) } else { PartFate::NotSent })
        })
    }
}
