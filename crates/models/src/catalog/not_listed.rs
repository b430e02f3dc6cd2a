//! Models that are asked for by a name which their provider does not list.

use std::fmt;

use openclaw_config::nearest;

use super::forward::{is_edition, newcomer};
use super::{Catalog, CatalogProvider, CatalogSource};
use crate::provider_entry::Asks;
use crate::reference::ModelRef;

/// Maximum number of models that are named.
const NAMED: usize = 12;

/// Model that is not in its provider's list, which counts as complete. It can be called all the
/// same; displayed, it says so, and names the models of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotListed {
    model: ModelRef,
    known: Vec<String>,
    /// Source of the list.
    list: ListSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListSource {
    /// `models.providers.<id>.models`
    Configured,
    /// Answer of the provider's server.
    Answered,
}

impl Catalog {
    /// Returns the model if its provider has a list that counts as complete, and the model is not in
    /// it: the list in the configuration, or the one of a local server that knows its models.
    pub fn not_listed(&self, reference: &ModelRef) -> Option<NotListed> {
        let provider = self.find(&reference.provider)?;
        let list = list_of(provider)?;
        let models = &provider.entry.models;
        let is_listed = models.iter().any(|model| is_called(&reference.model, &model.id))
            || newcomer(provider.id.as_str(), &reference.model, models).is_some();
        let known = || models.iter().map(|model| model.id.clone()).collect();
        (!is_listed).then(|| NotListed { model: reference.clone(), known: known(), list })
    }
}

/// Returns the source of a list that counts as complete.
fn list_of(provider: &CatalogProvider) -> Option<ListSource> {
    let entry = &provider.entry;
    if entry.models.is_empty() {
        return None;
    }
    // llama.cpp serves its one model under any name.
    let knows_its_own = matches!(entry.asks, Some(Asks::Ollama | Asks::LmStudio | Asks::Vllm));
    if provider.answered && knows_its_own {
        return Some(ListSource::Answered);
    }
    // Of a service with more models than are known the owner writes down a few.
    let may_have_more = entry.open && !knows_its_own;
    (provider.source == CatalogSource::Config && !may_have_more).then_some(ListSource::Configured)
}

/// True if a name means the listed model. Ollama leaves out the tag `latest`.
fn is_called(name: &str, listed: &str) -> bool {
    name == listed || listed.strip_suffix(":latest") == Some(name) || is_edition(name, listed)
}

impl fmt::Display for NotListed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelRef { provider, model } = &self.model;
        let named: Vec<&str> = self.known.iter().take(NAMED).map(String::as_str).collect();
        let more = match self.known.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let list = match self.list {
            ListSource::Configured => format!("models.providers.{provider}.models"),
            ListSource::Answered => "its server".to_owned(),
        };
        write!(f, "{provider} does not list \"{model}\" ({list} has: {}{more}).", named.join(", "))?;
        if let Some(meant) = nearest(model, self.known.iter().map(String::as_str)) {
            write!(f, " Did you mean {provider}/{meant}?")?;
        }
        f.write_str(" It is asked for by that name; runs fail if the server does not have it.")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::ModelSettings;

    fn told(id: &str, provider: Value, model: &str) -> Option<String> {
        let provider = serde_json::from_value(provider).unwrap();
        let settings =
            ModelSettings { providers: vec![(id.to_owned(), provider)], ..ModelSettings::default() };
        let unknown = Catalog::new(&settings).not_listed(&ModelRef::new(id, model));
        unknown.map(|unknown| unknown.to_string())
    }

    #[test]
    fn a_model_outside_a_whole_list_is_named_with_those_of_the_list() {
        let local =
            json!({"baseUrl": "http://x/v1", "api": "openai-completions", "models": [{"id": "qwen3:8b"}]});
        let end = "It is asked for by that name; runs fail if the server does not have it.";
        assert_eq!(
            told("local", local.clone(), "typo").unwrap(),
            format!("local does not list \"typo\" (models.providers.local.models has: qwen3:8b). {end}")
        );
        assert!(told("local", local, "qwen3:9b").unwrap().contains("Did you mean local/qwen3:8b?"));
        let many: Vec<Value> = (0..20).map(|n| json!({"id": format!("m{n}")})).collect();
        let many = told("local", json!({"baseUrl": "http://x/v1", "models": many}), "typo").unwrap();
        assert!(many.contains("m10, m11 and 8 more"), "{many}");
    }

    #[test]
    fn lists_that_are_not_whole_leave_nothing_out() {
        let with = |models: &[&str]| {
            let models: Vec<Value> = models.iter().map(|id| json!({ "id": id })).collect();
            json!({"baseUrl": "http://x/v1", "apiKey": "k", "models": models})
        };
        let rows = [
            ("local", with(&[]), "any"),
            ("local", with(&["qwen3"]), "qwen3"),
            ("ollama", with(&["llama3.2:latest"]), "llama3.2"),
            ("local", with(&["claude-opus-4-6"]), "claude-opus-4-6-20260201"),
            ("openrouter", with(&["a/b"]), "c/d"),
            ("anthropic", with(&[]), "claude-opus-4-6"),
        ];
        for (id, provider, model) in rows {
            assert_eq!(told(id, provider, model), None, "{id}/{model}");
        }
        assert!(told("ollama", with(&["llama3.2"]), "typo").is_some());
        let nobody = Catalog::new(&ModelSettings::default());
        assert_eq!(nobody.not_listed(&ModelRef::new("nobody", "x")), None);
    }
}
