//! Details of a provider for `/model status`.

use std::path::Path;

use openclaw_protocol::AgentId;

use crate::credentials::AuthLabel;
use crate::reference::ProviderId;
use crate::settings::ModelSettings;

use super::{Ask, AskPermission, Models, SelectError};

/// A provider as an owner has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCard {
    /// Provider id.
    pub provider: ProviderId,
    /// Address configured by the owner (`models.providers.<id>.baseUrl`).
    pub endpoint: Option<String>,
    /// The protocol the owner gave it.
    pub api: Option<String>,
    /// Origin of a run's key; `None` if there is none.
    pub auth: Option<AuthLabel>,
}

impl Models {
    /// The cards of some providers, for one agent. Reads the agent's credentials, may run a key command.
    ///
    /// # Errors
    /// When the credentials can't be read and there is nothing else.
    pub async fn provider_cards(
        &self,
        settings: &ModelSettings,
        agent: &AgentId,
        agent_dir: &Path,
        providers: Vec<ProviderId>,
    ) -> Result<Vec<ProviderCard>, SelectError> {
        let ask = Ask::new(agent, agent_dir);
        let run = self.prepare(settings, &ask, AskPermission::Nobody).await?;
        let mut cards = Vec::new();
        for provider in providers {
            let written = settings.providers.iter().find(|(id, _)| ProviderId::normalize(id) == provider);
            let entry = written.map(|(_, entry)| entry);
            cards.push(ProviderCard {
                endpoint: entry.and_then(|entry| entry.base_url.clone()),
                api: entry.and_then(|entry| entry.api.as_ref()).map(|api| api.as_str().to_owned()),
                auth: run.keyring().label(&provider, None).await,
                provider,
            });
        }
        Ok(cards)
    }
}
