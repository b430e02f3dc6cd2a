//! `channels.*`: what is read of the sections of chat platforms.

use std::collections::BTreeMap;

use serde::Deserialize;

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
    accounts: BTreeMap<String, Channel>,
}

/// `channels.<id>.dms.<peer>`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DirectChat {
    history_limit: Option<i64>,
}

impl Channels {
    /// How many turns of people a direct chat sends to the model, as it is written (0 is all of them); nothing where nothing
    /// is set. The first peer that has a limit of its own counts, and what an account says goes before what its channel
    /// says. Peers are compared whatever their case, since session keys have none; accounts as the caller does.
    pub fn history_limit(
        &self,
        channel: &str,
        is_account: impl Fn(&str) -> bool,
        peers: &[&str],
    ) -> Option<i64> {
        let channel = self.0.get(channel)?;
        let account = channel.accounts.iter().find(|(id, _)| is_account(id)).map(|(_, account)| account);
        let scopes = || account.into_iter().chain([channel]);
        let of_peer = |peer: &&str| scopes().find_map(|scope| scope.of_peer(peer));
        peers.iter().find_map(of_peer).or_else(|| scopes().find_map(|scope| scope.dm_history_limit))
    }
}

impl Channel {
    fn of_peer(&self, peer: &str) -> Option<i64> {
        let is_meant = |id: &str| id.trim().to_lowercase() == peer.to_lowercase();
        self.dms.iter().find(|(id, _)| is_meant(id)).and_then(|(_, chat)| chat.history_limit)
    }
}
