//! Target for the answer of a heartbeat (spec `agent-runtime.md` §11.3). A heartbeat never makes a
//! route: it follows the one the session has. Pure.

use openclaw_channels::Address;
use openclaw_config::registry;
use openclaw_config::settings::{Channels, Heartbeat};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::DeliveryContext;
use openclaw_sessions::entry::delivery::{INTERNAL_CHANNELS, of_entry};

/// The account of a channel that names none.
const DEFAULT_ACCOUNT: &str = "default";

/// Target for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeartbeatTarget {
    /// Answer goes to a chat platform.
    Chat(Address),
    /// Answer goes to nobody but the clients of the gateway, for this reason.
    Nobody(&'static str),
}

impl HeartbeatTarget {
    /// The channel, if it goes to one.
    pub(super) fn channel(&self) -> Option<&str> {
        match self {
            Self::Chat(address) => Some(&address.channel),
            Self::Nobody(_) => None,
        }
    }

    /// The account, if it goes to a channel.
    pub(super) fn account(&self) -> Option<&str> {
        match self {
            Self::Chat(address) => Some(&address.account),
            Self::Nobody(_) => None,
        }
    }
}

/// Resolves `heartbeat.target`, `to` and `accountId` for a session with this row.
pub(super) fn resolve(
    settings: &Heartbeat,
    channels: &Channels,
    entry: Option<&SessionEntry>,
) -> HeartbeatTarget {
    const NO_TARGET: HeartbeatTarget = HeartbeatTarget::Nobody("no-target");
    let asked = settings.target.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or("last");
    let route = entry.and_then(of_entry).unwrap_or_default();
    let channel = match asked {
        "none" => return HeartbeatTarget::Nobody("target-none"),
        "last" => match route.channel.as_deref().filter(|channel| !INTERNAL_CHANNELS.contains(channel)) {
            Some(channel) => channel,
            None => return NO_TARGET,
        },
        name => match registry::by_name(name) {
            Some(channel) if channel.deliverable => channel.id,
            Some(_) | None => return NO_TARGET,
        },
    };
    let followed =
        if route.channel.as_deref() == Some(channel) { route.clone() } else { DeliveryContext::default() };
    let own_to = settings.to.as_deref().map(str::trim).filter(|to| !to.is_empty());
    let Some(target) = own_to.or(followed.to.as_deref()) else { return NO_TARGET };
    let own_account = settings.account_id.as_deref().map(str::trim).filter(|account| !account.is_empty());
    if own_account.is_some_and(|account| !channels.has_account(channel, account)) {
        return HeartbeatTarget::Nobody("unknown-account");
    }
    let is_followed = followed.to.as_deref() == Some(target);
    HeartbeatTarget::Chat(Address {
        channel: channel.to_owned(),
        account: own_account.or(followed.account_id.as_deref()).unwrap_or(DEFAULT_ACCOUNT).to_owned(),
        target: target.to_owned(),
        thread: followed.thread_id.filter(|_| is_followed).map(|thread| thread.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn chat(channel: &str, account: &str, target: &str, thread: Option<&str>) -> HeartbeatTarget {
        HeartbeatTarget::Chat(Address {
            channel: channel.to_owned(),
            account: account.to_owned(),
            target: target.to_owned(),
            thread: thread.map(str::to_owned),
        })
    }

    #[test]
    fn the_answer_follows_the_sessions_route_unless_told_otherwise() {
        let channels: Channels =
            serde_json::from_value(json!({"telegram": {"accounts": {"work": {}}}})).unwrap();
        let telegram =
            json!({"lastChannel": "telegram", "lastTo": "7", "lastAccountId": "work", "lastThreadId": 5});
        let webchat = json!({"lastChannel": "webchat"});
        let rows = [
            (json!({}), &telegram, chat("telegram", "work", "7", Some("5"))),
            (json!({"target": " last "}), &telegram, chat("telegram", "work", "7", Some("5"))),
            (json!({}), &webchat, HeartbeatTarget::Nobody("no-target")),
            (json!({}), &json!({}), HeartbeatTarget::Nobody("no-target")),
            (json!({}), &json!({"lastChannel": "telegram"}), HeartbeatTarget::Nobody("no-target")),
            (json!({"target": "none", "to": "7"}), &telegram, HeartbeatTarget::Nobody("target-none")),
            (json!({"target": "webchat", "to": "7"}), &telegram, HeartbeatTarget::Nobody("no-target")),
            (json!({"to": "9"}), &telegram, chat("telegram", "work", "9", None)),
            (json!({"target": "signal"}), &telegram, HeartbeatTarget::Nobody("no-target")),
            (json!({"target": "signal", "to": "+1"}), &telegram, chat("signal", "default", "+1", None)),
            (json!({"target": "imsg", "to": "a"}), &webchat, chat("imessage", "default", "a", None)),
            (json!({"accountId": "home"}), &telegram, HeartbeatTarget::Nobody("unknown-account")),
            (json!({"accountId": "Work"}), &telegram, chat("telegram", "Work", "7", Some("5"))),
        ];
        for (settings, row, expect) in rows {
            let heartbeat: Heartbeat = serde_json::from_value(settings.clone()).unwrap();
            let entry: SessionEntry = serde_json::from_value::<SessionEntry>(Value::clone(row)).unwrap();
            assert_eq!(resolve(&heartbeat, &channels, Some(&entry)), expect, "{settings} {row}");
        }
        assert_eq!(resolve(&Heartbeat::default(), &channels, None), HeartbeatTarget::Nobody("no-target"));
    }
}
