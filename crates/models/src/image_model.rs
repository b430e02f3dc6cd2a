//! The models that look at images: `agents.defaults.imageModel`, or what goes with the agent's own model (spec `models.md`
//! §10). Pure; `select` binds them, and the `image` tool asks.

use openclaw_config::settings::ModelChoice;
use std::fmt;

use crate::reference::{ModelRef, ProviderId};
use crate::settings::ModelSettings;

/// Sees best of MiniMax's, whatever else is listed of it.
const MINIMAX: &str = "minimax/MiniMax-VL-01";
const OPENAI: &str = "openai/gpt-5-mini";
const ANTHROPIC: &str = "anthropic/claude-opus-4-6";
/// Anthropic model that is asked where the first choice failed.
const ANTHROPIC_FALLBACK: &str = "anthropic/claude-opus-4-5";

/// Reason why there is no image model to ask; people are told these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "No image model configured. Set agents.defaults.imageModel.primary or agents.defaults.imageModel.fallbacks."
)]
pub struct NoImageModel;

/// All of them failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageModelsFailed(pub Vec<(ModelRef, String)>);

impl fmt::Display for ImageModelsFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(_, error)] = self.0.as_slice() {
            return f.write_str(error);
        }
        let tries: Vec<String> = self.0.iter().map(|(model, error)| format!("{model}: {error}")).collect();
        write!(f, "All image models failed ({}): {}", self.0.len(), tries.join(" | "))
    }
}

impl std::error::Error for ImageModelsFailed {}

/// The image models of an installation: as configured, else those that go with `primary`, the
/// agent's own model, as far as their providers are connected. `None` if there is no credential for
/// any: the tool is not offered then.
pub fn image_models(
    settings: &ModelSettings,
    primary: &ModelRef,
    is_connected: impl Fn(&ProviderId) -> bool,
) -> Option<ModelChoice> {
    let configured = &settings.image_model;
    let has_primary = configured.primary.as_deref().is_some_and(|text| !text.trim().is_empty());
    if has_primary || configured.fallbacks.as_ref().is_some_and(|fallbacks| !fallbacks.is_empty()) {
        return Some(configured.clone());
    }
    let has = |provider: &str| is_connected(&ProviderId::normalize(provider));
    let (openai, anthropic) = (has("openai"), has("anthropic"));
    let paired = is_connected(&primary.provider).then(|| pair(settings, &primary.provider)).flatten();
    let first = paired
        .or_else(|| openai.then(|| OPENAI.to_owned()))
        .or_else(|| anthropic.then(|| ANTHROPIC.to_owned()))?;
    let fallbacks = [(openai, OPENAI), (anthropic, ANTHROPIC_FALLBACK)]
        .into_iter()
        .filter(|(connected, model)| *connected && *model != first)
        .map(|(_, model)| model.to_owned())
        .collect();
    Some(ModelChoice { primary: Some(first), fallbacks: Some(fallbacks) })
}

/// The image model of a provider.
fn pair(settings: &ModelSettings, provider: &ProviderId) -> Option<String> {
    if provider.as_str() == "minimax" {
        return Some(MINIMAX.to_owned());
    }
    let configured = settings
        .providers
        .iter()
        .filter(|(id, _)| ProviderId::normalize(id) == *provider)
        .flat_map(|(_, entry)| &entry.models)
        .find(|model| model.input.as_ref().is_some_and(|input| input.iter().any(|kind| kind == "image")));
    if let Some(model) = configured {
        return Some(ModelRef::new(provider.as_str(), &model.id).to_string());
    }
    match provider.as_str() {
        "openai" => Some(OPENAI.to_owned()),
        "anthropic" => Some(ANTHROPIC.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reference::DEFAULT_PROVIDER;

    fn choice(primary: Option<&str>, fallbacks: &[&str]) -> ModelChoice {
        let fallbacks = fallbacks.iter().map(|text| (*text).to_owned()).collect();
        ModelChoice { primary: primary.map(str::to_owned), fallbacks: Some(fallbacks) }
    }

    fn shown(choice: Option<ModelChoice>) -> String {
        let Some(choice) = choice else { return "not offered".to_owned() };
        [vec![choice.primary.unwrap_or_default()], choice.fallbacks.unwrap_or_default()].concat().join(" ")
    }

    #[test]
    fn without_a_choice_the_image_model_goes_with_the_agents_own() {
        let eyes = json!({"models": [{"id": "blind"}, {"id": "seeing", "input": ["text", "image"]}]});
        let blind = json!({"models": [{"id": "blind", "input": ["text"]}]});
        let settings = ModelSettings {
            providers: vec![
                ("Eyes".to_owned(), serde_json::from_value(eyes).unwrap()),
                ("blind".to_owned(), serde_json::from_value(blind).unwrap()),
            ],
            ..ModelSettings::default()
        };
        let rows: [(&str, &[&str], &str); 11] = [
            ("minimax/MiniMax-M2.1", &["minimax"], "minimax/MiniMax-VL-01"),
            ("minimax/MiniMax-M2.1", &["openai"], "openai/gpt-5-mini"),
            ("eyes/blind", &["eyes"], "eyes/seeing"),
            (
                "eyes/blind",
                &["eyes", "openai", "anthropic"],
                "eyes/seeing openai/gpt-5-mini anthropic/claude-opus-4-5",
            ),
            ("openai/gpt-5.2", &["openai"], "openai/gpt-5-mini"),
            ("openai/gpt-5.2", &["openai", "anthropic"], "openai/gpt-5-mini anthropic/claude-opus-4-5"),
            (
                "anthropic/claude-opus-4-6",
                &["anthropic"],
                "anthropic/claude-opus-4-6 anthropic/claude-opus-4-5",
            ),
            (
                "anthropic/claude-opus-4-6",
                &["anthropic", "openai"],
                "anthropic/claude-opus-4-6 openai/gpt-5-mini anthropic/claude-opus-4-5",
            ),
            // The model's own provider has no key, or no model that takes images.
            ("openai/gpt-5.2", &["anthropic"], "anthropic/claude-opus-4-6 anthropic/claude-opus-4-5"),
            ("blind/blind", &["blind", "openai", "anthropic"], "openai/gpt-5-mini anthropic/claude-opus-4-5"),
            ("blind/blind", &["blind"], "not offered"),
        ];
        for (primary, connected, expect) in rows {
            let primary = ModelRef::parse(primary, DEFAULT_PROVIDER).unwrap();
            let found = image_models(&settings, &primary, |p| connected.contains(&p.as_str()));
            assert_eq!(shown(found), expect, "{primary} {connected:?}");
        }
    }

    #[test]
    fn a_choice_stands_whatever_is_connected() {
        let configured = |image_model| ModelSettings { image_model, ..ModelSettings::default() };
        let primary = ModelRef::default();
        let rows = [
            (choice(Some("a/b"), &[]), "a/b"),
            (choice(None, &["c/d"]), " c/d"),
            (choice(Some(" "), &[]), "not offered"),
        ];
        for (image_model, expect) in rows {
            assert_eq!(shown(image_models(&configured(image_model), &primary, |_| false)), expect);
        }
    }

    #[test]
    fn failures_are_told_together() {
        let model = |id| ModelRef::new("a", id);
        let one = ImageModelsFailed(vec![(model("x"), "no".to_owned())]);
        assert_eq!(one.to_string(), "no");
        let two = ImageModelsFailed(vec![(model("x"), "no".to_owned()), (model("y"), "never".to_owned())]);
        assert_eq!(two.to_string(), "All image models failed (2): a/x: no | a/y: never");
    }
}
