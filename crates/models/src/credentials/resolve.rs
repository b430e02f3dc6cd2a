//! The keys with which a provider may be called (spec `models.md` §8.3).

use openclaw_config::settings::ProviderAuth;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use super::advice::{AgentFlag, how_to_add, how_to_replace};
use super::command::KeyCommands;
use super::credential::{Credential, Secret};
use super::error::CredentialError;
use super::file::FILE;
use super::legacy::Surroundings;
use super::logins::{Because, LoginPlace, Logins, renews};
use super::order::profile_order;
use super::renewable::{KeySource, Renewable};
use super::store::AuthStore;
use crate::api::Api;
use crate::bedrock::credentials as aws;
use crate::catalog::{Catalog, key_variables};
use crate::google::adc::Adc;
use crate::oauth::{codex, github};
use crate::reference::ProviderId;
use crate::settings::ModelSettings;
use crate::variables::{self, Variables};

/// Provider whose address is made of the account and the gateway.
const CLOUDFLARE: &str = "cloudflare-ai-gateway";
/// Largest number of profiles of one provider that a run may try.
const MAX_PROFILES: usize = 8;

/// All places in which keys are looked up.
pub(crate) struct Keyring<'a> {
    pub(crate) store: &'a AuthStore,
    pub(crate) settings: &'a ModelSettings,
    pub(crate) catalog: &'a Catalog,
    pub(crate) variables: &'a Variables,
    pub(crate) commands: &'a KeyCommands,
    pub(crate) logins: &'a Logins,
    pub(crate) agent_dir: &'a Path,
    /// Flag of the agent, for advice.
    pub(crate) agent: AgentFlag,
    /// Unix milliseconds.
    pub(crate) now: i64,
    /// Time at which a person chose the model that is asked, in Unix milliseconds. If no profile is ready, those are tried whose last
    /// failure is older.
    pub(crate) chosen_at: Option<i64>,
}

/// Profiles of a provider that may be used.
struct Profiles {
    ready: Vec<String>,
    /// Reason why there are none although the provider has some.
    unusable: Option<CredentialError>,
}

/// Profiles that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileWish<'a> {
    /// Tries all profiles of the provider in their order.
    Any,
    /// Tries all profiles of the provider, this one first.
    First(&'a str),
    /// Tries only this profile, even in cooldown, because a person chose it.
    Only(&'a str),
}

/// A key, or the knowledge that none is needed.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedKey {
    /// A plain key, or a JSON object of several values where the provider needs them.
    pub(crate) secret: Option<SecretString>,
    /// Address of the provider for this credential, in place of its usual one.
    pub(crate) base_url: Option<String>,
    pub(crate) label: AuthLabel,
    /// Source of a new key when the provider refuses this one; `None` if there is none.
    pub(crate) renewable: Option<Renewable>,
}

/// Origin of a credential, for status cards; contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthLabel {
    /// `api-key`, `oauth`, `token`, or `none` for a server that wants none.
    pub mode: &'static str,
    /// `profile:<id>`, `env: NAME`, `models.json`, or empty.
    pub source: String,
    /// First and last characters, as in `sk-ant-a...89abcdef`; empty without a key.
    pub masked: String,
    /// Shorter form of the masked key, as in `sk-a…cdef`.
    pub snippet: String,
    /// Form of the masked key for status cards, as in `sk-ant…abcdef`; nothing of a short key.
    pub card: String,
    /// The profile, where it is one.
    pub profile: Option<String>,
}

impl AuthLabel {
    /// Returns true if the key is from an environment variable.
    pub(crate) fn is_of_variable(&self) -> bool {
        variables::is_variable(&self.source)
    }
}

impl Keyring<'_> {
    /// The keys to try for a provider, best first; never empty. A profile asked for is the only one.
    ///
    /// A login whose time is over is renewed where it would be the first to be tried. Later ones are left out then: a run
    /// that may never need them does not wait for them.
    pub(crate) async fn keys(
        &self,
        provider: &ProviderId,
        wish: ProfileWish<'_>,
    ) -> Result<Vec<ResolvedKey>, CredentialError> {
        let preferred = match wish {
            ProfileWish::Only(id) => return Ok(vec![self.asked_profile(provider, id).await?]),
            ProfileWish::First(id) => Some(id),
            ProfileWish::Any => None,
        };
        if self.asks_aws_first(provider) {
            return self.aws_key().await?.map(|key| vec![key]).ok_or_else(|| self.no_key(provider));
        }
        let Profiles { ready, unusable: mut error } = self.profiles(provider, preferred)?;
        let mut keys: Vec<ResolvedKey> = Vec::new();
        for id in ready.into_iter().take(MAX_PROFILES) {
            let found = match self.stored(&id) {
                Ok(credential) if self.is_at_hand(credential) => self.key_of(&id, credential),
                Ok(_) if !keys.is_empty() => continue,
                Ok(_) => self.fetched(&id).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(key) => keys.push(key),
                Err(found) => {
                    tracing::warn!(profile = %id, error = %found, "passing over a profile");
                    error = Some(found);
                }
            }
        }
        if !keys.is_empty() {
            // Profiles that were refused will be refused again, each time that their cooldown ends.
            if self.are_refused(provider)
                && let Ok(Some(other)) = self.key_elsewhere(provider).await
                && other.secret.is_some()
            {
                keys.push(other);
            }
            return Ok(keys);
        }
        match (self.key_elsewhere(provider).await, error) {
            // A server on this machine may need no key, but that does not help a person whose key
            // can't be used.
            (Ok(Some(key)), Some(error)) if key.secret.is_none() => Err(error),
            (Ok(Some(key)), _) => Ok(vec![key]),
            (Ok(None) | Err(CredentialError::NoKey { .. }), Some(error)) => Err(error),
            (Ok(None), None) => Err(self.no_key(provider)),
            (Err(error), _) => Err(error),
        }
    }

    /// Returns the origin of the first key, without fetching or renewing anything.
    pub(crate) async fn label(&self, provider: &ProviderId, profile: Option<&str>) -> Option<AuthLabel> {
        let first = match profile {
            Some(id) => Some(id.to_owned()),
            None => self.profiles(provider, None).ok()?.ready.into_iter().next(),
        };
        if let Some(id) = first
            && let Some(credential) = self.store.get(&id)
        {
            return self.key_of(&id, credential).ok().map(|key| key.label);
        }
        if let Some((name, key)) = self.variables.first(key_variables(provider)) {
            return Some(self.variable_key(name, key).label);
        }
        self.configured_key(provider).await.ok().flatten().map(|key| key.label)
    }

    /// A variable, else the configuration.
    async fn key_elsewhere(&self, provider: &ProviderId) -> Result<Option<ResolvedKey>, CredentialError> {
        if let Some((name, key)) = self.variables.first(key_variables(provider)) {
            let mut key = self.variable_key(name, key);
            if provider.as_str() == github::PROVIDER {
                self.exchange(&mut key).await?;
            }
            return Ok(Some(key));
        }
        if self.is_without_key(provider, &Api::BedrockConverseStream)
            && let Some(key) = self.aws_key().await?
        {
            return Ok(Some(key));
        }
        if self.is_without_key(provider, &Api::GoogleVertex)
            && let Some(key) = self.vertex_key().await?
        {
            return Ok(Some(key));
        }
        self.configured_key(provider).await
    }

    /// Returns the profiles of a provider that may be used. If none may, the other sources of keys
    /// count only if the provider refused the profiles: a limit on calls is waited for, as another
    /// key may cost what this one does not.
    fn profiles(&self, provider: &ProviderId, preferred: Option<&str>) -> Result<Profiles, CredentialError> {
        match self.ready_profiles(provider, preferred) {
            Ok(ready) => Ok(Profiles { ready, unusable: None }),
            Err(error) if self.are_refused(provider) => {
                Ok(Profiles { ready: Vec::new(), unusable: Some(error) })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns true if a provider has profiles and refused each of them since it last answered with
    /// it.
    fn are_refused(&self, provider: &ProviderId) -> bool {
        let all = profile_order(provider, self.store, self.settings, None, self.now);
        !all.is_empty() && all.iter().all(|id| self.store.usage(id).was_refused())
    }

    /// The profiles that may be used; an error when there are some and none may. Profiles in
    /// cooldown because of the server's trouble come last: it may be over, and the caller would
    /// otherwise get `AllCoolingDown`.
    fn ready_profiles(
        &self,
        provider: &ProviderId,
        preferred: Option<&str>,
    ) -> Result<Vec<String>, CredentialError> {
        let all = profile_order(provider, self.store, self.settings, preferred, self.now);
        let all_cooling_down = (!all.is_empty()).then(|| self.all_cooling_down(provider, &all));
        let usage = |id: &String| self.store.usage(id);
        let open = all.iter().filter(|id| !usage(id).is_barred(self.now)).cloned();
        let (mut ready, cooling_down): (Vec<String>, Vec<String>) =
            open.partition(|id| !usage(id).is_cooling_down(self.now));
        ready.extend(cooling_down);
        if let Some(chosen_at) = self.chosen_at.filter(|_| ready.is_empty()) {
            let failed_before = |id: &String| usage(id).last_failure_at.is_none_or(|at| at < chosen_at);
            ready = all.into_iter().filter(failed_before).collect();
        }
        match all_cooling_down {
            Some(error) if ready.is_empty() => Err(error),
            Some(_) | None => Ok(ready),
        }
    }

    /// Returns the error for profiles of which none may be used: the cause of each, its end, and the
    /// next step.
    fn all_cooling_down(&self, provider: &ProviderId, profiles: &[String]) -> CredentialError {
        let each = profiles.iter().take(MAX_PROFILES).map(|id| {
            let usage = self.store.usage(id);
            let until = jiff::Timestamp::from_millisecond(usage.unusable_until(self.now)).unwrap_or_default();
            match usage.failures_of_credential() {
                reasons if reasons.is_empty() => format!("{id} is not tried before {until:.0}"),
                reasons => format!("{id} is not tried before {until:.0} ({})", reasons.join(", ")),
            }
        });
        let each = each.collect::<Vec<_>>().join(", ");
        let replace = how_to_replace(provider, &self.agent);
        let status = self.agent.in_text(&format!("`openclaw models status{}`", self.agent));
        let why = format!("{each}. {replace} stores another credential; {status} shows them.");
        CredentialError::AllCoolingDown { provider: provider.to_string(), why }
    }

    async fn asked_profile(&self, provider: &ProviderId, id: &str) -> Result<ResolvedKey, CredentialError> {
        let credential = self.stored(id)?;
        if credential.provider != *provider {
            return Err(CredentialError::ForeignProfile {
                profile: id.to_owned(),
                is: credential.provider.to_string(),
                wanted: provider.to_string(),
            });
        }
        if self.is_at_hand(credential) { self.key_of(id, credential) } else { self.fetched(id).await }
    }

    fn stored(&self, id: &str) -> Result<&Credential, CredentialError> {
        self.store.get(id).ok_or_else(|| CredentialError::NoProfile(id.to_owned()))
    }

    /// Returns true if a profile can be used without asking a server first.
    fn is_at_hand(&self, credential: &Credential) -> bool {
        !Logins::is_due(credential, self.now) && credential.provider.as_str() != github::PROVIDER
    }

    /// The key of a profile after its server was asked.
    async fn fetched(&self, id: &str) -> Result<ResolvedKey, CredentialError> {
        let around = Surroundings::of(self.variables, self.agent_dir);
        let place = LoginPlace { agent_dir: self.agent_dir, around: &around };
        let stored = self.stored(id)?;
        let mut key = if Logins::is_due(stored, self.now) {
            self.key_of(id, &self.logins.renewed(place, id, Because::Expired).await?)?
        } else {
            self.key_of(id, stored)?
        };
        if stored.provider.as_str() == github::PROVIDER {
            self.exchange(&mut key).await?;
        }
        Ok(key)
    }

    /// Turns the token of a GitHub account into one that Copilot takes.
    async fn exchange(&self, key: &mut ResolvedKey) -> Result<(), CredentialError> {
        let Some(account) = &key.secret else { return Ok(()) };
        let around = Surroundings::of(self.variables, self.agent_dir);
        let token = self.logins.copilot(&around, account, Because::Expired).await?;
        // An address written by the owner, as of a gateway in between, is kept.
        if !self.catalog.is_configured(&ProviderId::normalize(github::PROVIDER)) {
            key.base_url = Some(github::base_url(token.expose_secret()));
        }
        key.renewable = Some(self.renewable(KeySource::Copilot(account.clone())));
        key.secret = Some(token);
        Ok(())
    }

    fn renewable(&self, source: KeySource) -> Renewable {
        Renewable {
            logins: self.logins.clone(),
            agent_dir: self.agent_dir.to_path_buf(),
            around: Surroundings::of(self.variables, self.agent_dir),
            source,
        }
    }

    fn key_of(&self, id: &str, credential: &Credential) -> Result<ResolvedKey, CredentialError> {
        let (secret, mode) = match &credential.secret {
            Secret::ApiKey(key) => (key, "api-key"),
            Secret::Token { token, expires } if expires.is_none_or(|at| self.now < at) => (token, "token"),
            Secret::OAuth { access, expires, .. } if expires.is_none_or(|at| self.now < at) => {
                (access, "oauth")
            }
            Secret::Token { .. } | Secret::OAuth { .. } => {
                return Err(CredentialError::Expired(id.to_owned()));
            }
        };
        if is_blank(secret) {
            return Err(CredentialError::NoProfile(id.to_owned()));
        }
        let mut key = ResolvedKey::new(secret.clone(), mode, format!("profile:{id}"));
        key.label.profile = Some(id.to_owned());
        if let Some(whole) = credential.composite(secret) {
            key.secret = Some(whole);
        }
        if let Secret::OAuth { refresh, .. } = &credential.secret
            && renews(credential, refresh)
        {
            key.renewable = Some(self.renewable(KeySource::Login(id.to_owned())));
        }
        if let (CLOUDFLARE, Some(account), Some(gateway)) =
            (credential.provider.as_str(), &credential.about.account, &credential.about.gateway)
        {
            key.base_url =
                Some(format!("https://gateway.ai.cloudflare.com/v1/{account}/{gateway}/anthropic"));
        }
        Ok(key)
    }

    /// `models.providers.<p>.apiKey`; a configured server on this machine needs none.
    async fn configured_key(&self, provider: &ProviderId) -> Result<Option<ResolvedKey>, CredentialError> {
        let Some(entry) = self.catalog.provider(provider) else { return Ok(None) };
        let written =
            entry.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty());
        let Some(written) = written else {
            return Ok(self.catalog.needs_no_key(provider).then(ResolvedKey::none));
        };
        let mode = match entry.auth {
            Some(ProviderAuth::Oauth) => "oauth",
            Some(ProviderAuth::Token) => "token",
            Some(ProviderAuth::ApiKey | ProviderAuth::AwsSdk) | None => "api-key",
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
            (None, None) if is_unset_variable(provider, written, self.variables) => {
                return Err(self.no_key(provider));
            }
            (None, None) => SecretString::from(self.variables.get(written).unwrap_or(written)),
        };
        Ok(Some(ResolvedKey::new(secret, mode, "models.json".to_owned())))
    }

    /// `auth: "aws-sdk"`: nothing but AWS's own chain of credentials counts.
    fn asks_aws_first(&self, provider: &ProviderId) -> bool {
        self.catalog.provider(provider).is_some_and(|entry| entry.auth == Some(ProviderAuth::AwsSdk))
    }

    /// Returns true if the provider's protocol has another chain of credentials and no configured
    /// key takes precedence over it.
    fn is_without_key(&self, provider: &ProviderId, api: &Api) -> bool {
        self.catalog.provider(provider).is_some_and(|entry| {
            entry.api.as_ref() == Some(api) && entry.api_key.as_ref().is_none_or(is_blank)
        })
    }

    async fn aws_key(&self) -> Result<Option<ResolvedKey>, CredentialError> {
        let found = aws::find(self.variables).await;
        let found = found.map_err(|error| CredentialError::Aws(error.to_string()))?;
        Ok(found.map(|aws::AwsKey { secret, shown, source }| ResolvedKey {
            secret: Some(secret),
            ..ResolvedKey::new(shown, "aws-sdk", source)
        }))
    }

    async fn vertex_key(&self) -> Result<Option<ResolvedKey>, CredentialError> {
        let found = Adc::find(self.variables).await;
        let Some(adc) = found.map_err(|error| CredentialError::Google(error.to_string()))? else {
            return Ok(None);
        };
        let secret = self.logins.google(&adc, Because::Expired).await?;
        let source = KeySource::Google(Box::new(adc));
        Ok(Some(ResolvedKey {
            secret: Some(secret),
            renewable: Some(self.renewable(source)),
            ..ResolvedKey::new(SecretString::default(), "token", "gcloud adc".to_owned())
        }))
    }

    fn variable_key(&self, name: &str, key: &str) -> ResolvedKey {
        let mode = if name.contains("OAUTH") { "oauth" } else { "api-key" };
        ResolvedKey::new(SecretString::from(key), mode, self.variables.source(name))
    }

    fn no_key(&self, provider: &ProviderId) -> CredentialError {
        let codex = ProviderId::normalize(codex::PROVIDER);
        if provider.as_str() == "openai" && self.store.profiles().any(|(_, known)| known.provider == codex) {
            return CredentialError::CodexInstead;
        }
        CredentialError::NoKey {
            provider: provider.to_string(),
            store: self.agent_dir.join(FILE).display().to_string(),
            agent_dir: self.agent_dir.display().to_string(),
            fix: how_to_add(provider, &self.agent),
        }
    }
}

/// The variable of `${NAME}`.
pub(super) fn reference_name(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}')
}

/// Returns true if a value is the name of a variable that would hold a provider's key, were it set.
/// As a key it would only be refused.
pub(super) fn is_unset_variable(provider: &ProviderId, written: &str, variables: &Variables) -> bool {
    key_variables(provider).any(|name| name == written) && variables.get(written).is_none()
}

fn is_blank(secret: &SecretString) -> bool {
    secret.expose_secret().trim().is_empty()
}

impl ResolvedKey {
    fn new(secret: SecretString, mode: &'static str, source: String) -> Self {
        let text = secret.expose_secret();
        // Of a short key too little is shown to guess it, and nothing in chats.
        let is_short = text.chars().count() < SHOWN_KEY;
        let in_chats = |keep| if is_short { "…".to_owned() } else { ends(text, keep, "…") };
        let (masked, snippet, card) = (ends(text, 8, "..."), in_chats(4), in_chats(6));
        let label = AuthLabel { mode, source, masked, snippet, card, profile: None };
        Self { secret: Some(secret), base_url: None, label, renewable: None }
    }

    /// Creates the key of a provider that needs none.
    pub(crate) fn none() -> Self {
        let label = AuthLabel {
            mode: "none",
            source: String::new(),
            masked: String::new(),
            snippet: String::new(),
            card: String::new(),
            profile: None,
        };
        Self { secret: None, base_url: None, label, renewable: None }
    }
}

/// Characters of a key whose ends may be told in chats (spec `messages.md` §9).
const SHOWN_KEY: usize = 20;

/// Returns at most `keep` characters of either end, and never more than half of the whole.
fn ends(key: &str, keep: usize, between: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    let keep = keep.min(chars.len() / 4);
    let head: String = chars.iter().take(keep).collect();
    let tail: String = chars.iter().skip(chars.len() - keep).collect();
    format!("{head}{between}{tail}")
}

#[cfg(test)]
mod tests;
