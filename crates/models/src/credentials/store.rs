//! `auth-profiles.json`: the credentials of one agent (spec `models.md` §8.1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use openclaw_config::private_file::{self, Durability};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::reference::ProviderId;

/// Name of the file in an agent's directory.
pub const FILE: &str = "auth-profiles.json";

/// The credentials of one agent. What this version does not know is kept when the file is written again.
#[derive(Debug, Clone, Default)]
pub struct AuthStore {
    /// Profiles by id, in the file's order.
    profiles: Vec<(String, Credential)>,
    order: BTreeMap<String, Vec<String>>,
    usage: BTreeMap<String, UsageStats>,
    document: Document,
}

/// The whole file; its `Debug` shows nothing of it.
#[derive(Clone, Default)]
struct Document(Map<String, Value>);

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// One profile.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Whose it is.
    pub provider: ProviderId,
    /// What it is.
    pub secret: Secret,
}

/// The kinds of credentials.
#[derive(Debug, Clone)]
pub enum Secret {
    /// `type: api_key`
    ApiKey(SecretString),
    /// `type: token`
    Token {
        /// The bearer token.
        token: SecretString,
        /// Unix milliseconds; absent or zero never.
        expires: Option<i64>,
    },
    /// `type: oauth`
    OAuth {
        /// The access token, maybe expired.
        access: SecretString,
        /// What a new one is got with.
        refresh: SecretString,
        /// Unix milliseconds.
        expires: Option<i64>,
    },
}

/// `usageStats.<profile>`, as far as it decides who is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageStats {
    /// Unix milliseconds of the last use.
    pub last_used: Option<i64>,
    /// Unix milliseconds until which it rests after failures.
    pub cooldown_until: Option<i64>,
    /// Unix milliseconds until which it is disabled, as after a billing failure.
    pub disabled_until: Option<i64>,
}

impl UsageStats {
    /// Until when the profile should not be used, in Unix milliseconds; 0 when it may.
    pub fn unusable_until(&self) -> i64 {
        self.cooldown_until.unwrap_or(0).max(self.disabled_until.unwrap_or(0))
    }
}

/// Why the credentials can't be read or written. The texts are for people and hold no secrets.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file exists but can't be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no JSON object. It is left as it is.
    #[error("{path} is damaged (line {line}); fix or move it away, then add the credentials again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it stops making sense; 0 when it is JSON of another kind.
        line: usize,
    },
    /// The file could not be written; the old one is still there.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// One stored profile as written; every field optional, so that one odd entry does not spoil the file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    #[serde(rename = "type")]
    kind: String,
    provider: String,
    key: String,
    token: String,
    access: String,
    refresh: String,
    expires: Option<f64>,
}

impl AuthStore {
    /// Reads the store of an agent's directory; without a file it is empty. Blocks.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn load(agent_dir: &Path) -> Result<Self, StoreError> {
        let path = agent_dir.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => Self::parse(&bytes).map_err(|line| StoreError::Damaged { path, line }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(StoreError::Read { path, source }),
        }
    }

    /// Writes the store: complete or not at all, readable by its owner alone. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Write`]
    pub fn save(&self, agent_dir: &Path) -> Result<(), StoreError> {
        let path = agent_dir.join(FILE);
        let text = format!("{:#}\n", Value::Object(self.document.0.clone()));
        private_file::replace(&path, text.as_bytes(), Durability::Synced)
            .map_err(|source| StoreError::Write { path, source })
    }

    /// Parses the file's content; the error is the line where it is no JSON.
    fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| error.line())?;
        let Value::Object(document) = document else { return Err(0) };
        let section = |name: &str| document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let profiles = section("profiles")
            .into_iter()
            .filter_map(|(id, value)| Some((id, credential(serde_json::from_value(value).ok()?)?)))
            .collect();
        let order = section("order")
            .into_iter()
            .filter_map(|(provider, ids)| Some((provider, serde_json::from_value(ids).ok()?)))
            .collect();
        let usage = section("usageStats")
            .into_iter()
            .filter_map(|(id, stats)| Some((id, serde_json::from_value(stats).ok()?)))
            .collect();
        Ok(Self { profiles, order, usage, document: Document(document) })
    }

    /// The profile with an id.
    pub fn get(&self, id: &str) -> Option<&Credential> {
        self.profiles.iter().find(|(known, _)| known == id).map(|(_, credential)| credential)
    }

    /// All profiles in the file's order.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &Credential)> {
        self.profiles.iter().map(|(id, credential)| (id.as_str(), credential))
    }

    /// The file's own order of a provider's profiles, whatever spelling of the provider it uses.
    pub fn order(&self, provider: &ProviderId) -> Option<&[String]> {
        self.order
            .iter()
            .find(|(id, _)| ProviderId::normalize(id) == *provider)
            .map(|(_, ids)| ids.as_slice())
    }

    /// What is known of a profile's use.
    pub fn usage(&self, id: &str) -> UsageStats {
        self.usage.get(id).copied().unwrap_or_default()
    }

    /// Adds an API key, replacing a profile of the same id. Line breaks and blanks that came along when it was pasted are
    /// dropped.
    pub fn put_api_key(&mut self, id: &str, provider: &ProviderId, key: &str) {
        let key: String = key.trim().chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        let entry = json!({"type": "api_key", "provider": provider.as_str(), "key": key});
        let document = &mut self.document.0;
        document.entry("version").or_insert_with(|| json!(1));
        let profiles = document.entry("profiles").or_insert_with(|| json!({}));
        if let Some(profiles) = profiles.as_object_mut() {
            profiles.insert(id.to_owned(), entry);
        }
        let credential =
            Credential { provider: provider.clone(), secret: Secret::ApiKey(SecretString::from(key)) };
        match self.profiles.iter_mut().find(|(known, _)| known == id) {
            Some((_, known)) => *known = credential,
            None => self.profiles.push((id.to_owned(), credential)),
        }
    }
}

fn credential(stored: Stored) -> Option<Credential> {
    let provider = ProviderId::normalize(&stored.provider);
    if provider.as_str().is_empty() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds; as saturates")]
    let expires = stored.expires.map(|ms| ms as i64).filter(|ms| *ms > 0);
    let secret = match stored.kind.as_str() {
        "api_key" => Secret::ApiKey(SecretString::from(stored.key)),
        "token" => Secret::Token { token: SecretString::from(stored.token), expires },
        "oauth" => Secret::OAuth {
            access: SecretString::from(stored.access),
            refresh: SecretString::from(stored.refresh),
            expires,
        },
        _ => return None,
    };
    Some(Credential { provider, secret })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn profiles_are_read_and_odd_ones_passed_over() {
        let text = r#"{"version":1,"profiles":{
            "z.ai:a":{"type":"api_key","provider":"Z.AI","key":"k"},
            "t":{"type":"token","provider":"anthropic","token":"t","expires":0},
            "o":{"type":"oauth","provider":"openai-codex","access":"a","refresh":"r","expires":1760000000000.0},
            "new":{"type":"passkey","provider":"x"},
            "bare":{"type":"api_key","key":"k"},
            "odd":[1]},
            "order":{"z.ai":["z.ai:a"],"broken":7},
            "usageStats":{"t":{"lastUsed":5,"cooldownUntil":7,"disabledUntil":9,"failureCounts":{"auth":1}}}}"#;
        let store = AuthStore::parse(text.as_bytes()).unwrap();
        let ids: Vec<_> = store.profiles().map(|(id, c)| format!("{id}={}", c.provider)).collect();
        assert_eq!(ids, ["z.ai:a=zai", "t=anthropic", "o=openai-codex"]);
        assert!(matches!(store.get("t").unwrap().secret, Secret::Token { expires: None, .. }));
        assert!(matches!(
            store.get("o").unwrap().secret,
            Secret::OAuth { expires: Some(1_760_000_000_000), .. }
        ));
        assert_eq!(store.order(&ProviderId::normalize("zai")), Some(["z.ai:a".to_owned()].as_slice()));
        assert_eq!(store.usage("t").unusable_until(), 9);
        assert_eq!(store.usage("z.ai:a"), UsageStats::default());
        assert!(!format!("{store:?}").contains("\"k\""));
    }

    #[test]
    fn damage_is_named_and_absence_is_not_damage() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(AuthStore::load(dir.path()).unwrap().profiles().count(), 0);
        for (text, line) in [("{\n\"profiles\": {", 2), ("[]", 0), ("", 1)] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            match AuthStore::load(dir.path()) {
                Err(StoreError::Damaged { line: found, .. }) => assert_eq!(found, line, "{text:?}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn writing_keeps_what_is_unknown_and_hides_the_file_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = dir.path().join("agent");
        let text = r#"{"version":1,"later":{"x":1},"profiles":{"new":{"type":"passkey","provider":"x"}}}"#;
        let mut store = AuthStore::parse(text.as_bytes()).unwrap();
        store.put_api_key("groq:default", &ProviderId::normalize("Groq"), " sk-\n1 \n");
        store.save(&agent_dir).unwrap();
        let written: Value = serde_json::from_slice(&std::fs::read(agent_dir.join(FILE)).unwrap()).unwrap();
        assert_eq!(
            written,
            json!({"version":1,"later":{"x":1},"profiles":{
                "new":{"type":"passkey","provider":"x"},
                "groq:default":{"type":"api_key","provider":"groq","key":"sk-1"}}})
        );
        let again = AuthStore::load(&agent_dir).unwrap();
        let Secret::ApiKey(key) = &again.get("groq:default").unwrap().secret else { panic!() };
        assert_eq!(key.expose_secret(), "sk-1");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&agent_dir), mode(&agent_dir.join(FILE))), (0o700, 0o600));
        }
    }
}
