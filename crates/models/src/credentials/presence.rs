//! Presence of credentials: tells which providers could be called, without fetching a key. Runs no
//! key command.

use openclaw_config::settings::ProviderAuth;
use secrecy::ExposeSecret;

use super::order::profile_order;
use super::resolve::{is_unset_variable, reference_name};
use super::store::AuthStore;
use crate::api::Api;
use crate::bedrock::credentials as aws;
use crate::catalog::{Catalog, key_variables, own_key_variables};
use crate::google::adc::Adc;
use crate::net::is_local_url;
use crate::reference::ProviderId;
use crate::settings::ModelSettings;
use crate::variables::Variables;
use openclaw_config::clock::now_ms;

/// Places that may hold a credential.
#[derive(Debug, Clone, Copy)]
pub struct Connections<'a> {
    /// The agent's `auth-profiles.json`.
    pub store: &'a AuthStore,
    /// The configuration.
    pub settings: &'a ModelSettings,
    /// Catalog of providers and models.
    pub catalog: &'a Catalog,
    /// The environment.
    pub variables: &'a Variables,
}

impl Connections<'_> {
    /// Returns true if credentials allow a run to call a provider: a usable profile, a variable, a
    /// configured key, or a configured server on this machine.
    pub fn can_call(&self, provider: &ProviderId) -> bool {
        self.has_profile(provider)
            || self.variables.first(key_variables(provider)).is_some()
            || self.has_stated_key(provider)
            || self.catalog.needs_no_key(provider)
            || self.has_aws_key(provider)
            || self.has_google_login(provider)
    }

    /// Returns true if the owner meant to connect the provider: variables that are often set for
    /// other reasons do not count.
    pub fn is_connected(&self, provider: &ProviderId) -> bool {
        self.has_own_credential(provider) || self.has_stated_key(provider)
    }

    /// Returns true if a profile or a variable of its own provides a credential for a provider.
    pub(crate) fn has_own_credential(&self, provider: &ProviderId) -> bool {
        self.has_profile(provider) || self.variables.first(own_key_variables(provider)).is_some()
    }

    fn has_profile(&self, provider: &ProviderId) -> bool {
        !profile_order(provider, self.store, self.settings, None, now_ms()).is_empty()
    }

    /// Returns true if AWS's variables give a key for Bedrock; they are often set for other
    /// reasons.
    fn has_aws_key(&self, provider: &ProviderId) -> bool {
        let signs = self.catalog.provider(provider).is_some_and(|entry| {
            entry.api == Some(Api::BedrockConverseStream) || entry.auth == Some(ProviderAuth::AwsSdk)
        });
        signs && aws::variable(self.variables).is_some()
    }

    /// Returns true if Google's application default credentials exist for a provider that accepts
    /// them.
    fn has_google_login(&self, provider: &ProviderId) -> bool {
        let takes_it =
            self.catalog.provider(provider).is_some_and(|entry| entry.api == Some(Api::GoogleVertex));
        takes_it && Adc::is_there(self.variables)
    }

    /// Returns true if the configuration or `models.json` has a key, or if the configuration has a
    /// server on this machine, which needs none.
    fn has_stated_key(&self, provider: &ProviderId) -> bool {
        let Some(entry) = self.catalog.provider(provider) else { return false };
        let written = entry.api_key.as_ref().map(|key| key.expose_secret().trim()).unwrap_or_default();
        match reference_name(written) {
            Some(name) => self.variables.get(name).is_some(),
            None if written.is_empty() => {
                self.catalog.is_configured(provider) && entry.base_url.as_deref().is_some_and(is_local_url)
            }
            None => !is_unset_variable(provider, written, self.variables),
        }
    }
}
