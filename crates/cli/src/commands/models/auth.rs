//! Which providers have a credential, and from where. Of a key only its ends are shown.

use openclaw_config::{Config, Environment, ResolvedAgent};
use openclaw_models::ProviderId;
use openclaw_models::catalog::key_variables;
use openclaw_models::credentials::{AuthStore, Secret, masked};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::context::now_ms;
use crate::failure::Failure;

/// Providers that need no credential.
const FREE: &[&str] = &["offline"];

/// The credentials of one agent.
pub(super) struct Credentials {
    /// `auth-profiles.json`.
    pub(super) store: AuthStore,
    providers: Vec<Configured>,
    env: Environment,
}

/// A provider of the config.
struct Configured {
    id: ProviderId,
    key: Option<SecretString>,
    is_local: bool,
}

/// Where a provider's credential comes from.
pub(super) struct Source {
    /// `profiles`, `env`, `models.json` or `missing`.
    pub(super) kind: &'static str,
    /// For people.
    pub(super) detail: String,
}

impl Credentials {
    /// Reads the agent's profiles and the config.
    pub(super) fn load(config: &Config, agent: &ResolvedAgent, env: &Environment) -> Result<Self, Failure> {
        let store = AuthStore::load(&agent.agent_dir)
            .map_err(|error| Failure::new("auth-store", error.to_string()))?;
        let providers = config
            .models
            .providers
            .iter()
            .map(|(id, provider)| Configured {
                id: ProviderId::normalize(id),
                key: provider.api_key.clone().filter(|key| !key.expose_secret().trim().is_empty()),
                is_local: is_local(&provider.base_url),
            })
            .collect();
        Ok(Self { store, providers, env: env.clone() })
    }

    /// Whether the provider's server is on this machine or network.
    pub(super) fn is_local(&self, provider: &ProviderId) -> bool {
        FREE.contains(&provider.as_str()) || self.configured(provider).is_some_and(|known| known.is_local)
    }

    /// Where the credential comes from that a run would take first.
    pub(super) fn source(&self, provider: &ProviderId) -> Source {
        if self.profiles(provider).next().is_some() {
            let detail = "auth-profiles.json".to_owned();
            return Source { kind: "profiles", detail };
        }
        if let Some((_, value)) = self.variable(provider) {
            return Source { kind: "env", detail: masked(value) };
        }
        match self.configured(provider).and_then(|known| known.key.as_ref()) {
            Some(key) => Source { kind: "models.json", detail: masked(key.expose_secret()) },
            None => Source { kind: "missing", detail: "missing".to_owned() },
        }
    }

    /// The entry of a provider in `models status`.
    pub(super) fn describe(&self, provider: &ProviderId) -> Value {
        let source = self.source(provider);
        let count = |wanted: &str| self.profiles(provider).filter(|(_, kind)| *kind == wanted).count();
        let labels: Vec<String> = self.profiles(provider).map(|(id, kind)| format!("{id}={kind}")).collect();
        let mut out = json!({
            "provider": provider.as_str(),
            "effective": { "kind": source.kind, "detail": source.detail },
            "profiles": {
                "count": labels.len(),
                "oauth": count("oauth"),
                "token": count("token"),
                "apiKey": count("api_key"),
                "labels": labels,
            },
        });
        if let Some(out) = out.as_object_mut() {
            if let Some((name, value)) = self.variable(provider) {
                out.insert(
                    "env".to_owned(),
                    json!({ "value": masked(value), "source": format!("env: {name}") }),
                );
            }
            if let Some(key) = self.configured(provider).and_then(|known| known.key.as_ref()) {
                let source = format!("models.json: models.providers.{provider}.apiKey");
                out.insert(
                    "modelsJson".to_owned(),
                    json!({ "value": masked(key.expose_secret()), "source": source }),
                );
            }
        }
        out
    }

    /// All providers with any credential, in order.
    pub(super) fn providers(&self) -> Vec<ProviderId> {
        let stored = self.store.profiles().map(|(_, credential)| credential.provider.clone());
        let configured = self.providers.iter().map(|known| known.id.clone());
        let variables = openclaw_models::Variables::from(&self.env);
        let by_variable = openclaw_models::catalog::providers_with_key(&variables);
        let mut all: Vec<ProviderId> = stored.chain(configured).chain(by_variable).collect();
        all.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        all.dedup();
        all
    }

    /// Profiles that rest after failures.
    pub(super) fn unusable(&self) -> Vec<Value> {
        let now = now_ms();
        self.store
            .profiles()
            .filter_map(|(id, credential)| {
                let usage = self.store.usage(id);
                let until = usage.unusable_until(now);
                let kind = if usage.disabled_until.unwrap_or_default() >= until { "disabled" } else { "cooldown" };
                (until > now).then(|| {
                    let provider = credential.provider.as_str();
                    json!({ "profileId": id, "provider": provider, "kind": kind, "until": until, "remainingMs": until - now })
                })
            })
            .collect()
    }

    /// Profiles that may expire: id, provider, kind, expiry in Unix milliseconds.
    pub(super) fn expiring(&self) -> impl Iterator<Item = (&str, &ProviderId, &'static str, Option<i64>)> {
        self.store.profiles().filter_map(|(id, credential)| match &credential.secret {
            Secret::ApiKey(_) => None,
            Secret::Token { expires, .. } => Some((id, &credential.provider, "token", *expires)),
            Secret::OAuth { expires, .. } => Some((id, &credential.provider, "oauth", *expires)),
        })
    }

    fn profiles<'a>(&'a self, provider: &'a ProviderId) -> impl Iterator<Item = (&'a str, &'static str)> {
        self.store.profiles().filter(move |(_, credential)| credential.provider == *provider).map(
            |(id, credential)| {
                let kind = match &credential.secret {
                    Secret::ApiKey(_) => "api_key",
                    Secret::Token { .. } => "token",
                    Secret::OAuth { .. } => "oauth",
                };
                (id, kind)
            },
        )
    }

    fn variable(&self, provider: &ProviderId) -> Option<(&'static str, &str)> {
        key_variables(provider).find_map(|name| Some((name, self.env.get_nonblank(name)?)))
    }

    fn configured(&self, provider: &ProviderId) -> Option<&Configured> {
        self.providers.iter().find(|known| known.id == *provider)
    }
}

fn is_local(base_url: &str) -> bool {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".local")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| match ip {
            std::net::IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_unspecified(),
            std::net::IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified(),
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
}
