//! Lists that name people of a platform and do not stand in its section: the owners of commands, and who may have commands elevated.

use openclaw_config::Config;
use openclaw_config::settings::Elevated;
use serde_json::Value;

/// `commands.ownerAllowFrom`, as written.
pub fn written_owners(config: &Config) -> Vec<String> {
    let written = config.document().pointer("/commands/ownerAllowFrom").and_then(Value::as_array);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    written.into_iter().flatten().map(text).collect()
}

/// The entries of all of them that may mean somebody on a platform. Owners are written with the name of a platform or without.
pub fn named_elsewhere(config: &Config, channel: &str) -> Vec<String> {
    let own = config.agents.list.iter().map(|agent| &agent.tools.elevated);
    let elevated = std::iter::once(&config.tools.elevated).chain(own);
    let allowed = elevated.filter_map(|Elevated { allow_from, .. }| allow_from.get(channel)).flatten();
    written_owners(config).into_iter().chain(allowed.map(ToString::to_string)).collect()
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    #[test]
    fn owners_and_elevated_people_are_found() {
        let file = json!({
            "commands": {"ownerAllowFrom": ["telegram:@ada", 7]},
            "tools": {"elevated": {"allowFrom": {"telegram": ["bob", 8], "discord": ["eve"]}}},
            "agents": {"list": [{"id": "main", "tools": {"elevated": {"allowFrom": {"telegram": ["@carol"]}}}}]},
        });
        let config = Config::from_json5(&file.to_string(), &Environment::new([("HOME", "/h")], "/")).unwrap();
        assert_eq!(named_elsewhere(&config, "telegram"), ["telegram:@ada", "7", "bob", "8", "@carol"]);
    }
}
