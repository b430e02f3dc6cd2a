//! Warnings about accounts: from a running gateway, or without one from the configuration.

use openclaw_channels::{Channel, SwitchedOff, Unusable, switched_off};
use openclaw_config::Config;
use openclaw_gateway::platforms;
use serde_json::Value;

use super::{DEFAULT, is_set};

/// Warning about an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Warning {
    /// The platform.
    pub(in crate::commands) channel: String,
    /// The account; more than one where it is about them together.
    pub(in crate::commands) account: String,
    /// Description of the problem and its remedy.
    pub(in crate::commands) text: String,
    /// True if the warning names the setting that switches the platform off.
    pub(in crate::commands) is_switch: bool,
}

impl Warning {
    pub(in crate::commands) fn line(&self) -> String {
        format!("- {} {}: {}", self.channel, self.account, self.text)
    }
}

/// Warnings about an account from a gateway's answer to `channels.status`.
pub(in crate::commands) fn told(channel: &str, account: &Value) -> Vec<Warning> {
    let name = account.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    // Of an account that is off the configuration can be wrong in nothing else.
    let is_off = account.get("enabled").and_then(Value::as_bool) == Some(false);
    let issues = account.get("issues").and_then(Value::as_array);
    let said = |issue: &Value| {
        let text = |key: &str| issue.get(key).and_then(Value::as_str);
        let fix = text("fix").map(|fix| format!(" ({fix})")).unwrap_or_default();
        let text = format!("{}{fix}", text("message")?);
        let is_switch = is_off && issue.get("kind").and_then(Value::as_str) == Some("config");
        Some(Warning { channel: channel.to_owned(), account: name.to_owned(), text, is_switch })
    };
    issues.into_iter().flatten().filter_map(said).collect()
}

/// The platforms that somebody has set up.
pub(in crate::commands) fn set_up(config: &Config) -> Vec<&'static str> {
    let platforms = platforms();
    let set = platforms.channels().iter().filter(|channel| is_set(config, channel.as_ref()));
    set.map(|channel| channel.info().id).collect()
}

/// Warnings from the configuration alone about accounts that were set up and can't work.
pub(in crate::commands) fn of_configuration(config: &Config) -> Vec<Warning> {
    let platforms = platforms();
    let set = platforms.channels().iter().filter(|channel| is_set(config, channel.as_ref()));
    set.flat_map(|channel| of_channel(config, channel.as_ref())).collect()
}

fn of_channel(config: &Config, channel: &dyn Channel) -> Vec<Warning> {
    let id = channel.info().id;
    let warning = |account: &str, text: String, is_switch: bool| Warning {
        channel: id.to_owned(),
        account: account.to_owned(),
        text,
        is_switch,
    };
    let mut found = Vec::new();
    let mut marks: Vec<([u8; 32], Vec<String>)> = Vec::new();
    for account in channel.account_ids(config) {
        match channel.account(config, &account) {
            Ok(_) => {}
            Err(Unusable::NotConfigured { why, fix }) => {
                let fix = fix.map(|fix| format!(" ({fix})")).unwrap_or_default();
                found.push(warning(&account, format!("{why}{fix}"), false));
            }
            Err(Unusable::Disabled) => {
                let off = switched_off(config, id, &account).filter(SwitchedOff::is_unwanted);
                found
                    .extend(off.map(|off| warning(&account, format!("{off} (Run: {})", off.remedy()), true)));
                continue;
            }
            Err(Unusable::Unknown(_)) => continue,
        }
        let Some(mark) = channel.credential_mark(config, &account) else { continue };
        match marks.iter_mut().find(|(known, _)| *known == mark) {
            Some((_, accounts)) => accounts.push(account),
            None => marks.push((mark, vec![account])),
        }
    }
    for (_, accounts) in marks.iter().filter(|(_, accounts)| accounts.len() > 1) {
        let text =
            "they have the same bot token, and only one of them can receive; give each a bot of its own";
        found.push(warning(&accounts.join(", "), text.to_owned(), false));
    }
    found
}
