//! Turns an update into events. A kind that is not known, or that is not as it should be, brings
//! nothing and harms no other.

use openclaw_channels::{Address, ConversationInfo, ConversationKind, Inbound, InboundEvent, Sender};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ID;
use crate::entities::Me;
use crate::wire::Wire as _;
use crate::{message, people, thread};

/// The kinds that are asked for.
pub(super) const KINDS: &[&str] = &[
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
    "message_reaction",
    "my_chat_member",
];
/// The conversation of what can't be read.
const UNKNOWN: &str = "unknown";
/// Above it no number is one of Telegram's: confirmed, it would keep all that comes later from being brought.
pub(super) const LAST_NUMBER: i64 = 1 << 53;
/// Reactions of one update that are told; a person has three at most.
const MOST_REACTIONS: usize = 10;

/// An update that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Update {
    /// Events of the update; more than one if several reactions change at once.
    pub(super) events: Vec<Inbound>,
    /// A pressed button that waits to be answered.
    pub(super) callback: Option<Callback>,
}

/// A pressed button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Callback {
    /// Id with which the press is answered.
    pub(super) id: String,
    /// Unix milliseconds at which the message with it was sent; 0 where Telegram does not tell any more.
    pub(super) message_at: i64,
}

/// The times that an update is read with; Unix milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpdateTimes {
    /// Stands in where the platform says no time.
    pub(super) now: i64,
    /// Lead of our clock over the platform's.
    pub(super) ahead: i64,
}

impl UpdateTimes {
    /// Converts a time of the platform in seconds to our clock.
    fn ours(self, seconds: i64) -> i64 {
        seconds.saturating_mul(1000).saturating_add(self.ahead)
    }
}

/// The number of an update; without it nothing can be confirmed. An unreadable update is present as
/// its text.
pub(super) fn id(update: &Value) -> Option<i64> {
    let id = match update {
        Value::String(text) => number_in(text.as_bytes()),
        _ => update.int("update_id"),
    };
    id.filter(|id| (0..=LAST_NUMBER).contains(id))
}

/// Returns the time of an update's event, in Unix milliseconds by our clock; `None` if the update
/// does not tell. A pressed button has the time of its message.
pub(super) fn said_at(update: &Value, times: UpdateTimes) -> Option<i64> {
    date(update).map(|seconds| times.ours(seconds))
}

/// Returns the time of an update in the platform's clock, in Unix seconds.
fn date(update: &Value) -> Option<i64> {
    const DATES: &[(&str, &str)] = &[
        ("message", "date"),
        ("channel_post", "date"),
        ("edited_message", "edit_date"),
        ("edited_channel_post", "edit_date"),
        ("message_reaction", "date"),
        ("my_chat_member", "date"),
    ];
    let date = DATES.iter().find_map(|(kind, key)| update.get(*kind)?.int(key));
    date.filter(|seconds| *seconds > 0)
}

/// Returns the subject of an update, which distinguishes it from another one of the same number:
/// Telegram restarts its numbers after a week without updates.
fn about(update: &Value, content: &Value) -> String {
    // A press has an id of its own.
    if let Some(press) = content.text("id") {
        return press.to_owned();
    }
    let parts = [content.at("chat").int("id"), content.int("message_id"), date(update)];
    let parts: Vec<String> =
        parts.iter().map(|part| part.map_or_else(String::new, |n| n.to_string())).collect();
    parts.join(":")
}

/// The id of something that is the bot's alone, whatever its account is called.
fn unique_id(me: &Me, what: &str, about: &str) -> Option<String> {
    Some(format!("{}:{what}:{about}", me.id))
}

/// Reads an update for an account.
pub(super) fn read(update: &Value, account: &str, me: &Me, times: UpdateTimes) -> Update {
    let now = times.now;
    let one = |event: Option<Inbound>| Update { events: event.into_iter().collect(), callback: None };
    if let Value::String(text) = update {
        return one(Some(unreadable(text, account, me, "its JSON can't be read", now)));
    }
    let Some(number) = id(update) else {
        let why = "it has no number that Telegram gives";
        return one(Some(unreadable(&update.to_string(), account, me, why, now)));
    };
    let Some((kind, content)) = KINDS.iter().find_map(|kind| Some((*kind, update.get(*kind)?))) else {
        return Update::default();
    };
    if let Some(why) = flaw(kind, content) {
        return one(Some(numbered_unreadable(number, account, me, &why, now)));
    }
    let scene = Scene { number, about: about(update, content), account, me, times };
    match kind {
        "message" | "channel_post" => one(scene.message(content)),
        "edited_message" | "edited_channel_post" => one(scene.edited(content)),
        "callback_query" => {
            Update { events: scene.button(content).into_iter().collect(), callback: callback(content, times) }
        }
        "message_reaction" => Update { events: scene.reactions(content), callback: None },
        _ => {
            member(content);
            Update::default()
        }
    }
}

fn callback(query: &Value, times: UpdateTimes) -> Option<Callback> {
    let told = query.at("message").int("date").filter(|seconds| *seconds > 0);
    let message_at = told.map_or(0, |seconds| times.ours(seconds));
    Some(Callback { id: query.text("id")?.to_owned(), message_at })
}

/// Returns the reason why an update of a known kind can't be read; `None` if it can be read, even
/// if it contains nothing for us.
fn flaw(kind: &str, content: &Value) -> Option<String> {
    let place = if kind == "callback_query" { content.at("message") } else { content };
    // A button below an old message comes without that.
    let has_place = kind == "callback_query" && !place.is_object();
    let is_sound = content.is_object() && (has_place || place.at("chat").int("id").is_some());
    let has_number = kind == "my_chat_member" || has_place || place.int("message_id").is_some();
    match (is_sound, has_number) {
        (true, true) => None,
        (false, _) => Some(format!("its {kind} has no chat")),
        (true, false) => Some(format!("its {kind} has no message_id")),
    }
}

/// Returns the event of an unreadable update with its number.
pub(super) fn numbered_unreadable(number: i64, account: &str, me: &Me, why: &str, now: i64) -> Inbound {
    tracing::error!(account, update = number, why, "an update of Telegram can't be read and is passed over");
    silent(format!("update:{number}"), account, me, why, now)
}

/// An event of which nothing else is known.
fn silent(native_id: String, account: &str, me: &Me, why: &str, now: i64) -> Inbound {
    Inbound {
        unique_id: unique_id(me, &native_id, UNKNOWN),
        former_unique_id: None,
        native_id,
        address: Address {
            channel: ID.to_owned(),
            account: account.to_owned(),
            target: UNKNOWN.to_owned(),
            thread: None,
        },
        conversation: ConversationInfo {
            kind: ConversationKind::Direct,
            title: None,
            thread_title: None,
            is_forum: false,
            space: None,
            descriptions: Vec::new(),
        },
        sender: Sender::default(),
        event: InboundEvent::Unreadable { why: why.to_owned() },
        at: now,
    }
}

/// Returns the event of an unreadable update: with the number in it, or with one derived from its
/// text, so that the same update gets the same number when it is delivered again.
pub(super) fn unreadable(text: &str, account: &str, me: &Me, why: &str, now: i64) -> Inbound {
    if let Some(number) = number_in(text.as_bytes()) {
        return numbered_unreadable(number, account, me, why, now);
    }
    let mut digest = Sha256::digest(text.as_bytes()).iter().take(8).fold(String::new(), |mut hex, byte| {
        hex.push_str(&format!("{byte:02x}"));
        hex
    });
    digest.insert_str(0, "unreadable:");
    tracing::error!(account, event = digest, why, "an update of Telegram can't be read and is passed over");
    silent(digest, account, me, why, now)
}

/// The number of the first update that stands in an answer or a push that can't be read.
pub(super) fn number_in(text: &[u8]) -> Option<i64> {
    const KEY: &[u8] = b"\"update_id\"";
    let at = text.windows(KEY.len()).position(|window| window == KEY)?;
    let behind = text.get(at + KEY.len()..)?;
    let digits = behind.iter().skip_while(|byte| matches!(byte, b' ' | b':' | b'\n' | b'\t' | b'\r'));
    let digits: Vec<u8> = digits.take_while(|byte| byte.is_ascii_digit()).copied().collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

/// Data shared by all events of an update.
struct Scene<'a> {
    number: i64,
    /// As [`about`] says.
    about: String,
    account: &'a str,
    me: &'a Me,
    times: UpdateTimes,
}

impl Scene<'_> {
    fn message(&self, message: &Value) -> Option<Inbound> {
        if let Some(to) = message.int("migrate_to_chat_id") {
            return self.event(message, InboundEvent::Moved { to: to.to_string() });
        }
        let content = message::read(message, self.me)?;
        self.event(message, InboundEvent::Message(Box::new(content)))
    }

    fn edited(&self, message: &Value) -> Option<Inbound> {
        let content = message::read(message, self.me)?;
        // An edit without text has nothing new to say: a poll in which a person voted.
        if content.text.is_empty() && !content.notes.is_empty() {
            return None;
        }
        self.event(message, InboundEvent::Edited { message_id: content.message_id, text: content.text })
    }

    fn button(&self, query: &Value) -> Option<Inbound> {
        let message = query.object("message")?;
        let event = InboundEvent::Button {
            message_id: message.int("message_id")?.to_string(),
            data: query.text("data")?.to_owned(),
        };
        let inbound = self.event(message, event)?;
        // The message is ours; who pressed is in the query. The time of the message is not that of the press.
        Some(Inbound { sender: people::user(query.at("from"), self.me)?, at: self.times.now, ..inbound })
    }

    fn reactions(&self, change: &Value) -> Vec<Inbound> {
        let by = change.object("user").and_then(|user| people::user(user, self.me));
        let by = by.or_else(|| change.object("actor_chat").and_then(|chat| people::chat(chat, None)));
        let (Some(sender), Some(message)) = (by, change.int("message_id")) else { return Vec::new() };
        let names = |key: &str| -> Vec<String> { change.list(key).iter().filter_map(emoji).collect() };
        let (old, new) = (names("old_reaction"), names("new_reaction"));
        let added = new.iter().filter(|emoji| !old.contains(emoji)).map(|emoji| (emoji, false));
        let removed = old.iter().filter(|emoji| !new.contains(emoji)).map(|emoji| (emoji, true));
        let events =
            added.chain(removed).take(MOST_REACTIONS).enumerate().filter_map(|(at, (emoji, removed))| {
                let event =
                    InboundEvent::Reaction { message_id: message.to_string(), emoji: emoji.clone(), removed };
                let inbound = self.at_place(change, event, sender.clone())?;
                let native_id =
                    if at == 0 { inbound.native_id } else { format!("{}:{at}", inbound.native_id) };
                Some(Inbound { unique_id: unique_id(self.me, &native_id, &self.about), native_id, ..inbound })
            });
        events.collect()
    }

    fn event(&self, message: &Value, event: InboundEvent) -> Option<Inbound> {
        self.at_place(message, event, people::sender(message, self.me)?)
    }

    fn at_place(&self, place: &Value, event: InboundEvent, sender: Sender) -> Option<Inbound> {
        let chat = place.object("chat")?;
        let seconds = place.int("date").filter(|seconds| *seconds > 0);
        let edited = place.int("edit_date").filter(|_| matches!(event, InboundEvent::Edited { .. }));
        let native_id = format!("update:{}", self.number);
        let target = chat.int("id")?.to_string();
        let of_event = unique_id(self.me, &native_id, &self.about);
        let (unique_id, former_unique_id) = match &event {
            InboundEvent::Message(message) => {
                (unique_id(self.me, "message", &format!("{target}:{}", message.message_id)), of_event)
            }
            InboundEvent::Button { .. }
            | InboundEvent::Edited { .. }
            | InboundEvent::Reaction { .. }
            | InboundEvent::Moved { .. }
            | InboundEvent::Unreadable { .. } => (of_event, None),
        };
        Some(Inbound {
            unique_id,
            former_unique_id,
            native_id,
            address: Address {
                channel: ID.to_owned(),
                account: self.account.to_owned(),
                target,
                thread: thread::of_inbound(chat, place),
            },
            conversation: conversation(chat, place),
            sender,
            event,
            at: edited.or(seconds).map_or(self.times.now, |seconds| self.times.ours(seconds)),
        })
    }
}

fn conversation(chat: &Value, message: &Value) -> ConversationInfo {
    // The message that a topic begins with knows its name.
    let topic = message.at("reply_to_message").object("forum_topic_created");
    ConversationInfo {
        kind: people::kind_of_chat(chat),
        title: chat.text("title").map(str::to_owned),
        thread_title: topic.and_then(|topic| topic.text("name")).map(str::to_owned),
        is_forum: chat.flag("is_forum"),
        space: None,
        descriptions: Vec::new(),
    }
}

fn emoji(reaction: &Value) -> Option<String> {
    match reaction.text("type")? {
        "emoji" => reaction.text("emoji").map(str::to_owned),
        "custom_emoji" => reaction.text("custom_emoji_id").map(|id| format!("custom:{id}")),
        "paid" => Some("⭐".to_owned()),
        _ => None,
    }
}

/// Logs that the bot was added to a group or removed from it; nobody is asked.
fn member(change: &Value) {
    let chat = change.at("chat").int("id");
    let status = change.at("new_chat_member").text("status").unwrap_or("unknown");
    tracing::info!(chat, status, "the bot's place in a Telegram chat has changed");
}
