//! The keys with which a provider may be called (spec `models.md` §8.3).

use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use super::command::KeyCommands;
use super::credential::Secret;
use super::file::FILE;
use super::order::profile_order;
use super::store::AuthStore;
use crate::catalog::{Catalog, ProviderAuthKind, key_variables};
use crate::net::is_local_url;
use crate::reference::ProviderId;
use crate::settings::ModelSettings;
use crate::variables::Variables;

/// Most profiles of one provider that a run may try.
const MAX_PROFILES: usize = 8;

/// Everything keys are looked up in.
pub(crate) struct Keyring<'a> {
    pub(crate) store: &'a AuthStore,
    pub(crate) settings: &'a ModelSettings,
    pub(crate) catalog: &'a Catalog,
    pub(crate) variables: &'a Variables,
    pub(crate) commands: &'a KeyCommands,
    pub(crate) agent_dir: &'a Path,
    /// Unix milliseconds.
    pub(crate) now: i64,
}

/// A key, or the knowledge that none is needed.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) secret: Option<SecretString>,
    pub(crate) label: AuthLabel,
}

/// Where a credential comes from, for status cards; holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthLabel {
    /// `api-key`, `oauth`, `token`, or `none` for a server that wants none.
    pub mode: &'static str,
    /// `profile:<id>`, `env: NAME`, `models.json`, or empty.
    pub source: String,
    /// First and last characters, as in `sk-ant-a...89abcdef`; empty without a key.
    pub masked: String,
    /// The same, shorter, as in `sk-a…cdef`.
    pub snippet: String,
    /// The profile, where it is one.
    pub profile: Option<String>,
}

/// Why a provider can't be called. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The profile asked for does not exist or holds nothing.
    #[error("No credentials found for profile \"{0}\".")]
    NoProfile(String),
    /// The profile asked for is another provider's.
    #[error("Auth profile \"{profile}\" is for {is}, not {wanted}.")]
    ForeignProfile {
        /// The profile.
        profile: String,
        /// Whose it is.
        is: String,
        /// Whose it should be.
        wanted: String,
    },
    /// Every profile rests.
    #[error("No available auth profile for {0} (all in cooldown or unavailable).")]
    AllResting(String),
    /// An OAuth login has expired; this version does not renew it.
    #[error(
        "the login of profile \"{0}\" has expired and can't be renewed yet; log in again with OpenClaw, or use an API key"
    )]
    Expired(String),
    /// A key command failed.
    #[error("the apiKey command of provider \"{provider}\" {what}")]
    Command {
        /// The provider.
        provider: String,
        /// What it did.
        what: String,
    },
    /// There is none anywhere.
    #[error(
        "No API key found for provider \"{provider}\". Auth store: {store} (agentDir: {agent_dir}). Configure auth for \
         this agent (openclaw agents add <id>) or copy auth-profiles.json from the main agentDir."
    )]
    NoKey {
        /// The provider.
        provider: String,
        /// The file that was looked into.
        store: String,
        /// Its directory.
        agent_dir: String,
    },
}

impl Keyring<'_> {
    /// The keys to try for a provider, best first; never empty. A profile asked for is the only one.
    pub(crate) async fn keys(
        &self,
        provider: &ProviderId,
        profile: Option<&str>,
    ) -> Result<Vec<Key>, CredentialError> {
        if let Some(id) = profile {
            return Ok(vec![self.asked_profile(provider, id)?]);
        }
        let mut expired = None;
        let mut keys = Vec::new();
        for id in self.ready_profiles(provider)? {
            match self.profile_key(&id) {
                Ok(key) => keys.push(key),
                Err(error) => expired = Some(error),
            }
        }
        keys.truncate(MAX_PROFILES);
        if !keys.is_empty() {
            return Ok(keys);
        }
        if let Some((name, key)) = self.variables.first(key_variables(provider)) {
            let mode = if name.contains("OAUTH") { "oauth" } else { "api-key" };
            return Ok(vec![Key::new(SecretString::from(key), mode, format!("env: {name}"))]);
        }
        match self.configured_key(provider).await? {
            Some(key) => Ok(vec![key]),
            None => Err(expired.unwrap_or_else(|| self.no_key(provider))),
        }
    }

    /// The profiles that do not rest; an error when there are some and all rest.
    fn ready_profiles(&self, provider: &ProviderId) -> Result<Vec<String>, CredentialError> {
        let order = profile_order(provider, self.store, self.settings, None, self.now);
        let some = !order.is_empty();
        let ready: Vec<String> =
            order.into_iter().filter(|id| !self.store.usage(id).rests(self.now)).collect();
        if some && ready.is_empty() {
            return Err(CredentialError::AllResting(provider.to_string()));
        }
        Ok(ready)
    }

    fn asked_profile(&self, provider: &ProviderId, id: &str) -> Result<Key, CredentialError> {
        let credential = self.store.get(id).ok_or_else(|| CredentialError::NoProfile(id.to_owned()))?;
        if credential.provider != *provider {
            return Err(CredentialError::ForeignProfile {
                profile: id.to_owned(),
                is: credential.provider.to_string(),
                wanted: provider.to_string(),
            });
        }
        self.profile_key(id)
    }

    fn profile_key(&self, id: &str) -> Result<Key, CredentialError> {
        let missing = || CredentialError::NoProfile(id.to_owned());
        let (secret, mode) = match &self.store.get(id).ok_or_else(missing)?.secret {
            Secret::ApiKey(key) => (key, "api-key"),
            Secret::Token { token, expires } if expires.is_none_or(|at| self.now < at) => (token, "token"),
            Secret::OAuth { access, expires, .. }
                if !is_blank(access) && expires.is_none_or(|at| self.now < at) =>
            {
                (access, "oauth")
            }
            Secret::Token { .. } | Secret::OAuth { .. } => {
                return Err(CredentialError::Expired(id.to_owned()));
            }
        };
        if is_blank(secret) {
            return Err(missing());
        }
        let mut key = Key::new(secret.clone(), mode, format!("profile:{id}"));
        key.label.profile = Some(id.to_owned());
        Ok(key)
    }

    /// `models.providers.<p>.apiKey`; a configured server on this machine needs none.
    async fn configured_key(&self, provider: &ProviderId) -> Result<Option<Key>, CredentialError> {
        let Some(entry) = self.catalog.provider(provider) else { return Ok(None) };
        let written =
            entry.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty());
        let Some(written) = written else {
            let local =
                self.catalog.is_configured(provider) && entry.base_url.as_deref().is_some_and(is_local_url);
            return Ok(local.then(Key::none));
        };
        let mode = match entry.auth {
            Some(ProviderAuthKind::OAuth) => "oauth",
            Some(ProviderAuthKind::Token) => "token",
            Some(ProviderAuthKind::ApiKey | ProviderAuthKind::AwsSdk) | None => "api-key",
        };
        let secret = match (written.strip_prefix('!'), reference_name(written)) {
            (Some(command), _) => self
                .commands
                .run(command, self.variables)
                .await
                .map_err(|what| CredentialError::Command { provider: provider.to_string(), what })?,
            (None, Some(name)) => match self.variables.get(name) {
                Some(value) => SecretString::from(value),
                None => return Err(self.no_key(provider)),
            },
            (None, None) => SecretString::from(self.variables.get(written).unwrap_or(written)),
        };
        Ok(Some(Key::new(secret, mode, "models.json".to_owned())))
    }

    fn no_key(&self, provider: &ProviderId) -> CredentialError {
        CredentialError::NoKey {
            provider: provider.to_string(),
            store: self.agent_dir.join(FILE).display().to_string(),
            agent_dir: self.agent_dir.display().to_string(),
        }
    }
}

/// The variable of `${NAME}`.
pub(super) fn reference_name(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}')
}

fn is_blank(secret: &SecretString) -> bool {
    secret.expose_secret().trim().is_empty()
}

impl Key {
    fn new(secret: SecretString, mode: &'static str, source: String) -> Self {
        let text = secret.expose_secret();
        let label = AuthLabel { mode, source, masked: masked(text), snippet: snippet(text), profile: None };
        Self { secret: Some(secret), label }
    }

    /// For who needs no key.
    pub(crate) fn none() -> Self {
        let label = AuthLabel {
            mode: "none",
            source: String::new(),
            masked: String::new(),
            snippet: String::new(),
            profile: None,
        };
        Self { secret: None, label }
    }
}

/// A key as people may see it: eight characters at either end of a long one; of a short one too little to guess it.
pub fn masked(key: &str) -> String {
    ends(key, 8, "...")
}

/// Four characters at either end.
fn snippet(key: &str) -> String {
    ends(key, 4, "…")
}

/// At most `keep` characters of either end, and never more than half of the whole.
fn ends(key: &str, keep: usize, between: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    let keep = keep.min(chars.len() / 4);
    let head: String = chars.iter().take(keep).collect();
    let tail: String = chars.iter().skip(chars.len() - keep).collect();
    format!("{head}{between}{tail}")
}

#[cfg(test)]
mod tests;
