//! Platforms that are set up and that the entry of their plugin switches off. OpenClaw 2026.2.9 writes that entry by itself for a platform
//! that is new, so that nobody may have wanted it (spec `config.md` §11).

use serde_json::Value;

use super::schema::join;
use crate::{Environment, Issue};

/// Platforms of this version, and the variable that may hold their token.
const PLATFORMS: &[(&str, &str)] = &[("telegram", "TELEGRAM_BOT_TOKEN")];

/// The warnings of a valid document.
pub(super) fn check(document: &Value, env: &Environment) -> Vec<Issue> {
    let is_off =
        |keys: Option<&Value>| keys.and_then(|keys| keys.get("enabled")) == Some(&Value::Bool(false));
    let told = PLATFORMS.iter().filter_map(|(id, variable)| {
        let section = document.get("channels").and_then(|channels| channels.get(id));
        let entry = document.pointer(&format!("/plugins/entries/{id}"));
        let is_set_up = section.is_some() || env.get_nonblank(variable).is_some();
        // Whoever has switched off the platform itself wants it so.
        if !is_set_up || is_off(section) || !is_off(entry) {
            return None;
        }
        let path = join(&format!("plugins.entries.{id}"), "enabled");
        let text = format!(
            "false switches {id} off, though it is set up: it does not receive and does not answer. OpenClaw 2026.2.9 \
             writes this by itself. To switch it on: openclaw config set {path} true"
        );
        Some(Issue::new(path, text))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_set_up_and_off_by_its_plugin_is_told_of() {
        let off = json!({"telegram": {"enabled": false}});
        let entries = json!({"entries": off});
        let rows = [
            (json!({"plugins": entries}), false, false),
            (json!({"plugins": entries}), true, true),
            (json!({"plugins": entries, "channels": {"telegram": {"botToken": "1:t"}}}), false, true),
            (json!({"plugins": entries, "channels": off}), true, false),
            (
                json!({"plugins": {"entries": {"telegram": {"enabled": true}}}, "channels": {"telegram": {}}}),
                true,
                false,
            ),
            (json!({"channels": {"telegram": {}}}), true, false),
        ];
        for (document, has_variable, expect) in rows {
            let variable = has_variable.then_some(("TELEGRAM_BOT_TOKEN", "1:t"));
            let env = Environment::new(variable.into_iter().chain([("HOME", "/h")]), "/");
            let found = check(&document, &env);
            assert_eq!(!found.is_empty(), expect, "{document}");
            assert!(
                found
                    .iter()
                    .all(|issue| issue.line().contains("config set plugins.entries.telegram.enabled true"))
            );
        }
    }
}
