//! A group that has got another id keeps its settings: `groups.<old>` becomes `groups.<new>` in the configuration (spec `channels.md` §7.2).

use std::sync::Arc;

use openclaw_config::write::{Actor, WriteError, write};
use openclaw_config::{Loaded, account_section, load, value_path};
use openclaw_dispatch::known_chats::{FollowGroup, MovedGroup};
use serde_json::{Map, Value};

use crate::reload::Reload;

/// Number of attempts to plan a change anew because somebody else wrote the file meanwhile.
const TRIES: usize = 3;

/// Lets the configuration of this gateway follow groups.
pub(crate) fn follow(reload: Reload) -> FollowGroup {
    Arc::new(move |moved| {
        let reload = reload.clone();
        Box::pin(async move { rename(&reload, moved).await })
    })
}

async fn rename(reload: &Reload, moved: MovedGroup) {
    let environment = reload.environment().clone();
    let MovedGroup { channel, from, to, .. } = moved.clone();
    let write = move || {
        (0..TRIES).find_map(|at| match change(&load(&environment), &moved) {
            Err(WriteError::Changed) if at + 1 < TRIES => None,
            done => Some(done),
        })
    };
    match tokio::task::spawn_blocking(write).await {
        Ok(Some(Ok(true))) => {
            reload.now().await;
            tracing::info!(channel, from, to, "the settings of a group that has another id now follow it");
        }
        Ok(Some(Ok(false)) | None) => {}
        Ok(Some(Err(error))) => {
            tracing::warn!(channel, from, to, %error, "a group has another id now, and its settings could not follow it: rename it in groups");
        }
        Err(error) => tracing::error!(channel, %error, "the settings of a group could not follow it"),
    }
}

/// `false`: nothing is said of the group.
fn change(loaded: &Loaded, moved: &MovedGroup) -> Result<bool, WriteError> {
    let mut next = loaded.snapshot.parsed.clone();
    if !renamed(&mut next, moved) {
        return Ok(false);
    }
    write(loaded, &next, Actor::Channel).map(|_| true)
}

/// Renames the group where its channel names it, and its account.
fn renamed(document: &mut Value, moved: &MovedGroup) -> bool {
    let section = ["channels", &moved.channel].map(str::to_owned).to_vec();
    let own = account_section(document, &moved.channel, &moved.account);
    let own = own.map(|(name, _)| [section.clone(), vec!["accounts".to_owned(), name.to_owned()]].concat());
    let mut any = false;
    for place in [Some(section), own].into_iter().flatten() {
        let path = [place, vec!["groups".to_owned()]].concat();
        let Some(Value::Object(groups)) = value_path::get(document, &path) else { continue };
        if let Some(groups) = with_name(groups, &moved.from, &moved.to) {
            value_path::set(document, &path, Value::Object(groups));
            any = true;
        }
    }
    any
}

/// Renames a group in place, keeping the order; `None` where the old name is missing, or the new
/// one exists.
fn with_name(groups: &Map<String, Value>, from: &str, to: &str) -> Option<Map<String, Value>> {
    if !groups.contains_key(from) || groups.contains_key(to) {
        return None;
    }
    let name = |key: &String| if key == from { to.to_owned() } else { key.clone() };
    Some(groups.iter().map(|(key, group)| (name(key), group.clone())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_is_renamed_where_it_is_named() {
        let moved = MovedGroup {
            channel: "telegram".to_owned(),
            account: "work".to_owned(),
            from: "-5".to_owned(),
            to: "-1005".to_owned(),
        };
        let mut document = json!({"channels": {"telegram": {
            "groups": {"-4": {}, "-5": {"requireMention": false}, "*": {}},
            "accounts": {"Work": {"groups": {"-5": 1}}, "other": {"groups": {"-5": 2}}},
        }}});
        assert!(renamed(&mut document, &moved));
        let telegram = &document["channels"]["telegram"];
        assert_eq!(telegram["groups"].to_string(), r#"{"-4":{},"-1005":{"requireMention":false},"*":{}}"#);
        assert_eq!(telegram["accounts"]["Work"]["groups"], json!({"-1005": 1}));
        assert_eq!(telegram["accounts"]["other"]["groups"], json!({"-5": 2}), "another bot was not told");
        assert!(!renamed(&mut document, &moved), "the new name is there");
    }
}
