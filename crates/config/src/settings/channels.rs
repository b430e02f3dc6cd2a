//! `channels.*`: what is read of the sections of chat platforms.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Deserialize;

use super::ChannelReplies;
use crate::normalize_account_id;

/// `channels`, by channel id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Channels(BTreeMap<String, Channel>);

/// `channels.<id>`, and `channels.<id>.accounts.<account>`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Channel {
    dm_history_limit: Option<i64>,
    dms: BTreeMap<String, DirectChat>,
    /// In the order of the file: of several names of one account, the first counts.
    accounts: IndexMap<String, Channel>,
    heartbeat: BeatFlags,
    #[serde(flatten)]
    replies: ChannelReplies,
}

/// `channels.defaults.heartbeat`, `channels.<id>.heartbeat`, `channels.<id>.accounts.<account>.heartbeat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BeatFlags {
    show_ok: Option<bool>,
    show_alerts: Option<bool>,
    use_indicator: Option<bool>,
}

/// Parts of heartbeats that a channel shows (spec `agent-runtime.md` §11.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeatVisibility {
    /// Acknowledgements.
    pub show_ok: bool,
    /// Alerts.
    pub show_alerts: bool,
    /// The `indicatorType` of heartbeat events.
    pub use_indicator: bool,
}

impl BeatVisibility {
    /// True if nothing of a beat would be seen anywhere.
    pub fn is_nothing(self) -> bool {
        !self.show_ok && !self.show_alerts && !self.use_indicator
    }
}

/// `channels.<id>.dms.<peer>`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DirectChat {
    history_limit: Option<i64>,
}

impl Channels {
    /// Visibility of heartbeats on a channel, or by default: an account's settings go before its
    /// channel's, and those before `channels.defaults`.
    pub fn beat_visibility(&self, channel: Option<&str>, account: Option<&str>) -> BeatVisibility {
        let section = channel.and_then(|id| self.0.get(id));
        let account = account.and_then(|id| section?.account(id));
        let scopes =
            [account, section, self.0.get("defaults")].map(|scope| scope.map(|scope| scope.heartbeat));
        let first = |flag: fn(&BeatFlags) -> Option<bool>| scopes.iter().flatten().find_map(flag);
        BeatVisibility {
            show_ok: first(|flags| flags.show_ok).unwrap_or(false),
            show_alerts: first(|flags| flags.show_alerts).unwrap_or(true),
            use_indicator: first(|flags| flags.use_indicator).unwrap_or(true),
        }
    }

    /// Reply settings of an account, then those of its channel: the layer that is asked first comes
    /// first.
    pub fn replies(&self, channel: &str, account: Option<&str>) -> impl Iterator<Item = &ChannelReplies> {
        let section = self.0.get(channel);
        let own = account.and_then(|account| section?.account(account));
        own.into_iter().chain(section).map(|scope| &scope.replies)
    }

    /// True if a channel has an account of this name. Without any of its own it has one, `default`.
    pub fn has_account(&self, channel: &str, account: &str) -> bool {
        match self.0.get(channel) {
            Some(section) if !section.accounts.is_empty() => section.account(account).is_some(),
            Some(_) | None => normalize_account_id(account) == "default",
        }
    }

    /// Number of a person's turns in a direct chat that are sent to the model, as configured (0 is
    /// all of them); `None` where no limit is set. The first peer that has a limit of its own
    /// counts, and what an account says goes before what its channel says. Peers are compared
    /// whatever their case, since session keys have none.
    pub fn history_limit(&self, channel: &str, account: Option<&str>, peers: &[&str]) -> Option<i64> {
        let channel = self.0.get(channel)?;
        let account = account.and_then(|account| channel.account(account));
        let scopes = || account.into_iter().chain([channel]);
        let of_peer = |peer: &&str| scopes().find_map(|scope| scope.of_peer(peer));
        peers.iter().find_map(of_peer).or_else(|| scopes().find_map(|scope| scope.dm_history_limit))
    }
}

impl Channel {
    fn account(&self, id: &str) -> Option<&Self> {
        let id = normalize_account_id(id);
        self.accounts.iter().find(|(name, _)| normalize_account_id(name) == id).map(|(_, account)| account)
    }

    fn of_peer(&self, peer: &str) -> Option<i64> {
        let is_meant = |id: &str| id.trim().to_lowercase() == peer.to_lowercase();
        self.dms.iter().find(|(id, _)| is_meant(id)).and_then(|(_, chat)| chat.history_limit)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_of_a_beat_is_said_by_account_then_channel_then_for_all() {
        let channels: Channels = serde_json::from_value(json!({
            "defaults": {"heartbeat": {"showOk": true}},
            "telegram": {"heartbeat": {"showAlerts": false}, "accounts": {"Work": {"heartbeat": {"showOk": false}}}},
        }))
        .unwrap();
        let shown = |channel, account| {
            let shown = channels.beat_visibility(channel, account);
            (shown.show_ok, shown.show_alerts, shown.use_indicator)
        };
        assert_eq!(shown(None, None), (true, true, true));
        assert_eq!(shown(Some("telegram"), None), (true, false, true));
        assert_eq!(shown(Some("telegram"), Some("work")), (false, false, true));
        assert_eq!(shown(Some("slack"), Some("x")), (true, true, true));
        let none = Channels::default().beat_visibility(None, None);
        assert_eq!((none.show_ok, none.show_alerts, none.use_indicator), (false, true, true));
    }

    #[test]
    fn a_channel_without_accounts_has_the_default_one() {
        let channels: Channels =
            serde_json::from_value(json!({"telegram": {"accounts": {"work": {}}}, "slack": {}})).unwrap();
        let rows = [
            ("telegram", "Work", true),
            ("telegram", "default", false),
            ("slack", "default", true),
            ("slack", "work", false),
            ("signal", "default", true),
        ];
        for (channel, account, expect) in rows {
            assert_eq!(channels.has_account(channel, account), expect, "{channel} {account}");
        }
    }
}
