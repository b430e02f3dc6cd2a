//! What switches an account off (spec `config.md` §11). A platform with credentials is on unless the file says otherwise: for the platform,
//! for the account, or by the entry of the plugin that brings the platform in OpenClaw 2026.2.9, which writes `false` there by itself.

use std::fmt;

use openclaw_config::Config;
use openclaw_sessions::key::normalize_account_id;
use serde_json::Value;

/// A switch that is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOff {
    /// Its path in the configuration.
    pub key: String,
    /// Whose it is.
    pub of: Switch,
}

/// Whose a switch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// The platform's: somebody wants it so.
    Channel,
    /// The account's: somebody wants it so.
    Account,
    /// The plugin's, which may be off without anybody's doing.
    Plugin,
}

/// What switches an account off. Where more than one does, one that somebody wanted.
pub fn switched_off(config: &Config, channel: &str, account: &str) -> Option<SwitchedOff> {
    let section = config.document().get("channels").and_then(|channels| channels.get(channel));
    let is_off = |keys: &Value| keys.get("enabled") == Some(&Value::Bool(false));
    if section.is_some_and(is_off) {
        return Some(SwitchedOff { key: format!("channels.{channel}.enabled"), of: Switch::Channel });
    }
    let id = normalize_account_id(account);
    let accounts = section.and_then(|keys| keys.get("accounts")).and_then(Value::as_object);
    let own = accounts.into_iter().flatten().find(|(name, _)| normalize_account_id(name) == id);
    if let Some((name, _)) = own.filter(|(_, keys)| is_off(keys)) {
        let key = format!("channels.{channel}.accounts.{name}.enabled");
        return Some(SwitchedOff { key, of: Switch::Account });
    }
    plugin_is_off(config.document(), channel)
        .then(|| SwitchedOff { key: plugin_switch(channel).join("."), of: Switch::Plugin })
}

/// Whether the entry of a platform's plugin says that it is off.
pub fn plugin_is_off(document: &Value, channel: &str) -> bool {
    let entry = document.get("plugins").and_then(|plugins| plugins.get("entries")?.get(channel));
    entry.and_then(|entry| entry.get("enabled")) == Some(&Value::Bool(false))
}

/// Where that stands.
pub fn plugin_switch(channel: &str) -> [String; 4] {
    ["plugins", "entries", channel, "enabled"].map(str::to_owned)
}

impl SwitchedOff {
    /// The command that switches it on.
    pub fn remedy(&self) -> String {
        format!("openclaw config set {} true", self.key)
    }
}

impl fmt::Display for SwitchedOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_itself = match self.of {
            Switch::Plugin => ", which OpenClaw 2026.2.9 writes by itself",
            Switch::Channel | Switch::Account => "",
        };
        write!(f, "it is switched off by {}: false{by_itself}", self.key)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_switch_that_is_off_is_named() {
        let off = json!({"telegram": {"enabled": false}});
        let rows = [
            (json!({}), None),
            (json!({"plugins": {"entries": {"telegram": {}, "discord": {"enabled": false}}}}), None),
            (json!({"plugins": {"entries": off}}), Some("plugins.entries.telegram.enabled")),
            (json!({"plugins": {"entries": off}, "channels": off}), Some("channels.telegram.enabled")),
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
