//! Keys of `plugins` that switch a bundled plugin off, and with it the platform that it brings in
//! OpenClaw 2026.2.9: `enabled` for all of them, `deny`, an `allow` that has entries and does not
//! name it, and the plugin's own entry, in this order. Entries of the lists count without the
//! spaces around them, and an empty `allow` allows all, as in 2.9.

use std::fmt;

use serde_json::{Value, json};

use crate::value_path::{self, texts};

/// A key of `plugins` that switches a plugin off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSwitch {
    plugin: String,
    by: By,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    /// `plugins.enabled: false`.
    All,
    /// `plugins.deny` names it; what else is denied.
    Denied(Vec<String>),
    /// `plugins.allow` names others.
    NotAllowed(Vec<String>),
    /// The plugin's own entry: OpenClaw 2026.2.9 writes `false` there by itself for a platform that
    /// is new.
    Entry,
}

/// The keys that switch a plugin off.
pub fn plugin_switches(document: &Value, plugin: &str) -> Vec<PluginSwitch> {
    let Some(section) = document.get("plugins") else { return Vec::new() };
    let list = |key: &str| -> Vec<String> {
        let entries = texts(section.get(key)).map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(str::to_owned).collect()
    };
    let is_off =
        |keys: Option<&Value>| keys.and_then(|keys| keys.get("enabled")) == Some(&Value::Bool(false));
    let (mut denied, allowed) = (list("deny"), list("allow"));
    let mut found = Vec::new();
    if is_off(Some(section)) {
        found.push(By::All);
    }
    if denied.iter().any(|id| id == plugin) {
        denied.retain(|id| id != plugin);
        found.push(By::Denied(denied));
    }
    if !allowed.is_empty() && !allowed.iter().any(|id| id == plugin) {
        found.push(By::NotAllowed(allowed));
    }
    if is_off(section.get("entries").and_then(|entries| entries.get(plugin))) {
        found.push(By::Entry);
    }
    found.into_iter().map(|by| PluginSwitch { plugin: plugin.to_owned(), by }).collect()
}

/// The command that takes all of these away.
pub fn turn_on_command(switches: &[PluginSwitch]) -> String {
    let commands: Vec<String> = switches.iter().map(PluginSwitch::command).collect();
    commands.join(" && ")
}

impl PluginSwitch {
    /// Path of the key.
    pub fn key(&self) -> String {
        self.path().join(".")
    }

    fn path(&self) -> Vec<String> {
        let path: &[&str] = match self.by {
            By::All => &["plugins", "enabled"],
            By::Denied(_) => &["plugins", "deny"],
            By::NotAllowed(_) => &["plugins", "allow"],
            By::Entry => &["plugins", "entries", &self.plugin, "enabled"],
        };
        path.iter().map(|part| (*part).to_owned()).collect()
    }

    /// Value to set there instead. `None`: nothing.
    fn instead(&self) -> Option<Value> {
        match &self.by {
            By::All | By::Entry => Some(json!(true)),
            By::Denied(others) => Some(json!(others)).filter(|_| !others.is_empty()),
            By::NotAllowed(others) => {
                Some(others.iter().map(String::as_str).chain([self.plugin.as_str()]).collect())
            }
        }
    }

    /// The command that takes it away.
    fn command(&self) -> String {
        let key = self.key();
        match self.instead() {
            None => format!("openclaw config unset {key}"),
            Some(Value::Bool(value)) => format!("openclaw config set {key} {value}"),
            Some(list) => {
                // Only a plugin from elsewhere could have a quote in its name.
                format!("openclaw config set {key} '{}'", list.to_string().replace('\'', r"'\''"))
            }
        }
    }

    /// Takes it away.
    pub fn turn_on(&self, document: &mut Value) {
        match self.instead() {
            Some(value) => value_path::set(document, &self.path(), value),
            None => {
                value_path::unset(document, &self.path());
            }
        }
    }

    /// Description of the setting: `plugins.deny names telegram`.
    pub fn says(&self) -> String {
        let (key, plugin) = (self.key(), &self.plugin);
        match self.by {
            By::All | By::Entry => format!("{key} is false"),
            By::Denied(_) => format!("{key} names {plugin}"),
            By::NotAllowed(_) => format!("{key} does not name {plugin}"),
        }
    }

    /// True if OpenClaw 2026.2.9 writes it by itself, so that nobody may have wanted it.
    pub fn is_written_by_itself(&self) -> bool {
        self.by == By::Entry
    }
}

/// Shows the setting that switches the plugin off.
impl fmt::Display for PluginSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key();
        match self.by {
            By::All => write!(f, "{key}: false"),
            By::Denied(_) => write!(f, "{key}, which names {}", self.plugin),
            By::NotAllowed(_) => write!(f, "{key}, which does not name {}", self.plugin),
            By::Entry => write!(f, "{key}: false, which OpenClaw 2026.2.9 writes by itself"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_is_found_and_its_command_takes_it_away() {
        const ON: [&str; 0] = [];
        let entry = json!({"telegram": {"enabled": false}, "discord": {"enabled": true}});
        let all = "openclaw config set plugins.enabled true && openclaw config unset plugins.deny && \
                   openclaw config set plugins.entries.telegram.enabled true";
        let rows = [
            (json!({}), &ON[..], ""),
            (json!({"enabled": true, "deny": ["discord"], "allow": []}), &ON, ""),
            (json!({"allow": ["discord", " telegram "]}), &ON, ""),
            (json!({"allow": [" "]}), &ON, ""),
            (json!({"entries": {"discord": {"enabled": false}}}), &ON, ""),
            (json!({"enabled": false}), &["plugins.enabled"], "openclaw config set plugins.enabled true"),
            (json!({"deny": ["telegram "]}), &["plugins.deny"], "openclaw config unset plugins.deny"),
            (
                json!({"deny": ["line", "telegram", "x'y"]}),
                &["plugins.deny"],
                r#"openclaw config set plugins.deny '["line","x'\''y"]'"#,
            ),
            (
                json!({"allow": ["memory-core"]}),
                &["plugins.allow"],
                r#"openclaw config set plugins.allow '["memory-core","telegram"]'"#,
            ),
            (
                json!({"entries": entry}),
                &["plugins.entries.telegram.enabled"],
                "openclaw config set plugins.entries.telegram.enabled true",
            ),
            (
                json!({"enabled": false, "deny": ["telegram"], "allow": ["telegram"], "entries": entry}),
                &["plugins.enabled", "plugins.deny", "plugins.entries.telegram.enabled"],
                all,
            ),
        ];
        for (plugins, keys, command) in rows {
            let mut document = json!({"plugins": plugins});
            let found = plugin_switches(&document, "telegram");
            assert_eq!(found.iter().map(PluginSwitch::key).collect::<Vec<_>>(), keys, "{plugins}");
            assert_eq!(turn_on_command(&found), command, "{plugins}");
            found.iter().for_each(|switch| switch.turn_on(&mut document));
            assert_eq!(plugin_switches(&document, "telegram"), [], "{plugins}");
        }
    }
}
