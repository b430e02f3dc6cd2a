//! Credentials by provider, with their sources. Only the end of a key is shown.

use std::net::IpAddr;

use openclaw_config::clock::now_ms;
use openclaw_models::catalog::{key_variables, providers_with_key};
use openclaw_models::credentials::{Credential, FILE, Secret, profile_order};
use openclaw_models::settings::ProviderEntry;
use openclaw_models::{ProviderId, offline};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use tokio_tungstenite::tungstenite::http::Uri;

use super::view::ModelView;
use crate::args::given;
use crate::output;

/// A provider of `auth.providers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProviderAuth {
    pub(super) provider: String,
    pub(super) effective: EffectiveAuth,
    pub(super) profiles: Profiles,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) env: Option<Sourced>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) models_json: Option<Sourced>,
}

/// Source of the credential that a run would take first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct EffectiveAuth {
    pub(super) kind: AuthSource,
    pub(super) detail: String,
}

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum AuthSource {
    #[serde(rename = "profiles")]
    Profiles,
    #[serde(rename = "env")]
    Env,
    #[serde(rename = "models.json")]
    ModelsJson,
    #[serde(rename = "missing")]
    Missing,
}

impl AuthSource {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Profiles => "profiles",
            Self::Env => "env",
            Self::ModelsJson => "models.json",
            Self::Missing => "missing",
        }
    }
}

/// The profiles of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profiles {
    pub(super) count: usize,
    pub(super) oauth: usize,
    pub(super) token: usize,
    pub(super) api_key: usize,
    pub(super) labels: Vec<String>,
}

/// The end of a key, and where the key is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Sourced {
    pub(super) value: String,
    pub(super) source: String,
    /// True if it is a login's token rather than a key.
    #[serde(skip)]
    pub(super) is_oauth: bool,
}

/// A profile in cooldown, or disabled, after failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unusable {
    pub(super) profile_id: String,
    pub(super) provider: String,
    /// `cooldown` or `disabled`.
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Unix milliseconds.
    pub(super) until: i64,
    pub(super) remaining_ms: i64,
}

impl ModelView {
    /// True if the provider's server is on this machine or network.
    pub(super) fn is_local(&self, provider: &ProviderId) -> bool {
        let base_url = self.configured(provider).and_then(|entry| entry.base_url.as_deref());
        provider.as_str() == offline::PROVIDER || base_url.is_some_and(is_local)
    }

    /// The usable profiles of a provider, in the order in which they are asked.
    pub(super) fn usable_profiles(&self, provider: &ProviderId) -> Vec<String> {
        profile_order(provider, &self.store, &self.settings, None, now_ms())
    }

    /// `api-key`, `oauth` or `token`: what a run would present first.
    pub(super) fn mode(&self, provider: &ProviderId) -> Option<&'static str> {
        if let Some(first) = self.usable_profiles(provider).first() {
            return self.store.get(first).map(|credential| match &credential.secret {
                Secret::ApiKey(_) => "api-key",
                Secret::Token { .. } => "token",
                Secret::OAuth { .. } => "oauth",
            });
        }
        match self.variable(provider) {
            Some((name, _)) if name.contains("OAUTH") => Some("oauth"),
            Some(_) => Some("api-key"),
            None => self.configured_key(provider).map(|_| "api-key"),
        }
    }

    /// The entry of a provider in `models status`; nothing for one without any credential.
    pub(super) fn describe(&self, provider: &ProviderId) -> Option<ProviderAuth> {
        let profiles = self.profiles(provider);
        let env = self.variable(provider).map(|(name, value)| {
            let is_oauth = name.contains("OAUTH");
            let value = if is_oauth { "OAuth (env)".to_owned() } else { last_characters(value) };
            Sourced { value, source: self.variables.source(name), is_oauth }
        });
        let models_json = self.configured_key(provider).map(|key| Sourced {
            value: configured_value(key),
            source: format!("models.json: models.providers.{provider}.apiKey"),
            is_oauth: false,
        });
        let is_usable = !self.usable_profiles(provider).is_empty();
        let effective = match (&env, &models_json) {
            _ if is_usable => EffectiveAuth { kind: AuthSource::Profiles, detail: self.store_path() },
            (Some(env), _) => EffectiveAuth { kind: AuthSource::Env, detail: env.value.clone() },
            (None, Some(key)) => EffectiveAuth { kind: AuthSource::ModelsJson, detail: key.value.clone() },
            (None, None) if profiles.count > 0 => {
                EffectiveAuth { kind: AuthSource::Missing, detail: "no usable profile".to_owned() }
            }
            (None, None) => return None,
        };
        Some(ProviderAuth { provider: provider.to_string(), effective, profiles, env, models_json })
    }

    /// All providers with any credential, in order.
    pub(super) fn providers(&self) -> Vec<ProviderId> {
        let stored = self.store.profiles().map(|(_, credential)| credential.provider.clone());
        let configured = self.settings.providers.iter().map(|(id, _)| ProviderId::normalize(id));
        let by_variable = providers_with_key(&self.variables);
        let mut all: Vec<ProviderId> = stored.chain(configured).chain(by_variable).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Profiles that rest after failures, the soonest back first.
    pub(super) fn unusable(&self) -> Vec<Unusable> {
        let mut unusable: Vec<Unusable> =
            self.store.profiles().filter_map(|(id, credential)| self.unusable_of(id, credential)).collect();
        unusable.sort_by_key(|profile| profile.remaining_ms);
        unusable
    }

    fn unusable_of(&self, id: &str, credential: &Credential) -> Option<Unusable> {
        let now = now_ms();
        let usage = self.store.usage(id);
        let until = usage.unusable_until(now);
        let is_disabled = usage.disabled_until.is_some_and(|disabled| disabled > now);
        (until > now).then(|| Unusable {
            profile_id: id.to_owned(),
            provider: credential.provider.to_string(),
            kind: if is_disabled { "disabled" } else { "cooldown" },
            reason: usage.disabled_reason.filter(|_| is_disabled),
            until,
            remaining_ms: until - now,
        })
    }

    fn profiles(&self, provider: &ProviderId) -> Profiles {
        let mut profiles = Profiles::default();
        for (id, credential) in self.store.profiles().filter(|(_, known)| known.provider == *provider) {
            profiles.count += 1;
            let what = match &credential.secret {
                Secret::ApiKey(key) => {
                    profiles.api_key += 1;
                    last_characters(key.expose_secret())
                }
                Secret::Token { token, .. } => {
                    profiles.token += 1;
                    format!("token:{}", last_characters(token.expose_secret()))
                }
                Secret::OAuth { .. } => {
                    profiles.oauth += 1;
                    let email = credential.about.email.as_deref();
                    email.map_or_else(|| "OAuth".to_owned(), |email| format!("OAuth ({email})"))
                }
            };
            profiles.labels.push(format!("{id}={what}{}", self.unusable_mark(id, credential)));
        }
        profiles
    }

    fn unusable_mark(&self, id: &str, credential: &Credential) -> String {
        self.unusable_of(id, credential).map_or_else(String::new, |unusable| {
            let reason = unusable.reason.map(|reason| format!(":{reason}")).unwrap_or_default();
            format!(" [{}{reason} {}]", unusable.kind, output::remaining(unusable.remaining_ms))
        })
    }

    /// The variable that holds a provider's key, and its value.
    pub(super) fn variable(&self, provider: &ProviderId) -> Option<(&'static str, &str)> {
        self.variables.first(key_variables(provider))
    }

    /// The agent's file of credentials.
    pub(super) fn store_path(&self) -> String {
        self.agent.agent_dir.join(FILE).display().to_string()
    }

    fn configured(&self, provider: &ProviderId) -> Option<&ProviderEntry> {
        let mut written = self.settings.providers.iter();
        written.find(|(id, _)| ProviderId::normalize(id) == *provider).map(|(_, entry)| entry)
    }

    /// `models.providers.<p>.apiKey` as it is written.
    fn configured_key(&self, provider: &ProviderId) -> Option<&str> {
        given(self.configured(provider)?.api_key.as_ref().map(|key| key.expose_secret()))
    }
}

/// The last four characters of a key; nothing of a short one, of which they would be too much.
pub(super) fn last_characters(key: &str) -> String {
    /// Keys of fewer characters are not shown at all (spec `messages.md` §9).
    const SHORT: usize = 20;
    let key = key.trim();
    let count = key.chars().count();
    let skipped = if count < SHORT { count } else { count - 4 };
    format!("...{}", key.chars().skip(skipped).collect::<String>())
}

/// Value of `models.providers.<p>.apiKey` in a form that may be shown: that it is a command, the
/// name of a variable, or the last characters of a key.
fn configured_value(written: &str) -> String {
    let reference = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    match reference {
        _ if written.starts_with('!') => "command".to_owned(),
        Some(name) => format!("variable {name}"),
        None => last_characters(written),
    }
}

fn is_local(base_url: &str) -> bool {
    let uri = base_url.parse::<Uri>().unwrap_or_default();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".local")
        || host.parse::<IpAddr>().is_ok_and(|ip| {
            ip.is_loopback() || ip.is_unspecified() || matches!(ip, IpAddr::V4(ip) if ip.is_private())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_servers_are_told_from_others() {
        let rows = [
            ("http://127.0.0.1:11434/v1", true),
            ("http://localhost:1234", true),
            ("http://[::1]:8080/v1", true),
            ("http://gpu.local/v1", true),
            ("http://192.168.1.5:8000", true),
            ("https://api.example.com/v1", false),
            ("https://localhost.example.com", false),
        ];
        for (url, expect) in rows {
            assert_eq!(is_local(url), expect, "{url}");
        }
    }

    #[test]
    fn of_a_key_only_the_end_is_shown_and_of_a_short_one_nothing() {
        let rows = [
            ("sk-mock-0123456789abcdef", "...cdef"),
            ("sk-0123456789", "..."),
            ("", "..."),
            ("ключ-ключ-ключ-ключ-ключ", "...ключ"),
            ("!pass show openai", "command"),
            ("${OPENAI_API_KEY}", "variable OPENAI_API_KEY"),
        ];
        for (key, expect) in rows {
            assert_eq!(configured_value(key), expect, "{key}");
        }
    }
}
