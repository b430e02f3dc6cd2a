//! Delivery context and last route of a session: the place where it is answered (spec `sessions.md`
//! §3.8).

use std::fmt;

use openclaw_config::registry;
use serde::{Deserialize, Serialize};

use super::SessionEntry;
use crate::key::group::surface;
use crate::ordered::ordered_object;

/// A thread id: platforms use numbers or texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ThreadId {
    /// Such as a Telegram topic.
    Number(i64),
    /// Such as a Slack timestamp.
    Text(Box<str>),
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for ThreadId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for ThreadId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RawThreadId {
            Whole(i64),
            Fraction(f64),
            Text(Box<str>),
        }
        match RawThreadId::deserialize(deserializer)? {
            RawThreadId::Whole(number) => Ok(Self::Number(number)),
            #[expect(clippy::cast_possible_truncation, reason = "truncation is the rule")]
            RawThreadId::Fraction(number) => Ok(Self::Number(number as i64)),
            RawThreadId::Text(text) => Ok(Self::Text(text)),
        }
    }
}

ordered_object! {
    /// Route for replies.
    pub struct DeliveryContext : DeliveryField {
        /// Channel id.
        channel: Box<str> => "channel",
        /// Target on that channel.
        to: Box<str> => "to",
        /// Account that sends.
        account_id: Box<str> => "accountId",
        /// Thread or topic.
        thread_id: ThreadId => "threadId",
    }
}

impl DeliveryContext {
    /// Trimmed, the channel by its id, blank fields dropped; nothing when nothing is left.
    pub fn normalized(&self) -> Option<Self> {
        let known = |name: Box<str>| surface(&name).map_or(name, Box::from);
        let out = Self {
            channel: tidy(self.channel.as_deref()).map(known),
            to: tidy(self.to.as_deref()),
            account_id: tidy(self.account_id.as_deref()),
            thread_id: self.thread_id.clone().and_then(tidy_thread),
            ..Self::default()
        };
        (out != Self::default()).then_some(out)
    }

    /// Field by field, `self` before `fallback`.
    pub fn or(&self, fallback: &Self) -> Self {
        Self {
            channel: self.channel.clone().or_else(|| fallback.channel.clone()),
            to: self.to.clone().or_else(|| fallback.to.clone()),
            account_id: self.account_id.clone().or_else(|| fallback.account_id.clone()),
            thread_id: self.thread_id.clone().or_else(|| fallback.thread_id.clone()),
            ..Self::default()
        }
    }
}

/// The delivery context a row stands for: its last route, completed by its stored context.
pub fn of_entry(entry: &SessionEntry) -> Option<DeliveryContext> {
    let primary = DeliveryContext {
        channel: entry.last_channel.clone().or_else(|| entry.channel.clone()),
        to: entry.last_to.clone(),
        account_id: entry.last_account_id.clone(),
        thread_id: entry.last_thread_id.clone(),
        ..DeliveryContext::default()
    };
    let primary = primary.normalized().unwrap_or_default();
    let stored = entry.delivery_context.as_deref().and_then(DeliveryContext::normalized).unwrap_or_default();
    primary.or(&stored).normalized()
}

/// Writes the merged context to both places of a row.
pub fn normalize(entry: &mut SessionEntry) {
    let merged = of_entry(entry).unwrap_or_default();
    set_last(entry, &merged);
    let same = entry.delivery_context.as_deref().is_some_and(|stored| {
        stored.channel == merged.channel
            && stored.to == merged.to
            && stored.account_id == merged.account_id
            && stored.thread_id == merged.thread_id
    });
    if merged == DeliveryContext::default() {
        entry.delivery_context = None;
    } else if !same {
        entry.delivery_context = Some(Box::new(merged));
    }
}

/// Channels inside the gateway: a turn on them must not replace a route that can be delivered to.
pub const INTERNAL_CHANNELS: &[&str] = &[registry::WEBCHAT];

/// Takes over the route of a new message. A route that names a channel or target but no thread drops the stored thread;
/// an internal channel does not replace a route to a real one.
pub fn update_last_route(entry: &mut SessionEntry, route: &DeliveryContext) {
    let Some(route) = route.normalized() else { return };
    let stored = of_entry(entry).unwrap_or_default();
    let internal = |channel: Option<&str>| channel.is_none_or(|name| INTERNAL_CHANNELS.contains(&name));
    if route.channel.is_some() && internal(route.channel.as_deref()) && !internal(stored.channel.as_deref()) {
        return;
    }
    let renewed = route.channel.is_some() || route.to.is_some();
    let mut merged = route.or(&stored);
    if renewed && route.thread_id.is_none() {
        merged.thread_id = None;
    }
    set_last(entry, &merged);
    entry.delivery_context = Some(Box::new(merged));
    normalize(entry);
}

fn set_last(entry: &mut SessionEntry, route: &DeliveryContext) {
    entry.last_channel = route.channel.clone();
    entry.last_to = route.to.clone();
    entry.last_account_id = route.account_id.clone();
    entry.last_thread_id = route.thread_id.clone();
}

fn tidy(text: Option<&str>) -> Option<Box<str>> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(Box::from)
}

fn tidy_thread(id: ThreadId) -> Option<ThreadId> {
    match id {
        ThreadId::Number(_) => Some(id),
        ThreadId::Text(text) => tidy(Some(&text)).map(ThreadId::Text),
    }
}
