//! People who write to the bot, and what they have said.

use std::collections::BTreeSet;

use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::telegram::{CallFault, TelegramServer, group_message, private_message};

/// People who write in private, in bursts.
const PEOPLE: i64 = 12;
const GROUP: i64 = -100;
/// Telegram takes twenty messages a minute in each.
const GROUPS: i64 = 8;
/// The platform's id of the first message.
const FIRST_ID: usize = 10_000;

/// The last digits of what begins a burst: the model calls a tool or answers slowly, so that what is said behind it meets the run.
const FIRST: [usize; 6] = [1, 2, 2, 4, 4, 7];
/// The last digits of what often comes behind it: it has words before a call, or is answered by the tool, or slowly.
const BEHIND: [usize; 4] = [2, 4, 7, 9];

/// Content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageWords {
    /// A numbered message.
    Numbered,
    /// `/stop`
    Stop,
    /// `/new`
    New,
}

/// A message that the platform brought.
#[derive(Debug, Clone)]
pub(super) struct PlatformMessage {
    pub(super) chat: i64,
    pub(super) words: MessageWords,
    /// Platform's id of the message.
    pub(super) message_id: String,
    /// Number of the run in its words.
    pub(super) run: String,
}

/// Writers to the bot, all of them.
#[derive(Debug, Default)]
pub(super) struct People {
    pub(super) said: Vec<PlatformMessage>,
    /// Chats whose messages the platform brought in another order.
    pub(super) reordered: BTreeSet<i64>,
    /// Updates sent lately, to be sent again.
    lately: Vec<Value>,
}

impl People {
    /// Some people say something; now and then the platform brings it twice, or in another order.
    /// The returned messages are said a moment later, in this order: they meet the run of the first
    /// ones.
    pub(super) fn write(&mut self, server: &TelegramServer, chance: &mut StdRng) -> Vec<Value> {
        let count = chance.random_range(1..=4);
        let burst = chance.random_bool(0.5).then(|| chance.random_range(1..=PEOPLE));
        let mut updates: Vec<Value> = (0..count).map(|at| self.message(burst, at, chance)).collect();
        if chance.random_bool(0.15) {
            let chat = chance.random_range(1..=PEOPLE);
            let words = if chance.random_bool(0.7) { MessageWords::Stop } else { MessageWords::New };
            updates.push(self.say(chat, words, 0));
        }
        let has_pauses = burst.is_some() && chance.random_bool(0.7);
        let later = if has_pauses { updates.split_off(1) } else { Vec::new() };
        for update in &updates {
            let mut brought = update.clone();
            brought["update_id"] = json!(server.push(update.clone()));
            if chance.random_bool(0.1) {
                // At once, before those that were said before it.
                server.push_again(brought.clone());
                self.reordered.extend(brought["message"]["chat"]["id"].as_i64());
            }
            self.lately.push(brought);
        }
        if chance.random_bool(0.2) {
            // An old one comes once more.
            let again = self.lately[chance.random_range(0..self.lately.len())].clone();
            // The repeated message may not have been fetched before, and comes before those it was
            // said behind.
            self.reordered.extend(again["message"]["chat"]["id"].as_i64());
            server.push_again(again);
        }
        let forget = self.lately.len().saturating_sub(100);
        self.lately.drain(..forget);
        later
    }

    fn message(&mut self, burst: Option<i64>, at: usize, chance: &mut StdRng) -> Value {
        let chat = match burst {
            Some(chat) => chat,
            None if chance.random_bool(0.15) => GROUP - chance.random_range(0..GROUPS),
            None => chance.random_range(1..=PEOPLE),
        };
        let digit = match burst {
            Some(_) if at == 0 => FIRST[chance.random_range(0..FIRST.len())],
            Some(_) if chance.random_bool(0.5) => BEHIND[chance.random_range(0..BEHIND.len())],
            _ => chance.random_range(0..10),
        };
        self.say(chat, MessageWords::Numbered, digit)
    }

    /// The model goes by the last digit.
    fn say(&mut self, chat: i64, words: MessageWords, digit: usize) -> Value {
        let number = self.said.len();
        let run = format!("run-{}", number * 10 + digit);
        let text = match words {
            MessageWords::Numbered => format!("please answer {run} now"),
            MessageWords::Stop => "/stop".to_owned(),
            MessageWords::New => "/new".to_owned(),
        };
        let mut update = if chat < 0 { group_message(chat, 9, &text) } else { private_message(chat, &text) };
        let message_id = FIRST_ID + number;
        update["message"]["message_id"] = json!(message_id);
        self.said.push(PlatformMessage { chat, words, message_id: message_id.to_string(), run });
        update
    }
}

/// The platform fails now and then. Not while an earlier failure waits: several would meet one answer, one after the other, and it
/// would be put off for ten minutes.
pub(super) fn fail(server: &TelegramServer, chance: &mut StdRng) {
    let fault = match chance.random_range(0..24) {
        0 => CallFault::Drop,
        1 => CallFault::DoneAndDropped,
        2 => CallFault::CutOff,
        3 => CallFault::Slower(1),
        4 => CallFault::Refuse(500, "Internal Server Error"),
        _ => return,
    };
    let method = match chance.random_range(0..5) {
        0 => "getUpdates",
        1 => "sendChatAction",
        _ => "sendMessage",
    };
    if !server.has_faults() {
        server.fail(method, fault);
    }
}
