//! The key a model is called with, and how it is had anew once its server refuses it.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::credentials::{CredentialError, Renewable, ResolvedKey};
use crate::provider_key::ProviderKey;

/// Shared by all calls of one candidate: what one of them renews, the next ones use.
#[derive(Debug, Default)]
pub(crate) struct SharedKey {
    key: RwLock<Option<Arc<ProviderKey>>>,
    renewable: Option<Renewable>,
}

impl SharedKey {
    /// The access a resolved key gives.
    pub(crate) fn new(key: ResolvedKey) -> Self {
        let held = key.secret.map(|secret| Arc::new(ProviderKey::from(secret)));
        Self { key: RwLock::new(held), renewable: key.renewable }
    }

    /// The key as it is now.
    pub(crate) fn key(&self) -> Option<Arc<ProviderKey>> {
        self.key.read().clone()
    }

    /// Returns a key in place of one that was refused: the one that another call has renewed
    /// meanwhile, or one renewed now. `None` if the key can't change, as an API key.
    pub(crate) async fn renewed(
        &self,
        refused: Option<&Arc<ProviderKey>>,
    ) -> Option<Result<Arc<ProviderKey>, CredentialError>> {
        let (renewable, refused) = (self.renewable.as_ref()?, refused?);
        if let Some(newer) = self.key().filter(|key| key.expose() != refused.expose()) {
            return Some(Ok(newer));
        }
        let next = match renewable.renewed(refused.secret()).await {
            Ok(secret) => Arc::new(ProviderKey::from(secret)),
            Err(error) => return Some(Err(error)),
        };
        if next.expose() == refused.expose() {
            return None;
        }
        *self.key.write() = Some(Arc::clone(&next));
        Some(Ok(next))
    }
}
