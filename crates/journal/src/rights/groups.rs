//! Tool policies of the group that a run is for (spec `channels.md` §2.4): of the message's own,
//! else of its session's, and of the session that spawned it.

use openclaw_channels::Address;
use openclaw_channels::access::AccessSettings;
use openclaw_channels::access::group_tools::{self, Voice};
use openclaw_channels::platforms::DEFAULT_ACCOUNT;
use openclaw_config::Config;
use openclaw_config::settings::ToolPolicy;
use openclaw_sessions::entry::delivery;
use openclaw_sessions::key::KeyForm;
use openclaw_sessions::{SessionEntry, SessionKey};
use serde_json::Value;

use crate::caller::ChatSender;

/// Treatment of the group of the session that spawned a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spawner {
    /// The group counts as the sub-agent's own: the rights that it was started with are not known.
    Counts,
    /// The group is already accounted for, in the rights that the sub-agent was started with or that the request carries.
    Counted,
}

/// A group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlatformGroup<'a> {
    channel: &'a str,
    group: &'a str,
}

/// Returns the policies for a sender in a group; empty for direct chats, and if the group's settings name none.
pub(super) fn of_sender(config: &Config, sender: ChatSender<'_>) -> Vec<ToolPolicy> {
    if sender.is_direct {
        return Vec::new();
    }
    let Address { channel, account, target, .. } = sender.address;
    policies(config, PlatformGroup { channel, group: target }, account, Voice::Of(sender.listed))
}

/// Returns the policies of the group that a session belongs to, for a request from elsewhere.
pub fn of_session(
    config: &Config,
    key: &SessionKey,
    entry: &SessionEntry,
    spawner: Spawner,
) -> Vec<ToolPolicy> {
    of_place(config, key, entry, spawner, Voice::Nobodys)
}

/// Returns the policies of everybody who may speak in the session's group, for a run that nobody asks for.
pub(super) fn of_everybody(
    config: &Config,
    key: &SessionKey,
    entry: &SessionEntry,
    spawner: Spawner,
) -> Vec<ToolPolicy> {
    of_place(config, key, entry, spawner, Voice::Anybodys)
}

/// Returns the policies for a tool call by a client: the group is the session's, on the channel and account that the client names.
pub fn of_client(
    config: &Config,
    key: &SessionKey,
    entry: &SessionEntry,
    (channel, account): (Option<&str>, Option<&str>),
) -> Vec<ToolPolicy> {
    let from = spawner_of(entry);
    let Some(place) = place_of(key, from.as_ref()) else { return Vec::new() };
    let place = PlatformGroup { channel: channel.unwrap_or(place.channel), ..place };
    match account {
        Some(account) => policies(config, place, account, Voice::Nobodys),
        None => of_accounts(config, place, entry, Voice::Nobodys),
    }
}

fn of_place(
    config: &Config,
    key: &SessionKey,
    entry: &SessionEntry,
    spawner: Spawner,
    voice: Voice<'_>,
) -> Vec<ToolPolicy> {
    let from = spawner_of(entry).filter(|_| spawner == Spawner::Counts);
    let Some(place) = place_of(key, from.as_ref()) else { return Vec::new() };
    of_accounts(config, place, entry, voice)
}

/// Returns the policies of the account that the row names for the channel. If it names none, those of all the channel's accounts apply.
fn of_accounts(
    config: &Config,
    place: PlatformGroup<'_>,
    entry: &SessionEntry,
    voice: Voice<'_>,
) -> Vec<ToolPolicy> {
    let route = delivery::of_entry(entry);
    let own = route.filter(|route| route.channel.as_deref() == Some(place.channel));
    if let Some(account) = own.and_then(|route| route.account_id) {
        return policies(config, place, &account, voice);
    }
    let accounts = config.document().pointer(&format!("/channels/{}/accounts", place.channel));
    let named = accounts.and_then(Value::as_object).into_iter().flat_map(|accounts| accounts.keys());
    let all = named.map(String::as_str).chain([DEFAULT_ACCOUNT]);
    let mut found: Vec<ToolPolicy> =
        all.flat_map(|account| policies(config, place, account, voice)).collect();
    // Accounts that say nothing themselves have the same.
    found.sort();
    found.dedup();
    found
}

fn policies(config: &Config, place: PlatformGroup<'_>, account: &str, voice: Voice<'_>) -> Vec<ToolPolicy> {
    match AccessSettings::of(config, place.channel, account) {
        Ok(settings) => group_tools::policies_in(&settings, place.channel, place.group, voice),
        Err(error) => {
            tracing::error!(channel = place.channel, %error, "the tools of a group can't be read: it has none");
            vec![group_tools::nothing()]
        }
    }
}

fn spawner_of(entry: &SessionEntry) -> Option<SessionKey> {
    SessionKey::parse(entry.spawned_by.as_deref()?).ok()
}

/// The group of a session, else of the one that spawned it.
fn place_of<'a>(key: &'a SessionKey, spawner: Option<&'a SessionKey>) -> Option<PlatformGroup<'a>> {
    of_key(key).or_else(|| of_key(spawner?))
}

fn of_key(key: &SessionKey) -> Option<PlatformGroup<'_>> {
    let (KeyForm::Group { channel, id } | KeyForm::Channel { channel, id }) = key.form() else { return None };
    let group = id.split_once(":topic:").map_or(id, |(group, _)| group);
    Some(PlatformGroup { channel, group })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    fn config(channels: &serde_json::Value) -> Arc<Config> {
        let document = json!({"channels": channels}).to_string();
        Config::from_json5(&document, &Environment::new([("HOME", "/home/user")], "/")).unwrap()
    }

    fn row(row: serde_json::Value) -> SessionEntry {
        serde_json::from_value(row).unwrap()
    }

    fn denying(tools: &[&str]) -> Vec<ToolPolicy> {
        let denied =
            |tool: &&str| ToolPolicy { deny: Some(vec![(*tool).to_owned()]), ..ToolPolicy::default() };
        tools.iter().map(denied).collect()
    }

    #[test]
    fn a_group_has_its_tools_whoever_speaks_to_its_session() {
        let config = config(&json!({"telegram": {"groups": {"-1": {"tools": {"deny": ["exec"]}}}}}));
        let spawned = json!({"spawnedBy": "agent:main:telegram:group:-1:topic:4"});
        for (key, entry, expect) in [
            ("agent:main:main", json!({}), &[][..]),
            ("agent:main:telegram:group:-1", json!({}), &["exec"]),
            ("agent:main:telegram:group:-1:topic:4", json!({}), &["exec"]),
            ("agent:main:telegram:group:-2", json!({}), &[]),
            ("agent:main:slack:group:-1", json!({}), &[]),
            ("agent:main:subagent:x", spawned, &["exec"]),
        ] {
            let session = SessionKey::parse(key).unwrap();
            let found = of_session(&config, &session, &row(entry), Spawner::Counts);
            assert_eq!(found, denying(expect), "{key}");
        }
    }

    #[test]
    fn the_rules_of_an_accounts_groups_hold_where_no_row_names_the_account() {
        let of = |tool: &str| json!({"groups": {"-1": {"tools": {"deny": [tool]}}}});
        let config = config(&json!({"telegram": {"accounts": {"work": of("exec"), "home": of("read")}}}));
        let session = SessionKey::parse("agent:main:telegram:group:-1").unwrap();
        for (entry, expect) in [
            (json!({}), &["exec", "read"][..]),
            (json!({"deliveryContext": {"channel": "telegram", "to": "-1", "accountId": "work"}}), &["exec"]),
            (json!({"lastChannel": "telegram", "lastTo": "-1", "lastAccountId": "home"}), &["read"]),
            // The account belongs to another channel.
            (
                json!({"deliveryContext": {"channel": "slack", "to": "c", "accountId": "work"}}),
                &["exec", "read"],
            ),
        ] {
            let mut found = of_session(&config, &session, &row(entry.clone()), Spawner::Counts);
            found.sort();
            assert_eq!(found, denying(expect), "{entry}");
        }
    }
}
