//! LM Studio: `GET /api/v0/models`; a server that is only said to be one may know `GET /v1/models` alone.

use serde::Deserialize;

use super::inquiry::KnownAs;
use super::server::{ModelList, Server, input, reasons};
use crate::provider_entry::ModelEntry;

#[derive(Deserialize)]
struct LmStudioModel {
    id: String,
    /// `llm`, `vlm`, `embeddings`.
    #[serde(rename = "type")]
    kind: Option<String>,
    state: Option<String>,
    max_context_length: Option<u64>,
    /// Context length of a loaded model.
    loaded_context_length: Option<u64>,
    capabilities: Option<Vec<String>>,
}

/// The models that embed.
pub(super) async fn embedding_models(server: &Server<'_>) -> Result<Vec<String>, String> {
    let list: ModelList<LmStudioModel> = server.get("/api/v0/models").await?;
    let embeds = |model: &LmStudioModel| model.kind.as_deref() == Some("embeddings");
    Ok(list.data.into_iter().filter(embeds).map(|model| model.id).collect())
}

pub(super) async fn models(server: &Server<'_>) -> Result<Vec<ModelEntry>, String> {
    let list: ModelList<LmStudioModel> = match server.get("/api/v0/models").await {
        Ok(list) => list,
        Err(_) if server.known_as == KnownAs::Stated => server.get("/v1/models").await?,
        Err(error) => return Err(error),
    };
    let mut models: Vec<LmStudioModel> = list.data;
    if !server.is_believed(models.iter().all(|model| model.kind.is_some())) {
        return Err("what answers is not LM Studio".to_owned());
    }
    models.retain(|model| model.kind.as_deref() != Some("embeddings") && !model.id.trim().is_empty());
    // Models that are in memory already answer at once.
    models.sort_by_key(|model| model.state.as_deref() != Some("loaded"));
    Ok(models.into_iter().map(LmStudioModel::entry).collect())
}

impl LmStudioModel {
    fn entry(self) -> ModelEntry {
        let lacks_tools = self
            .capabilities
            .as_ref()
            .is_some_and(|capabilities| !capabilities.iter().any(|known| known == "tool_use"));
        ModelEntry {
            name: Some(self.id.clone()),
            reasoning: Some(reasons(&self.id)),
            input: input(self.kind.as_deref() == Some("vlm")),
            context_window: self.loaded_context_length.or(self.max_context_length).filter(|n| *n > 0),
            lacks_tools,
            id: self.id,
            ..ModelEntry::default()
        }
    }
}
