//! The secrets that the config holds once everything is resolved: what no tool may print.

use serde_json::Value;

use crate::Config;
use crate::redact::{REDACTED, is_secret_name};

/// Sections whose secrets are for tools, not for the gateway.
const FOR_TOOLS: &[&str] = &["env", "skills"];
/// Headers that carry a credential, besides those whose names tell of a secret.
const CREDENTIAL_HEADERS: &[&str] = &["authorization", "proxy-authorization", "cookie"];

impl Config {
    /// The values of the gateway's own secret keys: its authentication, model providers, chat platforms. A key may hold the
    /// name of a variable instead of a value.
    pub fn own_secrets(&self) -> Vec<&str> {
        self.secrets(|section| !FOR_TOOLS.contains(&section))
    }

    /// The values of secret keys that are meant for tools. Secrets of `env` are among the
    /// variables.
    pub fn tool_secrets(&self) -> Vec<&str> {
        self.secrets(|section| section == "skills")
    }

    fn secrets(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut found = Vec::new();
        let sections = self.document().as_object().into_iter().flatten();
        for (_, section) in sections.filter(|(name, _)| is_wanted(name)) {
            collect(section, Holds::Settings, &mut found);
        }
        found
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Settings,
    Headers,
    /// The value of a header.
    Credential,
    Secrets,
}

fn collect<'a>(value: &'a Value, holds: Holds, found: &mut Vec<&'a str>) {
    match value {
        // `Bearer <token>`: the scheme is no secret.
        Value::String(text) if holds == Holds::Credential => {
            found.extend(text.split_whitespace().next_back())
        }
        // A command prints the secret, it is none.
        Value::String(text) if holds == Holds::Secrets && text != REDACTED && !text.starts_with('!') => {
            found.push(text);
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, holds, found)),
        Value::Object(map) => {
            for (key, each) in map {
                collect(each, inside(holds, key), found);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn inside(holds: Holds, key: &str) -> Holds {
    let is_credential = || CREDENTIAL_HEADERS.iter().any(|name| name.eq_ignore_ascii_case(key));
    match holds {
        Holds::Headers if is_secret_name(key) || is_credential() => Holds::Credential,
        // Of an object that is secret as a whole, as a service account, most values are not.
        Holds::Settings | Holds::Secrets if is_secret_name(key) => Holds::Secrets,
        Holds::Settings if key == "headers" => Holds::Headers,
        Holds::Headers | Holds::Credential | Holds::Secrets | Holds::Settings => Holds::Settings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    #[test]
    fn secrets_are_found_where_they_are_and_told_by_whose_they_are() {
        let env = Environment::new([("HOME", "/h"), ("MY_TOKEN", "from-a-variable")], "/w");
        let config = Config::from_json5(
            r#"{
            gateway: {auth: {token: "${MY_TOKEN}", password: "two words"}, port: 5},
            env: {vars: {GITHUB_TOKEN: "for-tools"}},
            skills: {entries: {gh: {apiKey: "of-a-skill"}}},
            channels: {telegram: {botToken: "1:bot", tokenFile: "/h/token"}, googlechat: {serviceAccount: {type: "service_account", token: "t"}}},
            models: {providers: {a: {baseUrl: "http://a", apiKey: "!pass show a", models: [],
              headers: {Authorization: "Bearer header-token", "X-Title": "openclaw", "x-api-key": "k-1"}}}}}"#,
            &env,
        )
        .unwrap();
        let mut own = config.own_secrets();
        own.sort_unstable();
        assert_eq!(own, ["1:bot", "from-a-variable", "header-token", "k-1", "t", "two words"]);
        assert_eq!(config.tool_secrets(), ["of-a-skill"]);
    }
}
