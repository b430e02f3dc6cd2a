//! Ollama: `GET /api/tags`, and `POST /api/show` for what it does not tell of each model.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Server, input, reasons};
use crate::provider_entry::ModelEntry;

/// Time limit for the details of all models together; a model without details gets the defaults.
const DETAILS_DEADLINE: Duration = Duration::from_millis(500);
/// Models whose details are asked for at a time.
const AT_A_TIME: usize = 8;

#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    /// `completion`, `tools`, `vision`, `thinking`, `embedding`; older servers do not say.
    capabilities: Option<Vec<String>>,
    /// Numbers of the model's file, as in `llama.context_length`.
    model_info: BTreeMap<String, Value>,
    /// Lines of a name and a value, as in `num_ctx 8192`.
    parameters: String,
}

/// The models that embed. Servers that do not say what a model can do are believed by its name.
pub(super) async fn embedding_models(server: &Server<'_>) -> Result<Vec<String>, String> {
    let tags: Tags = server.get("/api/tags").await?;
    let until = Instant::now() + DETAILS_DEADLINE;
    let asked = tags.models.into_iter().map(async |tag| {
        let body = json!({"model": tag.name});
        let details = tokio::time::timeout_at(until, server.post::<Details>("/api/show", &body)).await;
        let capabilities = details.ok().and_then(Result::ok).unwrap_or_default().capabilities;
        let embeds = match capabilities {
            Some(capabilities) => capabilities.iter().any(|known| known == "embedding"),
            None => tag.name.to_lowercase().contains("embed"),
        };
        embeds.then_some(tag.name)
    });
    Ok(futures_util::stream::iter(asked).buffered(AT_A_TIME).filter_map(std::future::ready).collect().await)
}

pub(super) async fn models(server: &Server<'_>) -> Result<Vec<ModelEntry>, String> {
    let tags: Tags = server.get("/api/tags").await?;
    let until = Instant::now() + DETAILS_DEADLINE;
    let detailed = tags.models.into_iter().filter(|tag| !tag.name.trim().is_empty()).map(async |tag| {
        let body = json!({"model": tag.name});
        let details = tokio::time::timeout_at(until, server.post::<Details>("/api/show", &body)).await;
        (tag.name, details.ok().and_then(Result::ok).unwrap_or_default())
    });
    let detailed: Vec<_> = futures_util::stream::iter(detailed).buffered(AT_A_TIME).collect().await;
    Ok(detailed.into_iter().filter_map(|(name, details)| entry(name, &details)).collect())
}

/// A model that can talk; those that only embed are left out.
fn entry(id: String, details: &Details) -> Option<ModelEntry> {
    let can = |what: &str| {
        details.capabilities.as_ref().map(|capabilities| capabilities.iter().any(|known| known == what))
    };
    if can("completion") == Some(false) {
        return None;
    }
    Some(ModelEntry {
        name: Some(id.clone()),
        reasoning: Some(reasons(&id) || can("thinking") == Some(true)),
        input: input(can("vision") == Some(true)),
        context_window: details.context_window(),
        lacks_tools: can("tools") == Some(false),
        id,
        ..ModelEntry::default()
    })
}

impl Details {
    /// Returns the context length for which the model was made, or the smaller one set by its
    /// owner.
    fn context_window(&self) -> Option<u64> {
        let made_for = self.model_info.iter().find(|(name, _)| name.ends_with(".context_length"));
        let made_for = made_for.and_then(|(_, tokens)| tokens.as_u64()).filter(|tokens| *tokens > 0);
        let line = self.parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"));
        let cut_to = line.and_then(|value| value.trim().parse().ok()).filter(|tokens: &u64| *tokens > 0);
        match (made_for, cut_to) {
            (Some(made_for), Some(cut_to)) => Some(cut_to.min(made_for)),
            (made_for, cut_to) => cut_to.or(made_for),
        }
    }
}
