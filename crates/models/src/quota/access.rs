//! The credential with which a provider is asked for its quota. Profiles in cooldown count too: that is when one looks.

use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};

use crate::catalog::{Catalog, own_key_variables};
use crate::credentials::{
    AuthStore, Because, Credential, LoginPlace, Logins, ProfileWish, Secret, Surroundings, profile_order,
};
use crate::reference::ProviderId;
use crate::select::Models;
use crate::settings::ModelSettings;
use openclaw_config::clock::now_ms;

/// Message for a login that the provider no longer accepts.
pub(super) const TOKEN_EXPIRED: &str = "Token expired";

/// Kind of credential that a provider requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// A login or a token of an account: keys have no quota.
    Login,
    /// A key, as its models are called with.
    Key,
}

/// A credential.
#[derive(Debug)]
pub(super) struct QuotaCredential {
    pub(super) token: SecretString,
    pub(super) account: Option<String>,
    pub(super) project: Option<String>,
}

impl QuotaCredential {
    fn new(token: SecretString) -> Self {
        Self { token, account: None, project: None }
    }

    /// The secret itself, for a header.
    pub(super) fn expose(&self) -> &str {
        self.token.expose_secret()
    }
}

/// Places in which credentials are looked up.
pub(super) struct Accesses<'a> {
    models: &'a Models,
    settings: &'a ModelSettings,
    agent_dir: &'a Path,
    catalog: Catalog,
    store: AuthStore,
}

impl<'a> Accesses<'a> {
    /// Reads the agent's credentials; a damaged store counts as empty.
    pub(super) async fn load(models: &'a Models, settings: &'a ModelSettings, agent_dir: &'a Path) -> Self {
        let (store, damage) = models.credentials(agent_dir).await;
        if let Some(damage) = damage {
            tracing::warn!(error = %damage, "quotas are asked for without stored credentials");
        }
        Self { models, settings, agent_dir, catalog: Catalog::new(settings), store }
    }

    /// The credential for a provider: nothing when there is none, an error when there is one that can't be used.
    pub(super) async fn of(
        &self,
        provider: &ProviderId,
        wants: Wants,
    ) -> Option<Result<QuotaCredential, String>> {
        for id in profile_order(provider, &self.store, self.settings, None, now_ms()) {
            match self.store.get(&id) {
                Some(stored) if wants == Wants::Key || !matches!(stored.secret, Secret::ApiKey(_)) => {
                    return Some(self.stored(&id, stored).await);
                }
                Some(_) | None => {}
            }
        }
        match wants {
            Wants::Login => self.variable(provider).map(Ok),
            Wants::Key => self.key(provider).await.map(Ok),
        }
    }

    async fn stored(&self, id: &str, stored: &Credential) -> Result<QuotaCredential, String> {
        if Logins::is_due(stored, now_ms()) {
            let around = Surroundings::of(&self.models.variables, self.agent_dir);
            let place = LoginPlace { agent_dir: self.agent_dir, around: &around };
            let renewed = self.models.logins.renewed(place, id, Because::Expired).await;
            return access(&renewed.map_err(|error| error.to_string())?);
        }
        access(stored)
    }

    fn variable(&self, provider: &ProviderId) -> Option<QuotaCredential> {
        let tokens = own_key_variables(provider).filter(|name| name.contains("TOKEN"));
        let (_, token) = self.models.variables.first(tokens)?;
        Some(QuotaCredential::new(SecretString::from(token)))
    }

    async fn key(&self, provider: &ProviderId) -> Option<QuotaCredential> {
        let keyring = self.models.keyring(self.settings, &self.catalog, &self.store, self.agent_dir);
        let keys = keyring.keys(provider, ProfileWish::Any).await.ok()?;
        keys.into_iter().find_map(|key| key.secret).map(QuotaCredential::new)
    }
}

fn access(credential: &Credential) -> Result<QuotaCredential, String> {
    let token = match &credential.secret {
        Secret::ApiKey(key) => key,
        Secret::Token { token, .. } => token,
        Secret::OAuth { expires, .. } if expires.is_some_and(|at| at <= now_ms()) => {
            return Err(TOKEN_EXPIRED.to_owned());
        }
        Secret::OAuth { access, .. } => access,
    };
    let about = &credential.about;
    Ok(QuotaCredential {
        token: token.clone(),
        account: about.account.clone(),
        project: about.project.clone(),
    })
}
