//! Place of a session's last word in a talk: its own conversation, with account and thread (spec
//! `sessions.md` §8.3).

use openclaw_channels::Address;
use openclaw_config::registry::{self, Rooms};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::SessionKey;
use openclaw_sessions::entry::delivery;

use crate::parts::SessionToolParts;

/// A conversation, as a key names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    channel: String,
    to: String,
    thread: Option<String>,
}

/// The group or room that a key names; nothing for other keys.
fn named(key: &SessionKey) -> Option<Named> {
    let (channel, rest) = key.rest().split_once(':')?;
    let (kind, id) = rest.split_once(':')?;
    if kind != "group" && kind != "channel" {
        return None;
    }
    let (id, thread) = match split_thread(id) {
        Some((id, thread)) => (id, Some(thread.to_owned())),
        None => (id, None),
    };
    if id.is_empty() {
        return None;
    }
    let known = registry::by_name(channel);
    let is_room = registry::by_id(channel).is_some_and(|info| info.rooms == Rooms::All);
    let kind = if is_room { "channel" } else { kind };
    let to = if known.is_some() { format!("{kind}:{id}") } else { id.to_owned() };
    Some(Named { channel: known.map_or(channel, |info| info.id).to_owned(), to, thread })
}

/// Slack's threads are times, with a point in them.
fn split_thread(id: &str) -> Option<(&str, &str)> {
    let (at, mark) = [":topic:", ":thread:"]
        .into_iter()
        .filter_map(|mark| Some((id.rfind(mark)?, mark)))
        .max_by_key(|(at, _)| *at)?;
    let thread = id.get(at + mark.len()..)?;
    let is_thread = thread.starts_with(|c: char| c.is_ascii_digit())
        && thread.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_thread.then_some((id.get(..at)?, thread))
}

/// Returns the conversation that a session speaks in, if it is one of a chat platform that is
/// used here.
pub(super) async fn announce_target(
    parts: &SessionToolParts,
    key: &SessionKey,
    entry: Option<&SessionEntry>,
) -> Option<Address> {
    let named = named(key);
    let route = parts.routes.route_of(key).await;
    let Some(named) = named else { return route };
    // The route has the ids as the platform spells them, and the account.
    if let Some(route) = route.filter(|route| route.channel == named.channel) {
        return Some(Address { thread: named.thread.or(route.thread), ..route });
    }
    let platforms = &parts.platforms;
    let target = platforms.channel(&named.channel)?.target(&named.to).ok()?;
    let own = entry.and_then(delivery::of_entry).and_then(|route| route.account_id);
    let account = own.map(String::from);
    let account =
        account.or_else(|| platforms.sending_account(&parts.settings.now().config, &named.channel))?;
    let thread = named.thread.or(target.thread);
    Some(Address { channel: named.channel, account, target: target.id, thread })
}

/// Returns the channel that a session is used over, in the words for agents.
pub(super) fn channel_of(key: &SessionKey, entry: Option<&SessionEntry>) -> Option<String> {
    let route = || entry.and_then(delivery::of_entry).and_then(|route| route.channel).map(String::from);
    named(key).map(|named| named.channel).or_else(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the specification.
    #[test]
    fn keys_of_groups_and_rooms_name_a_conversation() {
        let rows = [
            ("agent:main:discord:group:dev", Some(("discord", "channel:dev", None))),
            ("agent:main:slack:channel:C1:thread:17", Some(("slack", "channel:c1", Some("17")))),
            ("agent:main:slack:channel:c1:thread:1700.55", Some(("slack", "channel:c1", Some("1700.55")))),
            ("agent:main:telegram:group:-100:topic:99", Some(("telegram", "group:-100", Some("99")))),
            ("agent:main:telegram:channel:-100", Some(("telegram", "channel:-100", None))),
            ("agent:main:whatsapp:group:1@g.us", Some(("whatsapp", "group:1@g.us", None))),
            ("agent:main:matrix:group:!room:server", Some(("matrix", "!room:server", None))),
            ("agent:main:slack:channel:c1:thread:x", Some(("slack", "channel:c1:thread:x", None))),
            ("agent:main:main", None),
            ("agent:main:telegram:dm:7", None),
            ("agent:main:subagent:group:x", Some(("subagent", "x", None))),
            ("global", None),
        ];
        for (key, expect) in rows {
            let found = named(&SessionKey::parse(key).unwrap());
            let found = found
                .as_ref()
                .map(|found| (found.channel.as_str(), found.to.as_str(), found.thread.as_deref()));
            assert_eq!(found, expect, "{key}");
        }
    }
}
