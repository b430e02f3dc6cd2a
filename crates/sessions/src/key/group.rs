//! The group a message came from, when its channel gave no session key (spec `sessions.md` §1.5).

use openclaw_config::registry;
use openclaw_protocol::SessionScope;

use super::{KeyError, KeyRules, PeerKind, SessionKey};

/// Source of an inbound message, as its context tells it.
#[derive(Debug, Clone, Copy, Default)]
pub struct InboundContext<'a> {
    /// An explicit `SessionKey`; wins.
    pub session_key: Option<&'a str>,
    /// `From`
    pub from: Option<&'a str>,
    /// `ChatType`
    pub chat_type: Option<&'a str>,
    /// `Provider`
    pub provider: Option<&'a str>,
}

/// A group named by an inbound context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRef {
    /// Channel id.
    pub channel: String,
    /// Group or channel, never direct.
    pub kind: PeerKind,
    /// Lower-case id.
    pub id: String,
}

impl GroupRef {
    /// `<channel>:<kind>:<id>`: the key without its agent part.
    pub fn key(&self) -> String {
        format!("{}:{}:{}", self.channel, self.kind.segment(), self.id)
    }
}

/// The id of a known channel in any spelling.
pub fn surface(name: &str) -> Option<&'static str> {
    registry::by_any_name(name).map(|channel| channel.id)
}

/// The session key of an inbound context: explicit key, group, or the main bucket; never a bucket of its sender.
///
/// # Errors
/// [`KeyError`] for a key that can't be one. Nothing is cut to fit, and no message lands in a bucket it does not name.
pub fn session_key(context: &InboundContext<'_>, rules: &KeyRules) -> Result<SessionKey, KeyError> {
    if let Some(explicit) = context.session_key.map(str::trim).filter(|key| !key.is_empty()) {
        return rules.canonical(explicit);
    }
    if rules.scope == SessionScope::Global {
        return Ok(SessionKey::global());
    }
    match group_of(context) {
        Some(group) => rules.canonical(&group.key()),
        None => Ok(rules.main(&rules.default_agent)),
    }
}

/// The group an inbound context names, if it names one.
pub fn group_of(context: &InboundContext<'_>) -> Option<GroupRef> {
    let from = context.from.unwrap_or_default().trim();
    let chat_type = context.chat_type.unwrap_or_default().trim().to_lowercase();
    let lower = from.to_lowercase();
    let whatsapp = lower.ends_with("@g.us");
    let grouped = chat_type == "group" || chat_type == "channel";
    let is_group = grouped || lower.contains(":group:") || lower.contains(":channel:") || whatsapp;
    if from.is_empty() || !is_group {
        return None;
    }
    let parts: Vec<&str> = lower.split(':').filter(|part| !part.is_empty()).collect();
    let head = parts.first().copied().unwrap_or_default();
    let on_surface = registry::by_id(head).is_some();
    let channel = channel_of(context, head, on_surface, whatsapp)?;
    let after = parts.get(usize::from(on_surface)..).unwrap_or_default();
    let (named, id) = match after.split_first() {
        Some((&"group", id)) => (Some(PeerKind::Group), id),
        Some((&"channel", id)) => (Some(PeerKind::Channel), id),
        // On no known surface the kind may stand second all the same; the id is the whole.
        Some((_, [kind, ..])) if !on_surface => (kind_of(kind), after),
        Some(_) | None => (None, after),
    };
    let roomy = lower.contains(":channel:") || chat_type == "channel";
    let kind = named.unwrap_or(if roomy { PeerKind::Channel } else { PeerKind::Group });
    let id = id.join(":");
    (!id.is_empty()).then_some(GroupRef { channel, kind, id })
}

fn channel_of(context: &InboundContext<'_>, head: &str, on_surface: bool, whatsapp: bool) -> Option<String> {
    if on_surface {
        return Some(head.to_owned());
    }
    let provider = context.provider.unwrap_or_default().trim().to_lowercase();
    match (provider.is_empty(), whatsapp) {
        (false, _) => Some(provider),
        (true, true) => Some("whatsapp".to_owned()),
        (true, false) => None,
    }
}

fn kind_of(part: &str) -> Option<PeerKind> {
    match part {
        "group" => Some(PeerKind::Group),
        "channel" => Some(PeerKind::Channel),
        _ => None,
    }
}
