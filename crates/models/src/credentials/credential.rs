//! Profile of `auth-profiles.json`: its content, read and written (spec `models.md` §8.1).

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::cooldown::millis;
use crate::oauth::codex;
use crate::reference::ProviderId;

/// Credential profile.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Provider of the profile.
    pub provider: ProviderId,
    /// Secret of the profile.
    pub secret: Secret,
    /// Data besides the secret.
    pub about: About,
}

/// Data of a profile besides its secret. None of it is secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The person's address.
    pub email: Option<String>,
    /// Account at the provider: `accountId`, of a login or in `metadata` of a key.
    pub account: Option<String>,
    /// `projectId` of a Google login.
    pub project: Option<String>,
    /// `metadata.gatewayId` of a key.
    pub gateway: Option<String>,
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
        /// Refresh token that renews the login.
        refresh: SecretString,
        /// Unix milliseconds.
        expires: Option<i64>,
    },
}

impl Secret {
    /// All of it that must not be shown.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &SecretString> {
        let (first, second) = match self {
            Self::ApiKey(secret) | Self::Token { token: secret, .. } => (secret, None),
            Self::OAuth { access, refresh, .. } => (access, Some(refresh)),
        };
        std::iter::once(first).chain(second)
    }

    /// `type` in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey(_) => "api_key",
            Self::Token { .. } => "token",
            Self::OAuth { .. } => "oauth",
        }
    }
}

impl Credential {
    /// A key or token and nothing else.
    pub fn new(provider: ProviderId, secret: Secret) -> Self {
        Self { provider, secret, about: About::default() }
    }

    /// The key of providers that need more than a token in one string (spec `models.md` §8.4).
    pub(super) fn composite(&self, secret: &SecretString) -> Option<SecretString> {
        let (name, other, value) = match self.provider.as_str() {
            codex::PROVIDER => ("access", "accountId", self.about.account.as_ref()?),
            "google-gemini-cli" | "google-antigravity" => {
                ("token", "projectId", self.about.project.as_ref()?)
            }
            _ => return None,
        };
        Some(SecretString::from(json!({name: secret.expose_secret(), other: value}).to_string()))
    }

    /// Reads an entry; nothing for a kind this version does not know, or one that names no provider.
    pub(super) fn read(entry: &Value) -> Option<Self> {
        let entry = entry.as_object()?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let secret = |name: &str| SecretString::from(text(name));
        let provider = ProviderId::normalize(text("provider"));
        if provider.as_str().is_empty() {
            return None;
        }
        let expires = entry.get("expires").and_then(millis).filter(|at| *at > 0);
        let secret = match text("type") {
            "api_key" => Secret::ApiKey(secret("key")),
            "token" => Secret::Token { token: secret("token"), expires },
            "oauth" => Secret::OAuth { access: secret("access"), refresh: secret("refresh"), expires },
            _ => return None,
        };
        Some(Self { provider, secret, about: About::read(entry) })
    }

    /// The entry as it is written: over an older one of the same kind and provider what this version does not know stays.
    pub(super) fn write(&self, old: Option<&Value>) -> Value {
        let (kind, provider) = (self.secret.kind(), self.provider.as_str());
        let same = |entry: &&Map<String, Value>| {
            entry.get("type") == Some(&json!(kind))
                && entry.get("provider").and_then(Value::as_str).map(ProviderId::normalize).as_ref()
                    == Some(&self.provider)
        };
        let mut entry = old.and_then(Value::as_object).filter(same).cloned().unwrap_or_else(|| {
            [("type".to_owned(), json!(kind)), ("provider".to_owned(), json!(provider))].into_iter().collect()
        });
        let mut set = |name: &str, value: Option<Value>| match value {
            Some(value) => drop(entry.insert(name.to_owned(), value)),
            None => drop(entry.shift_remove(name)),
        };
        match &self.secret {
            Secret::ApiKey(key) => set("key", Some(json!(key.expose_secret()))),
            Secret::Token { token, expires } => {
                set("token", Some(json!(token.expose_secret())));
                set("expires", expires.map(Value::from));
            }
            Secret::OAuth { access, refresh, expires } => {
                set("access", Some(json!(access.expose_secret())));
                set("refresh", Some(json!(refresh.expose_secret())));
                set("expires", expires.map(Value::from));
            }
        }
        self.about.write(&self.secret, &mut entry);
        Value::Object(entry)
    }
}

impl About {
    fn read(entry: &Map<String, Value>) -> Self {
        let metadata = entry.get("metadata").and_then(Value::as_object);
        let text = |map: Option<&Map<String, Value>>, name: &str| {
            let value = map?.get(name)?.as_str()?.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        Self {
            email: text(Some(entry), "email"),
            account: text(Some(entry), "accountId").or_else(|| text(metadata, "accountId")),
            project: text(Some(entry), "projectId"),
            gateway: text(metadata, "gatewayId"),
        }
    }

    /// Adds what is known; what is not stays as it was.
    fn write(&self, secret: &Secret, entry: &mut Map<String, Value>) {
        let mut add = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                entry.insert(name.to_owned(), json!(value));
            }
        };
        add("email", &self.email);
        if matches!(secret, Secret::OAuth { .. }) {
            add("accountId", &self.account);
            add("projectId", &self.project);
            return;
        }
        for (name, value) in [("accountId", &self.account), ("gatewayId", &self.gateway)] {
            let Some(value) = value else { continue };
            let metadata = entry.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert(name.to_owned(), json!(value));
            }
        }
    }
}

/// A secret as it was pasted: line breaks, and blanks around it, came along by accident.
pub fn pasted_secret(text: &str) -> SecretString {
    SecretString::from(text.trim().chars().filter(|c| !matches!(c, '\n' | '\r')).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_read_and_written_is_the_same() {
        let rows = [
            json!({"type": "api_key", "provider": "cloudflare-ai-gateway", "key": "k", "email": "me@x",
                "metadata": {"accountId": "a", "gatewayId": "g", "later": 1}}),
            json!({"type": "token", "provider": "anthropic", "token": "t", "expires": 5, "later": {"x": 1}}),
            json!({"type": "token", "provider": "anthropic", "token": "t"}),
            json!({"type": "oauth", "provider": "openai-codex", "access": "a", "refresh": "r", "expires": 9,
                "accountId": "acc", "email": "me@x", "enterpriseUrl": "e", "projectId": "p"}),
        ];
        for row in rows {
            let written = Credential::read(&row).unwrap().write(Some(&row));
            assert_eq!(written.to_string(), row.to_string());
        }
    }

    #[test]
    fn an_entry_of_another_kind_leaves_nothing_behind() {
        let old = json!({"type": "oauth", "provider": "x", "access": "a", "refresh": "r", "later": 1});
        let new = Credential::new(ProviderId::normalize("x"), Secret::ApiKey(pasted_secret(" sk-\n1\r\n ")));
        assert_eq!(new.write(Some(&old)), json!({"type": "api_key", "provider": "x", "key": "sk-1"}));
    }
}
