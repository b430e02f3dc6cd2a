//! Reading `models.json`.

use openclaw_config::settings::ProviderAuth;
use openclaw_config::shared_place;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use super::FILE;
use super::check::{FileProblem, check};
use super::marker::is_marker;
use crate::api::Api;
use crate::provider_entry::{ModelEntry, ModelOverride, ProviderEntry};
use crate::reference::ProviderId;

/// Window of a model that does not say, in tokens (spec `models.md` §2.1).
const CONTEXT_WINDOW: u64 = 128_000;
/// Largest answer of a model that does not say, in tokens.
const MAX_TOKENS: u64 = 16_384;

/// Providers of a `models.json`, in its order. Keys that only stand for others are left out: those
/// are found where they are.
pub(super) type Providers = Vec<(ProviderId, ProviderEntry)>;

/// Reads the file of an agent's directory; without one there are no providers. Blocks.
pub(super) fn read(agent_dir: &Path) -> Result<Providers, FileProblem> {
    match text(&agent_dir.join(FILE)) {
        Ok(Some(text)) => parse(&text),
        Ok(None) => Ok(Providers::new()),
        Err(error) => Err(FileProblem::Read(error.to_string())),
    }
}

/// Reads the text of a file. `None` without a file, and for one that a power cut has left without content: it is made anew.
pub(super) fn text(path: &Path) -> io::Result<Option<String>> {
    match shared_place::read_to_string(path) {
        Ok(text) => Ok(Some(text).filter(|text| text.bytes().any(|byte| byte > b' '))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
    headers: BTreeMap<String, SecretString>,
    auth_header: Option<bool>,
    models: Vec<ModelEntry>,
    model_overrides: BTreeMap<String, Value>,
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
            headers: self.headers,
            auth_header: self.auth_header,
            models: self.models.into_iter().map(filled).collect(),
            model_overrides: overrides.map(|(id, change)| (id, change_of(change))).collect(),
            ..ProviderEntry::default()
        }
    }
}

/// The document was checked: what does not fit here is a part that means nothing to us.
fn change_of(written: Value) -> ModelOverride {
    serde_json::from_value(written).unwrap_or_default()
}

/// A model with what is assumed of one that does not say. The address is given by its provider
/// alone.
fn filled(model: ModelEntry) -> ModelEntry {
    ModelEntry {
        name: Some(model.name.unwrap_or_else(|| model.id.clone())),
        base_url: None,
        reasoning: Some(model.reasoning.unwrap_or(false)),
        context_window: model.context_window.or(Some(CONTEXT_WINDOW)),
        max_tokens: model.max_tokens.or(Some(MAX_TOKENS)),
        ..model
    }
}

/// `NAME` of `${NAME}`.
fn braceless(key: &str) -> String {
    let key = key.trim();
    key.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(key).to_owned()
}
