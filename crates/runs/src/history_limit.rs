//! Limit on the turns of a direct chat that the model sees (spec `sessions.md` §4.8,
//! `agent-runtime.md` §9.5).

use std::num::NonZeroU32;

use openclaw_config::settings::Channels;
use openclaw_sessions::entry::ChatType;
use openclaw_sessions::key::KeyForm;
use openclaw_sessions::{SessionEntry, SessionKey};

/// Returns the limit of a session, `None` for all of its history. If the key does not name the peer
/// (2.9 knew no limit then: known-bad), the row's origin does.
pub(super) fn of(channels: &Channels, key: &SessionKey, entry: &SessionEntry) -> Option<NonZeroU32> {
    let origin = entry.origin.as_deref().filter(|origin| origin.chat_type == Some(ChatType::Direct));
    let from = origin.and_then(|origin| Some((origin.provider.as_deref()?, origin.from.as_deref()?)));
    let sender = from.map(|(channel, from)| peer_of(channel, from));
    // Topics end a key as threads do.
    let bare = std::iter::successors(Some(key.clone()), SessionKey::thread_parent).last()?;
    let (key_channel, key_account, key_peer) = match bare.form() {
        KeyForm::Direct { channel, account, peer } => (channel, account, Some(peer)),
        KeyForm::Named(_) => (None, None, None),
        KeyForm::Group { .. } | KeyForm::Channel { .. } | KeyForm::CronRun { .. } | KeyForm::Opened(..) => {
            return None;
        }
    };
    let channel = key_channel.or_else(|| origin?.provider.as_deref())?;
    let account = key_account.or_else(|| origin?.account_id.as_deref());
    let peers: Vec<&str> = key_peer.into_iter().chain(sender).collect();
    let limit = channels.history_limit(channel, account, &peers)?;
    u32::try_from(limit).ok().and_then(NonZeroU32::new)
}

/// Returns the id of a sender, which may be written with the channel, and with the kind of chat,
/// before it.
fn peer_of<'a>(channel: &str, from: &'a str) -> &'a str {
    let after = |text: &'a str, lead: &str| {
        let (head, tail) = text.split_once(':')?;
        head.eq_ignore_ascii_case(lead).then_some(tail)
    };
    let id = after(from, channel).unwrap_or(from);
    ["dm", "direct", "user"].into_iter().find_map(|kind| after(id, kind)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use openclaw_config::{Config, Environment};
    use serde_json::{Value, json};

    use super::*;

    fn check(channels: &Value, key: &str, entry: Value, expect: Option<u32>) {
        let environment = Environment::new([("HOME", "/home/user")], "/");
        let document = json!({"channels": channels}).to_string();
        let config = Config::from_json5(&document, &environment).unwrap();
        let entry: SessionEntry = serde_json::from_value(entry).unwrap();
        let found = of(&config.channels, &SessionKey::parse(key).unwrap(), &entry);
        assert_eq!(found.map(NonZeroU32::get), expect, "{key} {channels}");
    }

    /// The vectors of spec `agent-runtime.md` §9.5.
    #[test]
    fn a_direct_chat_has_the_limit_of_its_peer_or_of_its_channel() {
        let by_channel = json!({"telegram": {"dmHistoryLimit": 15}});
        let of_123 =
            |limit: u32| json!({"telegram": {"dmHistoryLimit": 15, "dms": {"123": {"historyLimit": limit}}}});
        let named = json!({"telegram": {"dms": {"User@example.com": {"historyLimit": 7}}}});
        let rows = [
            (by_channel.clone(), "agent:main:telegram:dm:123", Some(15)),
            (by_channel.clone(), "agent:main:telegram:direct:123", Some(15)),
            (by_channel.clone(), "agent:main:slack:dm:123", None),
            (of_123(5), "agent:main:telegram:dm:123:thread:999", Some(5)),
            (of_123(5), "agent:main:telegram:dm:123:topic:9", Some(5)),
            (of_123(5), "agent:main:telegram:dm:124", Some(15)),
            (of_123(0), "agent:main:telegram:dm:123", None),
            (named, "agent:main:telegram:dm:user@example.com", Some(7)),
            (by_channel.clone(), "agent:main:telegram:channel:c1", None),
            (by_channel.clone(), "agent:main:main", None),
            (by_channel.clone(), "agent:main:subagent:x", None),
            (by_channel, "agent:main:telegram:group:g", None),
        ];
        for (channels, key, expect) in rows {
            check(&channels, key, json!({}), expect);
        }
    }

    #[test]
    fn the_origin_says_who_it_is_where_the_key_does_not() {
        let channels = json!({"telegram": {
            "dmHistoryLimit": 15,
            "dms": {"123": {"historyLimit": 5}},
            "accounts": {"Tasks Bot": {"dmHistoryLimit": 9}},
        }});
        let origin = |from: &str, account: Option<&str>| json!({"origin": {"provider": "telegram", "chatType": "direct", "from": from, "accountId": account}});
        let of_group = json!({"origin": {"provider": "telegram", "chatType": "group", "from": "123"}});
        let rows = [
            ("agent:main:main", origin("telegram:123", None), Some(5)),
            ("agent:main:main", origin("123", None), Some(5)),
            ("agent:main:main", origin("telegram:dm:123", None), Some(5)),
            ("agent:main:main", origin("124", None), Some(15)),
            ("agent:main:main", origin("124", Some("Tasks Bot")), Some(9)),
            ("agent:main:main", of_group.clone(), None),
            ("agent:main:telegram:group:1", origin("123", None), None),
            ("agent:main:dm:alice", origin("telegram:123", None), Some(5)),
            ("agent:main:dm:alice", json!({}), None),
            ("agent:main:telegram:tasks-bot:dm:124", json!({}), Some(9)),
            ("agent:main:telegram:tasks-bot:dm:123", json!({}), Some(5)),
            ("agent:main:telegram:other:dm:124", of_group, Some(15)),
        ];
        for (key, entry, expect) in rows {
            check(&channels, key, entry, expect);
        }
    }
}
