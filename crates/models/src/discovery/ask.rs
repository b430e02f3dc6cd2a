//! Asks one question of whatever server it is for.

use std::time::Duration;

use super::inquiry::{DiscoverySource, Inquiry};
use super::server::Server;
use super::{llama_cpp, lm_studio, ollama, venice, vllm};
use crate::net::Http;
use crate::provider_entry::{Asks, ModelEntry, ProviderEntry};
use crate::variables::Variables;

/// Largest number of models that are taken from one server.
const MAX_MODELS: usize = 1000;
/// Total time limit for a program for local models (spec `models.md` §2.3).
const LOCAL_DEADLINE: Duration = Duration::from_secs(5);
/// Time limit for a service on the internet.
const SERVICE_DEADLINE: Duration = Duration::from_secs(10);

impl Inquiry {
    /// Asks; the error is for the log.
    pub(super) async fn ask(&self, http: &Http, variables: &Variables) -> Result<ProviderEntry, String> {
        match &self.source {
            DiscoverySource::Bedrock(discovery) => {
                discovery.run(http, variables).await.map_err(|error| error.to_string())
            }
            DiscoverySource::Server { asks, root, known_as } => {
                let server = Server { http, root, key: self.key.as_ref(), known_as: *known_as };
                let deadline = if asks.is_local() { LOCAL_DEADLINE } else { SERVICE_DEADLINE };
                let mut models = tokio::time::timeout(deadline, models(&server, *asks))
                    .await
                    .map_err(|_| format!("no answer within {deadline:?}"))??;
                models.truncate(MAX_MODELS);
                let base_url = if asks.is_local() { format!("{root}/v1") } else { root.clone() };
                Ok(ProviderEntry { base_url: Some(base_url), models, ..ProviderEntry::default() })
            }
        }
    }
}

async fn models(server: &Server<'_>, asks: Asks) -> Result<Vec<ModelEntry>, String> {
    match asks {
        Asks::Ollama => ollama::models(server).await,
        Asks::LmStudio => lm_studio::models(server).await,
        Asks::LlamaCpp => llama_cpp::models(server).await,
        Asks::Vllm => vllm::models(server).await,
        Asks::Venice => venice::models(server).await,
    }
}
