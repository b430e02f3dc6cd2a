//! Switches that turn an account off (spec `config.md` §11). A platform with credentials is on
//! unless the file says otherwise: for the platform, for the account, or for the plugin that brings
//! the platform in OpenClaw 2026.2.9.

use std::fmt;

use openclaw_config::{Config, PluginSwitch, account_section, plugin_switches, registry, turn_on_command};
use serde_json::Value;

use crate::Unusable;

/// A switch that is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOff {
    /// Path of the switch in the configuration.
    pub key: String,
    /// Owner of the switch.
    pub of: SwitchOwner,
}

/// Owner of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchOwner {
    /// The platform's: somebody wants it so.
    Channel,
    /// The account's: somebody wants it so.
    Account,
    /// The plugin's, which may be off without anybody's meaning this platform by it: all of them.
    Plugin(Vec<PluginSwitch>),
}

/// Returns the switch that turns an account off. If there are several, one that was set on purpose
/// is preferred.
pub fn switched_off(config: &Config, channel: &str, account: &str) -> Option<SwitchedOff> {
    let section = config.document().get("channels").and_then(|channels| channels.get(channel));
    let is_off = |keys: &Value| keys.get("enabled") == Some(&Value::Bool(false));
    if section.is_some_and(is_off) {
        return Some(SwitchedOff { key: format!("channels.{channel}.enabled"), of: SwitchOwner::Channel });
    }
    let own = account_section(config.document(), channel, account);
    if let Some((name, _)) = own.filter(|(_, keys)| is_off(keys)) {
        let key = format!("channels.{channel}.accounts.{name}.enabled");
        return Some(SwitchedOff { key, of: SwitchOwner::Account });
    }
    let by_plugin = plugin_switches(config.document(), channel);
    let key = by_plugin.first()?.key();
    Some(SwitchedOff { key, of: SwitchOwner::Plugin(by_plugin) })
}

/// Returns the reason why an account can't be used, for people: if it is switched off, the text
/// names the account, the switch and how to switch it on.
pub fn told_unusable(config: &Config, channel: &str, account: &str, why: &Unusable) -> String {
    match why {
        Unusable::Disabled => match switched_off(config, channel, account) {
            Some(off) => {
                let label = registry::by_any_name(channel).map_or(channel, |info| info.label);
                format!("{label} {account}: {off}. Run: {}", off.remedy())
            }
            None => why.to_string(),
        },
        Unusable::Unknown(_) | Unusable::NotConfigured { .. } => why.to_string(),
    }
}

impl SwitchedOff {
    /// The command that switches it on.
    pub fn remedy(&self) -> String {
        match &self.of {
            SwitchOwner::Plugin(switches) => turn_on_command(switches),
            SwitchOwner::Channel | SwitchOwner::Account => format!("openclaw config set {} true", self.key),
        }
    }

    /// Returns true if the account may be off unintentionally: a person who turned off the platform
    /// or the account itself knows about it.
    pub fn is_unwanted(&self) -> bool {
        matches!(self.of, SwitchOwner::Plugin(_))
    }
}

impl fmt::Display for SwitchedOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            SwitchOwner::Plugin(switches) => {
                let all: Vec<String> = switches.iter().map(PluginSwitch::to_string).collect();
                write!(f, "it is switched off by {}", all.join(", and by "))
            }
            SwitchOwner::Channel | SwitchOwner::Account => {
                write!(f, "it is switched off by {}: false", self.key)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_that_is_off_is_named_with_the_switch() {
        let file = json!({"channels": {"telegram": {"accounts": {"work": {"enabled": false}}}}});
        let config = Config::from_json5(&file.to_string(), &Environment::new([("HOME", "/h")], "/")).unwrap();
        assert_eq!(
            told_unusable(&config, "telegram", "work", &Unusable::Disabled),
            "Telegram work: it is switched off by channels.telegram.accounts.work.enabled: false. Run: openclaw config set \
             channels.telegram.accounts.work.enabled true"
        );
    }

    #[test]
    fn the_switch_that_is_off_is_named() {
        let off = json!({"telegram": {"enabled": false}});
        let rows = [
            (json!({}), None),
            (json!({"plugins": {"entries": {"telegram": {}, "discord": {"enabled": false}}}}), None),
            (json!({"plugins": {"entries": off}}), Some("plugins.entries.telegram.enabled")),
            (json!({"plugins": {"entries": off}, "channels": off}), Some("channels.telegram.enabled")),
            (json!({"plugins": {"deny": ["telegram"], "allow": ["discord"]}}), Some("plugins.deny")),
            (json!({"plugins": {"allow": ["discord"]}}), Some("plugins.allow")),
            (json!({"plugins": {"enabled": false}}), Some("plugins.enabled")),
            (
                json!({"channels": {"telegram": {"accounts": {"Work": {"enabled": false}, "b": {}}}}}),
                Some("channels.telegram.accounts.Work.enabled"),
            ),
            (json!({"channels": {"telegram": {"accounts": {"b": {"enabled": false}}}}}), None),
        ];
        for (file, expect) in rows {
            let config =
                Config::from_json5(&file.to_string(), &Environment::new([("HOME", "/h")], "/")).unwrap();
            let found = switched_off(&config, "telegram", "work");
            assert_eq!(found.as_ref().map(|found| found.key.as_str()), expect, "{file}");
        }
    }
}
