//! Reading `models.json`.

use openclaw_config::settings::ModelCost;
use openclaw_config::settings::ProviderAuth;
use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use super::FILE;
use super::check::check;
use super::marker::is_marker;
use crate::api::Api;
use crate::provider_entry::{Compat, ModelEntry, ModelEntryParams, ModelOverride, ProviderEntry, whole};
use crate::reference::ProviderId;

/// Window of a model that does not say, in tokens (spec `models.md` §2.1).
const CONTEXT_WINDOW: u64 = 128_000;
/// Largest answer of a model that does not say, in tokens.
const MAX_TOKENS: u64 = 16_384;

/// What a `models.json` says, in its order. Keys that only stand for others are left out: those are found where they are.
pub(super) type Providers = Vec<(ProviderId, ProviderEntry)>;

/// Why a `models.json` is ignored as a whole. The texts are for people; those of the rules are OpenClaw's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileProblem {
    /// It can't be read.
    #[error("{0}")]
    Read(String),
    /// It is no JSON.
    #[error("Failed to parse models.json: {0}")]
    Syntax(String),
    /// It is other JSON than it should be.
    #[error("Invalid models.json schema: {0}")]
    Schema(String),
    /// Something is missing.
    #[error("{0}")]
    Rule(String),
}

/// Reads the file of an agent's directory; without one there are no providers. Blocks.
pub(super) fn read(agent_dir: &Path) -> Result<Providers, FileProblem> {
    match std::fs::read_to_string(agent_dir.join(FILE)) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Providers::new()),
        Err(error) => Err(FileProblem::Read(error.to_string())),
    }
}

/// Reads the text of a file.
pub(super) fn parse(text: &str) -> Result<Providers, FileProblem> {
    let document = serde_json::from_str(text).map_err(|error| FileProblem::Syntax(error.to_string()))?;
    providers_of(&document)
}

/// Reads a document.
pub(super) fn providers_of(document: &Value) -> Result<Providers, FileProblem> {
    check(document)?;
    let providers = document.get("providers").and_then(Value::as_object).into_iter().flatten();
    let entry = |(id, provider): (&String, &Value)| {
        let written = WrittenProvider::deserialize(provider)
            .map_err(|error| FileProblem::Schema(format!("/providers/{id} {error}")))?;
        let id = ProviderId::normalize(id);
        let entry = written.entry(&id);
        Ok((id, entry))
    };
    providers.map(entry).collect()
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WrittenProvider {
    base_url: Option<String>,
    api_key: Option<String>,
    auth: Option<Value>,
    api: Option<Api>,
    headers: BTreeMap<String, String>,
    auth_header: Option<bool>,
    models: Vec<WrittenModel>,
    model_overrides: BTreeMap<String, WrittenOverride>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenModel {
    id: String,
    name: Option<String>,
    api: Option<Api>,
    #[serde(default)]
    reasoning: bool,
    input: Option<Vec<String>>,
    cost: Option<ModelCost>,
    context_window: Option<f64>,
    max_tokens: Option<f64>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    compat: Compat,
    #[serde(default)]
    params: Value,
}

/// The sizes may be written as `8192.0`; all else is as [`ModelOverride`] has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenOverride {
    #[serde(flatten)]
    rest: Value,
    context_window: Option<f64>,
    max_tokens: Option<f64>,
}

impl WrittenProvider {
    fn entry(self, id: &ProviderId) -> ProviderEntry {
        let key = self.api_key.map(|key| braceless(&key)).filter(|key| !is_marker(id.as_str(), key));
        let auth = self.auth.and_then(|auth| serde_json::from_value::<ProviderAuth>(auth).ok());
        let overrides = self.model_overrides.into_iter();
        ProviderEntry {
            base_url: self.base_url,
            api_key: key.map(SecretString::from),
            auth,
            api: self.api,
            headers: secret(self.headers),
            auth_header: self.auth_header,
            models: self.models.into_iter().map(WrittenModel::entry).collect(),
            model_overrides: overrides.map(|(id, change)| (id, change.entry())).collect(),
            ..ProviderEntry::default()
        }
    }
}

impl WrittenModel {
    fn entry(self) -> ModelEntry {
        let streaming = self.params.get("streaming").and_then(Value::as_bool);
        ModelEntry {
            name: Some(self.name.unwrap_or_else(|| self.id.clone())),
            id: self.id,
            api: self.api,
            base_url: None,
            reasoning: Some(self.reasoning),
            input: self.input,
            cost: self.cost,
            context_window: Some(self.context_window.and_then(whole).unwrap_or(CONTEXT_WINDOW)),
            max_tokens: Some(self.max_tokens.and_then(whole).unwrap_or(MAX_TOKENS)),
            headers: secret(self.headers),
            compat: self.compat,
            params: ModelEntryParams { streaming },
            lacks_tools: false,
        }
    }
}

impl WrittenOverride {
    fn entry(self) -> ModelOverride {
        // The document was checked: what does not fit here is a part that means nothing to us.
        let rest: ModelOverride = serde_json::from_value(self.rest).unwrap_or_default();
        ModelOverride {
            context_window: self.context_window.and_then(whole),
            max_tokens: self.max_tokens.and_then(whole),
            ..rest
        }
    }
}

fn secret(headers: BTreeMap<String, String>) -> BTreeMap<String, SecretString> {
    headers.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect()
}

/// `NAME` of `${NAME}`.
fn braceless(key: &str) -> String {
    let key = key.trim();
    key.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(key).to_owned()
}
