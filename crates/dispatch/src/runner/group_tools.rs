//! The tools of the group that a run is for (spec `channels.md` §2.4): of the message's own, else of its session's, and of the session that
//! spawned it.

use openclaw_channels::access::{AccessSettings, group_tools};
use openclaw_channels::platforms::DEFAULT_ACCOUNT;
use openclaw_channels::{ConversationKind, Sender};
use openclaw_config::Config;
use openclaw_config::settings::ToolPolicy;
use openclaw_sessions::key::KeyForm;
use openclaw_sessions::{SessionEntry, SessionKey};

use crate::origin::Origin;
use crate::session_tools::invoke::CallerChannel;

/// A group, and who speaks there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place<'a> {
    channel: &'a str,
    account: &'a str,
    group: &'a str,
    sender: Option<&'a Sender>,
}

/// What the group's settings say of tools; `None` where there is no group, or it says nothing.
pub(crate) fn policy(
    config: &Config,
    key: &SessionKey,
    entry: &SessionEntry,
    origin: Option<&Origin>,
) -> Option<ToolPolicy> {
    let spawner = spawner_of(entry);
    let said = origin.and_then(of_message);
    policy_of(config, said.or_else(|| of_session(key, spawner.as_ref(), entry))?)
}

/// The same for a call of a client: the group is the session's, on the channel and account on which the client says it speaks.
pub(crate) fn policy_for_client(
    config: &Config,
    key: &SessionKey,
    entry: &SessionEntry,
    caller: &CallerChannel,
) -> Option<ToolPolicy> {
    let spawner = spawner_of(entry);
    let place = of_session(key, spawner.as_ref(), entry)?;
    let channel = caller.channel.as_deref().unwrap_or(place.channel);
    let account = caller.account.as_deref().unwrap_or(place.account);
    policy_of(config, Place { channel, account, ..place })
}

fn policy_of(config: &Config, place: Place<'_>) -> Option<ToolPolicy> {
    match AccessSettings::of(config, place.channel, place.account) {
        Ok(settings) => group_tools::policy_in(&settings, place.group, place.sender),
        Err(error) => {
            tracing::error!(channel = place.channel, %error, "the tools of a group can't be read: it has none");
            Some(group_tools::nothing())
        }
    }
}

fn of_message(origin: &Origin) -> Option<Place<'_>> {
    (origin.conversation.kind != ConversationKind::Direct).then(|| Place {
        channel: &origin.address.channel,
        account: &origin.address.account,
        group: &origin.address.target,
        sender: Some(&origin.sender),
    })
}

fn spawner_of(entry: &SessionEntry) -> Option<SessionKey> {
    SessionKey::parse(entry.spawned_by.as_deref()?).ok()
}

/// The group of a session, else of the one that spawned it.
fn of_session<'a>(
    key: &'a SessionKey,
    spawner: Option<&'a SessionKey>,
    entry: &'a SessionEntry,
) -> Option<Place<'a>> {
    let account = entry.delivery_context.as_ref().and_then(|context| context.account_id.as_deref());
    let account = account.unwrap_or(DEFAULT_ACCOUNT);
    of_key(key, account).or_else(|| of_key(spawner?, account))
}

fn of_key<'a>(key: &'a SessionKey, account: &'a str) -> Option<Place<'a>> {
    let (KeyForm::Group { channel, id } | KeyForm::Channel { channel, id }) = key.form() else { return None };
    let group = id.split_once(":topic:").map_or(id, |(group, _)| group);
    Some(Place { channel, account, group, sender: None })
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_has_its_tools_whoever_speaks_to_its_session() {
        let document = json!({"channels": {"telegram": {"groups": {"-1": {"tools": {"deny": ["exec"]}}}}}});
        let config =
            Config::from_json5(&document.to_string(), &Environment::new([("HOME", "/home/user")], "/"));
        let config = config.unwrap();
        let row = |row: serde_json::Value| serde_json::from_value::<SessionEntry>(row).unwrap();
        let spawned = json!({"spawnedBy": "agent:main:telegram:group:-1:topic:4"});
        let denied = ToolPolicy { deny: Some(vec!["exec".to_owned()]), ..ToolPolicy::default() };
        for (key, entry, expect) in [
            ("agent:main:main", json!({}), None),
            ("agent:main:telegram:group:-1", json!({}), Some(&denied)),
            ("agent:main:telegram:group:-1:topic:4", json!({}), Some(&denied)),
            ("agent:main:telegram:group:-2", json!({}), None),
            ("agent:main:slack:group:-1", json!({}), None),
            ("agent:main:subagent:x", spawned, Some(&denied)),
        ] {
            let session = SessionKey::parse(key).unwrap();
            assert_eq!(policy(&config, &session, &row(entry), None).as_ref(), expect, "{key}");
        }
    }
}
