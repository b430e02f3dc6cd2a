//! The server of llama.cpp: `GET /v1/models` for the names, `GET /props` for what it was started with.

use serde::Deserialize;

use super::server::{ModelList, Server, input, reasons};
use crate::provider_entry::ModelEntry;

/// Owner that the server reports for its models.
const OWNER: &str = "llamacpp";

#[derive(Deserialize)]
struct LlamaCppModel {
    /// An alias, or the path of the file.
    id: String,
    owned_by: Option<String>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    n_ctx_train: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Props {
    default_generation_settings: Generation,
    modalities: Modalities,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Generation {
    /// Tokens of one conversation.
    n_ctx: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Modalities {
    vision: bool,
}

pub(super) async fn models(server: &Server<'_>) -> Result<Vec<ModelEntry>, String> {
    let list: ModelList<LlamaCppModel> = server.get("/v1/models").await?;
    if !server.is_believed(list.data.iter().any(|model| model.owned_by.as_deref() == Some(OWNER))) {
        return Err("what answers is not llama.cpp's server".to_owned());
    }
    // With several models it has one set of these for each, and says so only when it is asked for that one.
    let props: Props = match list.data.as_slice() {
        [_] => server.get("/props").await.unwrap_or_default(),
        _ => Props::default(),
    };
    let models = list.data.into_iter().filter(|model| !model.id.trim().is_empty());
    Ok(models.map(|model| model.entry(&props)).collect())
}

impl LlamaCppModel {
    fn entry(self, props: &Props) -> ModelEntry {
        let file = self.id.rsplit(['/', '\\']).next().unwrap_or(&self.id);
        let started_with = props.default_generation_settings.n_ctx;
        let made_for = self.meta.as_ref().and_then(|meta| meta.n_ctx_train);
        ModelEntry {
            name: Some(file.strip_suffix(".gguf").unwrap_or(file).to_owned()),
            reasoning: Some(reasons(&self.id)),
            input: input(props.modalities.vision),
            context_window: started_with.or(made_for).filter(|tokens| *tokens > 0),
            id: self.id,
            ..ModelEntry::default()
        }
    }
}
