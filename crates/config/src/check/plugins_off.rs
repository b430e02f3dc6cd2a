//! Platforms that are set up and that a key of `plugins` switches off. OpenClaw 2026.2.9 writes the entry of a platform that is new by
//! itself, and a list may leave a platform out by mistake, so that nobody may have wanted it (spec `config.md` §11).

use serde_json::Value;

use crate::plugin_switches::{plugin_switches, turn_on_command};
use crate::{Environment, Issue, registry};

/// The warnings of a valid document.
pub(super) fn check(document: &Value, env: &Environment) -> Vec<Issue> {
    let told = registry::built_channels().flat_map(|platform| {
        let id = platform.id;
        let section = document.get("channels").and_then(|channels| channels.get(id));
        let has_variable = || platform.credentials.iter().any(|name| env.get_nonblank(name).is_some());
        let is_set_up = section.is_some() || has_variable();
        // A platform that is switched off itself is meant to be off.
        let is_wanted =
            section.and_then(|keys| keys.get("enabled")).is_none_or(|enabled| *enabled != Value::Bool(false));
        let found = plugin_switches(document, id);
        let command = turn_on_command(&found);
        let found = found.into_iter().filter(move |_| is_set_up && is_wanted);
        found.map(move |switch| {
            let who = if switch.is_written_by_itself() { " OpenClaw 2026.2.9 writes this by itself." } else { "" };
            let text = format!(
                "{} and switches {id} off, though it is set up: it does not receive and does not answer.{who} To switch it \
                 on: {command}",
                switch.says()
            );
            Issue::new(switch.key(), text)
        })
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
        let set_up = json!({"telegram": {"botToken": "1:t"}});
        let rows = [
            (json!({"plugins": entries}), false, &[][..]),
            (json!({"plugins": entries}), true, &["plugins.entries.telegram.enabled"]),
            (json!({"plugins": entries, "channels": set_up}), false, &["plugins.entries.telegram.enabled"]),
            (json!({"plugins": entries, "channels": off}), true, &[]),
            (
                json!({"plugins": {"entries": {"telegram": {"enabled": true}}}, "channels": {"telegram": {}}}),
                true,
                &[],
            ),
            (json!({"channels": {"telegram": {}}}), true, &[]),
            (
                json!({"plugins": {"enabled": false, "deny": ["telegram"]}, "channels": set_up}),
                false,
                &["plugins.enabled", "plugins.deny"],
            ),
            (json!({"plugins": {"allow": ["discord"]}}), false, &[]),
            (json!({"plugins": {"allow": ["discord"]}}), true, &["plugins.allow"]),
        ];
        for (document, has_variable, expect) in rows {
            let variable = has_variable.then_some(("TELEGRAM_BOT_TOKEN", "1:t"));
            let env = Environment::new(variable.into_iter().chain([("HOME", "/h")]), "/");
            let found = check(&document, &env);
            let paths: Vec<&str> = found.iter().map(|issue| issue.path.as_str()).collect();
            assert_eq!(paths, expect, "{document}");
            let command = turn_on_command(&plugin_switches(&document, "telegram"));
            assert!(found.iter().all(|issue| issue.line().contains(&command)), "{document}");
        }
    }
}
