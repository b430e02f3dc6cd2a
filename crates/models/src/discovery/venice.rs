//! Venice: `GET /models`, which tells of each model what it can do.

use serde::Deserialize;

use super::server::{ModelList, Server, input, reasons};
use crate::provider_entry::ModelEntry;

/// Window of a model whose window is not told, in tokens.
const CONTEXT_WINDOW: u64 = 128_000;
/// Largest answer of a model that does not say, in tokens.
const MAX_TOKENS: u64 = 8_192;

#[derive(Deserialize)]
struct VeniceModel {
    id: String,
    /// `text`, `image`, `embedding`…
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    model_spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    name: Option<String>,
    available_context_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    capabilities: Capabilities,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Capabilities {
    supports_reasoning: bool,
    supports_vision: bool,
}

pub(super) async fn models(server: &Server<'_>) -> Result<Vec<ModelEntry>, String> {
    let list: ModelList<VeniceModel> = server.get("/models").await?;
    let talks = |model: &VeniceModel| {
        !model.id.trim().is_empty() && model.kind.as_deref().is_none_or(|kind| kind == "text")
    };
    let models: Vec<ModelEntry> = list.data.into_iter().filter(talks).map(VeniceModel::entry).collect();
    if models.is_empty() { Err("it names no models".to_owned()) } else { Ok(models) }
}

impl VeniceModel {
    fn entry(self) -> ModelEntry {
        let Spec { name, available_context_tokens, max_completion_tokens, capabilities } = self.model_spec;
        let named = |part: &str| self.id.to_lowercase().contains(part);
        let reasoning = capabilities.supports_reasoning || reasons(&self.id) || named("thinking");
        ModelEntry {
            name: name.or_else(|| Some(self.id.clone())),
            reasoning: Some(reasoning),
            input: input(capabilities.supports_vision),
            context_window: available_context_tokens.filter(|n| *n > 0).or(Some(CONTEXT_WINDOW)),
            max_tokens: max_completion_tokens.filter(|n| *n > 0).or(Some(MAX_TOKENS)),
            id: self.id,
            ..ModelEntry::default()
        }
    }
}
