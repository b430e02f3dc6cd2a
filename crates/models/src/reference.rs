//! `provider/model`: parsing, normalising, and the lists a person may choose from (spec `models.md` §1.1, §1.2).

use openclaw_config::settings::ModelChoice;
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Names that listed models get without asking.
use openclaw_config::MODEL_ALIASES as BUILT_IN_ALIASES;

use crate::settings::ListedModel;

/// The provider of a reference without one (spec `models.md` §1.1).
pub const DEFAULT_PROVIDER: &str = "anthropic";
/// The model of an agent for which none is configured (spec `models.md` §1.2).
pub const DEFAULT_MODEL: &str = "claude-opus-4-6";

/// Other spellings of provider ids (spec `models.md` §1.1).
const PROVIDER_ALIASES: &[(&str, &str)] = &[
    ("z.ai", "zai"),
    ("z-ai", "zai"),
    ("opencode-zen", "opencode"),
    ("qwen", "qwen-portal"),
    ("kimi-code", "kimi-coding"),
];

/// Short model ids by provider (spec `models.md` §1.1); keys are compared without case.
const MODEL_ALIASES: &[(&str, &str, &str)] = &[
    ("anthropic", "opus-4.6", "claude-opus-4-6"),
    ("anthropic", "opus-4.5", "claude-opus-4-5"),
    ("anthropic", "sonnet-4.5", "claude-sonnet-4-5"),
    ("google", "gemini-3-pro", "gemini-3-pro-preview"),
    ("google", "gemini-3-flash", "gemini-3-flash-preview"),
];

/// A provider's id in canonical form: trimmed, lower case, aliases resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderId(Arc<str>);

impl ProviderId {
    /// Normalises any spelling.
    pub fn normalize(text: &str) -> Self {
        let lower = text.trim().to_lowercase();
        let canonical = PROVIDER_ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, id)| *id);
        Self(Arc::from(canonical.unwrap_or(&lower)))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ProviderId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model of a provider. `Display` is the canonical key `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelRef {
    /// The provider.
    pub provider: ProviderId,
    /// The model's id as the provider knows it; case is kept.
    pub model: String,
}

impl ModelRef {
    /// Normalises both parts.
    pub fn new(provider: &str, model: &str) -> Self {
        let provider = ProviderId::normalize(provider);
        let model = model.trim();
        let full = MODEL_ALIASES
            .iter()
            .find(|(of, short, _)| *of == provider.as_str() && short.eq_ignore_ascii_case(model))
            .map(|(_, _, full)| *full);
        Self { model: full.unwrap_or(model).to_owned(), provider }
    }

    /// Parses `provider/model`, split at the first `/`; text without one belongs to
    /// `default_provider`. `None` if a half is empty.
    pub fn parse(text: &str, default_provider: &str) -> Option<Self> {
        let text = text.trim();
        let (provider, model) = text.split_once('/').unwrap_or((default_provider, text));
        if provider.trim().is_empty() || model.trim().is_empty() {
            return None;
        }
        Some(Self::new(provider, model))
    }
}

impl Default for ModelRef {
    /// The model of an agent for which none is configured.
    fn default() -> Self {
        Self::new(DEFAULT_PROVIDER, DEFAULT_MODEL)
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// The names under which the owner knows models: `agents.defaults.models` with its aliases.
#[derive(Debug, Clone, Default)]
pub struct ModelNames {
    entries: Vec<NamedModel>,
}

#[derive(Debug, Clone)]
struct NamedModel {
    reference: ModelRef,
    alias: Option<String>,
}

impl ModelNames {
    /// Takes the configured list; entries that are no reference are left out. Entries without an `alias` key get the
    /// built-in one of their model, if it has one and the name is still free.
    pub fn new(listed: &[ListedModel]) -> Self {
        let taken = |name: &str| {
            listed.iter().any(|l| l.alias.as_deref().is_some_and(|a| a.trim().eq_ignore_ascii_case(name)))
        };
        let entries = listed
            .iter()
            .filter_map(|entry| {
                let reference = ModelRef::parse(&entry.key, DEFAULT_PROVIDER)?;
                let alias = match &entry.alias {
                    Some(alias) => Some(alias.trim().to_owned()).filter(|alias| !alias.is_empty()),
                    None => built_in_alias(&reference).filter(|name| !taken(name)).map(str::to_owned),
                };
                Some(NamedModel { reference, alias })
            })
            .collect();
        Self { entries }
    }

    /// Returns true if a model is listed.
    pub fn lists(&self, reference: &ModelRef) -> bool {
        self.entries.iter().any(|entry| entry.reference == *reference)
    }

    /// The listed models in order.
    pub fn listed(&self) -> impl Iterator<Item = &ModelRef> {
        self.entries.iter().map(|entry| &entry.reference)
    }

    /// Aliases with what they stand for, in order.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &ModelRef)> {
        self.entries.iter().filter_map(|entry| Some((entry.alias.as_deref()?, &entry.reference)))
    }

    /// The alias a text is, as the owner wrote it, and what it stands for. Text with a `/` is none; case and surrounding
    /// blanks are ignored.
    pub fn by_alias(&self, text: &str) -> Option<(&str, &ModelRef)> {
        let wanted = text.trim().to_lowercase();
        if wanted.contains('/') {
            return None;
        }
        self.aliases().find(|(alias, _)| alias.to_lowercase() == wanted)
    }

    /// Resolves what a person wrote: an alias (only text without `/`, case and surrounding blanks ignored), else a
    /// reference.
    pub fn resolve(&self, text: &str, default_provider: &str) -> Option<ModelRef> {
        match self.by_alias(text) {
            Some((_, reference)) => Some(reference.clone()),
            None => ModelRef::parse(text, default_provider),
        }
    }
}

/// The model that the name of a family stands for where the owner lists no models: `sonnet`, `gpt`.
pub(crate) fn usual_model(name: &str) -> Option<ModelRef> {
    let (_, target) = BUILT_IN_ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name.trim()))?;
    ModelRef::parse(target, DEFAULT_PROVIDER)
}

fn built_in_alias(reference: &ModelRef) -> Option<&'static str> {
    let key = reference.to_string();
    BUILT_IN_ALIASES.iter().find(|(_, target)| *target == key).map(|(name, _)| *name)
}

/// The configured model of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultModel {
    /// Model to call.
    pub reference: ModelRef,
    /// True if the model is configured, false if it is the product's default.
    pub configured: bool,
    /// Warning for the owner about how the reference was written.
    pub warning: Option<String>,
}

/// Resolves the primary model of an agent: its own, else the defaults', else the product's (spec `models.md` §1.2).
pub fn default_model(
    agent: Option<&ModelChoice>,
    defaults: &ModelChoice,
    names: &ModelNames,
) -> DefaultModel {
    let written = agent.and_then(|choice| choice.primary.as_deref()).or(defaults.primary.as_deref());
    let Some(written) = written.map(str::trim).filter(|text| !text.is_empty()) else {
        return DefaultModel { reference: ModelRef::default(), configured: false, warning: None };
    };
    match names.resolve(written, DEFAULT_PROVIDER) {
        Some(reference) => {
            let bare = !written.contains('/') && names.by_alias(written).is_none();
            let warning = bare.then(|| {
                format!(
                    "model \"{written}\" names no provider and is taken for \"{reference}\"; write <provider>/<model> in \
                     agents.defaults.model.primary"
                )
            });
            DefaultModel { reference, configured: true, warning }
        }
        None => DefaultModel {
            reference: ModelRef::default(),
            configured: false,
            warning: Some(format!("model \"{written}\" is not of the form provider/model and is ignored")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(rows: &[(&str, Option<&str>)]) -> Vec<ListedModel> {
        rows.iter()
            .map(|(key, alias)| ListedModel {
                key: (*key).to_owned(),
                alias: alias.map(str::to_owned),
                ..ListedModel::default()
            })
            .collect()
    }

    /// Vectors of `models.md` §1.1.
    #[test]
    fn references_parse_as_the_spec_lists() {
        let rows = [
            ("anthropic/claude-opus-4-6", Some("anthropic/claude-opus-4-6")),
            ("openrouter/moonshotai/kimi-k2", Some("openrouter/moonshotai/kimi-k2")),
            ("opus-4.6", Some("anthropic/claude-opus-4-6")),
            ("OPUS-4.5", Some("anthropic/claude-opus-4-5")),
            ("Anthropic/Opus-4.6", Some("anthropic/claude-opus-4-6")),
            ("Sonnet-4.5", Some("anthropic/claude-sonnet-4-5")),
            ("openrouter/Opus-4.6", Some("openrouter/Opus-4.6")),
            ("Z.AI/glm-4.7", Some("zai/glm-4.7")),
            ("z-ai/glm-4.7", Some("zai/glm-4.7")),
            ("google/gemini-3-pro", Some("google/gemini-3-pro-preview")),
            ("google/gemini-3-flash", Some("google/gemini-3-flash-preview")),
            ("google/gemini-3-pro-preview", Some("google/gemini-3-pro-preview")),
            ("qwen/coder-model", Some("qwen-portal/coder-model")),
            ("opencode-zen/claude-opus-4-6", Some("opencode/claude-opus-4-6")),
            ("kimi-code/k2p5", Some("kimi-coding/k2p5")),
            (" Local / Llama-3 ", Some("local/Llama-3")),
            ("/x", None),
            ("x/", None),
            ("", None),
        ];
        for (input, expect) in rows {
            let parsed = ModelRef::parse(input, DEFAULT_PROVIDER).map(|r| r.to_string());
            assert_eq!(parsed.as_deref(), expect, "{input:?}");
        }
        assert_eq!(
            ModelRef::parse("openrouter/moonshotai/kimi-k2", "x").unwrap().model,
            "moonshotai/kimi-k2"
        );
    }

    /// The list of `models.md` §1.2.
    #[test]
    fn every_built_in_alias_stands_for_its_model() {
        let rows = [
            ("opus", "anthropic/claude-opus-4-6"),
            ("sonnet", "anthropic/claude-sonnet-4-5"),
            ("gpt", "openai/gpt-5.2"),
            ("gpt-mini", "openai/gpt-5-mini"),
            ("gemini", "google/gemini-3-pro-preview"),
            ("gemini-flash", "google/gemini-3-flash-preview"),
        ];
        let names = ModelNames::new(&listed(&rows.map(|(_, key)| (key, None))));
        let aliases: Vec<_> = names.aliases().map(|(alias, model)| (alias, model.to_string())).collect();
        assert_eq!(aliases, rows.map(|(alias, key)| (alias, key.to_owned())));
        assert_eq!(ModelNames::new(&[]).aliases().count(), 0, "models that are not listed have none");
    }

    #[test]
    fn built_in_aliases_exist_only_for_listed_models_without_their_own() {
        let names = ModelNames::new(&listed(&[
            ("anthropic/claude-opus-4-6", None),
            ("openai/gpt-5.2", Some("")),
            ("local/llama", Some("gemini")),
            ("google/gemini-3-pro-preview", None),
        ]));
        let aliases: Vec<_> = names.aliases().map(|(a, r)| format!("{a}={r}")).collect();
        assert_eq!(aliases, ["opus=anthropic/claude-opus-4-6", "gemini=local/llama"]);
    }

    #[test]
    fn aliases_ignore_case_and_never_match_text_with_a_slash() {
        let names = ModelNames::new(&listed(&[("local/llama", Some("Fast"))]));
        let rows = [
            (" fAsT ", Some("local/llama")),
            ("x/fast", Some("x/fast")),
            ("faster", Some("anthropic/faster")),
        ];
        for (input, expect) in rows {
            assert_eq!(names.resolve(input, DEFAULT_PROVIDER).map(|r| r.to_string()).as_deref(), expect);
        }
    }

    #[test]
    fn the_default_model_is_the_agents_then_the_defaults_then_the_products() {
        let choice = |text: Option<&str>| ModelChoice { primary: text.map(str::to_owned), fallbacks: None };
        let names = ModelNames::new(&listed(&[("local/llama", Some("fast"))]));
        let check = |agent: Option<&str>, defaults: Option<&str>| {
            let found = default_model(Some(&choice(agent)), &choice(defaults), &names);
            (found.reference.to_string(), found.configured, found.warning.is_some())
        };
        assert_eq!(check(Some("a/x"), Some("b/y")), ("a/x".into(), true, false));
        assert_eq!(check(None, Some("b/y")), ("b/y".into(), true, false));
        assert_eq!(check(None, None), ("anthropic/claude-opus-4-6".into(), false, false));
        assert_eq!(check(None, Some("fast")), ("local/llama".into(), true, false));
        assert_eq!(check(None, Some("sonnet-4.5")), ("anthropic/claude-sonnet-4-5".into(), true, true));
        assert_eq!(check(None, Some("x/")), ("anthropic/claude-opus-4-6".into(), false, true));
    }
}
