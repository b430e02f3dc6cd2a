//! vLLM: `GET /v1/models`.

use serde::Deserialize;

use super::server::{ModelList, Server, reasons};
use crate::provider_entry::ModelEntry;

/// Owner that the server reports for its models.
const OWNER: &str = "vllm";

#[derive(Deserialize)]
struct VllmModel {
    id: String,
    owned_by: Option<String>,
    /// Tokens.
    max_model_len: Option<u64>,
}

pub(super) async fn models(server: &Server<'_>) -> Result<Vec<ModelEntry>, String> {
    let list: ModelList<VllmModel> = server.get("/v1/models").await?;
    if !server.is_believed(list.data.iter().any(|model| model.owned_by.as_deref() == Some(OWNER))) {
        return Err("what answers is not vLLM".to_owned());
    }
    let models = list.data.into_iter().filter(|model| !model.id.trim().is_empty());
    Ok(models.map(VllmModel::entry).collect())
}

impl VllmModel {
    fn entry(self) -> ModelEntry {
        ModelEntry {
            name: Some(self.id.clone()),
            reasoning: Some(reasons(&self.id)),
            context_window: self.max_model_len.filter(|tokens| *tokens > 0),
            id: self.id,
            ..ModelEntry::default()
        }
    }
}
