//! The model that a person names behind a reset trigger: `/new opus`, `/new minimax m2.1 hello` (spec `sessions.md` §5.4,
//! `models.md` §1.3).

use std::cmp::Reverse;

use openclaw_config::ResolvedAgent;
use openclaw_models::reference::{DEFAULT_PROVIDER, ModelNames, ProviderId};
use openclaw_models::{ModelRef, ModelSettings, Models, check_switch};

/// Words that tell variants of a model apart; one nobody asked for counts against a model.
const VARIANTS: [&str; 9] =
    ["lightning", "preview", "mini", "fast", "turbo", "lite", "beta", "small", "nano"];
/// A shorter first word is taken for the beginning of a sentence unless it names a model or provider exactly.
const LEAST_FUZZY: usize = 6;
/// What a match must score.
const ENOUGH: i32 = 120;
/// The same when the provider was named.
const ENOUGH_OF_PROVIDER: i32 = 90;
/// Typing mistakes that are forgiven.
const MISTAKES: usize = 3;

/// The models an agent may be switched to, and what they are called.
#[derive(Debug, Clone)]
pub(super) struct KnownModels {
    allowed: Vec<ModelRef>,
    names: ModelNames,
    default: ModelRef,
}

/// What became of the words behind a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// The model they begin with.
    pub(super) choice: Choice,
    /// The words behind it.
    pub(super) rest: String,
}

/// The model to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// None was named: the session keeps what it has.
    Keep,
    /// The agent's own.
    Default,
    /// This one.
    Other(ModelRef),
}

impl KnownModels {
    /// What the configuration and the catalogue know. `default` is what the agent runs with while its session names none.
    pub(super) async fn of(
        models: &Models,
        settings: &ModelSettings,
        agent: &ResolvedAgent,
        default: ModelRef,
    ) -> Self {
        let names = ModelNames::new(&settings.listed);
        let mut allowed: Vec<ModelRef> = if names.restricts() {
            let is_allowed =
                |model: &&ModelRef| check_switch(settings, &agent.id, &model.to_string()).is_ok();
            names.listed().filter(is_allowed).cloned().collect()
        } else {
            let rows = models.rows(settings, &agent.agent_dir).await;
            rows.iter().map(|row| ModelRef::new(&row.provider, &row.id)).collect()
        };
        if !allowed.contains(&default) {
            allowed.push(default.clone());
        }
        Self { allowed, names, default }
    }

    /// Finds the model with which a text begins.
    pub(super) fn split(&self, text: &str) -> Named {
        let (first, behind) = word(text);
        let (second, behind_both) = word(behind);
        let hit = if self.is_provider(first) && !second.is_empty() {
            self.fuzzy(Some(first), second).map(|model| (model, behind_both))
        } else {
            None
        };
        let hit = hit.or_else(|| self.exact(first).map(|model| (model, behind)));
        let hit = hit.or_else(|| self.guess(first).map(|model| (model, behind)));
        match hit {
            Some((model, rest)) => {
                let choice =
                    if *model == self.default { Choice::Default } else { Choice::Other(model.clone()) };
                Named { choice, rest: rest.to_owned() }
            }
            None => Named { choice: Choice::Keep, rest: text.to_owned() },
        }
    }

    fn is_provider(&self, text: &str) -> bool {
        !text.is_empty() && self.allowed.iter().any(|model| model.provider == ProviderId::normalize(text))
    }

    fn exact(&self, text: &str) -> Option<&ModelRef> {
        let wanted = self.names.resolve(text, DEFAULT_PROVIDER)?;
        self.allowed.iter().find(|model| **model == wanted)
    }

    fn guess(&self, text: &str) -> Option<&ModelRef> {
        let worth_it = self.is_provider(text) || text.chars().count() >= LEAST_FUZZY;
        let guessed = || match text.split_once('/') {
            Some((provider, model)) if self.is_provider(provider) => self.fuzzy(Some(provider), model),
            Some(_) | None => self.fuzzy(None, text),
        };
        worth_it.then(guessed).flatten()
    }

    /// The model that fits best, if any fits well enough.
    fn fuzzy(&self, provider: Option<&str>, text: &str) -> Option<&ModelRef> {
        let provider = provider.map(ProviderId::normalize);
        let text = text.to_lowercase();
        let enough = if provider.is_some() { ENOUGH_OF_PROVIDER } else { ENOUGH };
        let fits = self
            .allowed
            .iter()
            .filter(|model| provider.as_ref().is_none_or(|provider| model.provider == *provider))
            .filter(|model| provider.is_none() || self.is_about(model, &text))
            .map(|model| (self.score(model, &text), model))
            .filter(|(score, _)| *score >= enough);
        fits.max_by_key(|(score, model)| {
            let variants = variants_in(&model.model.to_lowercase());
            let asked = variants.iter().filter(|variant| text.contains(**variant)).count();
            let (is_default, key) = (**model == self.default, model.to_string());
            (*score, is_default, asked, Reverse((variants.len(), model.model.len(), key)))
        })
        .map(|(_, model)| model)
    }

    /// Whether a text is about the model rather than its provider: `/new anthropic an essay` is not.
    fn is_about(&self, model: &ModelRef, text: &str) -> bool {
        let id = model.model.to_lowercase();
        id.contains(text) || mistakes(text, &id).is_some() || self.aliases(model).any(|a| a.contains(text))
    }

    fn aliases<'a>(&'a self, model: &'a ModelRef) -> impl Iterator<Item = String> + 'a {
        self.names.aliases().filter(move |(_, named)| *named == model).map(|(alias, _)| alias.to_lowercase())
    }

    fn score(&self, model: &ModelRef, text: &str) -> i32 {
        let (provider, id) = (model.provider.as_str(), model.model.to_lowercase());
        let mut score = likeness(&format!("{provider}/{id}"), text, [220, 140, 110])
            + likeness(provider, text, [180, 120, 90])
            + likeness(&id, text, [160, 110, 80])
            + self.aliases(model).map(|alias| likeness(&alias, text, [140, 90, 60])).sum::<i32>();
        if let Some(made) = mistakes(text, &id) {
            score += 70 * i32::try_from(MISTAKES - made).unwrap_or(0);
        }
        if score == 0 {
            // Nothing speaks for it; what follows only orders those for which something does.
            return 0;
        }
        if id.starts_with(provider) {
            score += 30;
        }
        if *model == self.default {
            score += 20;
        }
        score + variant_score(&id, text)
    }
}

/// Points for how a name holds a text: wholly, at its beginning, anywhere.
fn likeness(name: &str, text: &str, [whole, beginning, anywhere]: [i32; 3]) -> i32 {
    match () {
        () if text.is_empty() => 0,
        () if name == text => whole,
        () if name.starts_with(text) => beginning,
        () if name.contains(text) => anywhere,
        () => 0,
    }
}

/// Typing mistakes between two words, where they are few beside the length of the word typed.
fn mistakes(text: &str, name: &str) -> Option<usize> {
    let typed = text.chars().count();
    if typed.abs_diff(name.chars().count()) > MISTAKES {
        return None;
    }
    let made = strsim::levenshtein(text, name);
    (made <= MISTAKES && made * 2 < typed).then_some(made)
}

fn variants_in(id: &str) -> Vec<&'static str> {
    VARIANTS.into_iter().filter(|variant| id.contains(variant)).collect()
}

fn variant_score(id: &str, text: &str) -> i32 {
    let count = |variants: usize| i32::try_from(variants).unwrap_or(0);
    let (asked, had) = (variants_in(text), variants_in(id));
    let both = count(asked.iter().filter(|variant| had.contains(variant)).count());
    match (asked.is_empty(), both) {
        (true, _) => -30 * count(had.len()),
        (false, 0) => -20,
        (false, both) => 40 * both,
    }
}

/// The first word of a text and what is behind it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.split_once(char::is_whitespace) {
        Some((first, behind)) => (first, behind.trim_start()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_models::settings::ListedModel;

    use super::*;

    fn known() -> KnownModels {
        let listed = [
            ("anthropic/claude-opus-4-6", Some("opus")),
            ("anthropic/claude-haiku-4-5", None),
            ("openai/gpt-5.2", None),
            ("openai/gpt-5-mini", None),
            ("minimax/MiniMax-M2.1", None),
            ("minimax/MiniMax-M2.1-lightning", None),
            ("local/llama-3", Some("Tiny")),
        ];
        let listed: Vec<ListedModel> = listed
            .into_iter()
            .map(|(key, alias)| ListedModel {
                key: key.to_owned(),
                alias: alias.map(str::to_owned),
                ..ListedModel::default()
            })
            .collect();
        let names = ModelNames::new(&listed);
        let allowed = names.listed().cloned().collect();
        KnownModels { allowed, names, default: ModelRef::new("openai", "gpt-5.2") }
    }

    #[test]
    fn the_first_words_may_name_a_model_and_the_others_stay_the_message() {
        let rows = [
            ("minimax m2.1 hello", "minimax/MiniMax-M2.1", "hello"),
            ("minimax lightning", "minimax/MiniMax-M2.1-lightning", ""),
            ("take notes", "keep", "take notes"),
            ("opus  write  a poem", "anthropic/claude-opus-4-6", "write  a poem"),
            ("OPUS", "anthropic/claude-opus-4-6", ""),
            ("tiny hi", "local/llama-3", "hi"),
            ("anthropic/claude-haiku-4-5 hi", "anthropic/claude-haiku-4-5", "hi"),
            ("anthropic/haiku hi", "anthropic/claude-haiku-4-5", "hi"),
            ("openai/gpt-5.2 hi", "default", "hi"),
            ("claude-opus hi", "anthropic/claude-opus-4-6", "hi"),
            ("minimax-m2.2 hi", "minimax/MiniMax-M2.1", "hi"),
            ("anthropic an essay please", "anthropic/claude-opus-4-6", "an essay please"),
            ("openai is a company", "default", "is a company"),
            ("remember the milk", "keep", "remember the milk"),
            ("haiku about rain", "keep", "haiku about rain"),
            ("other/model hi", "keep", "other/model hi"),
            ("/status", "keep", "/status"),
        ];
        for (text, expected, rest) in rows {
            let named = known().split(text);
            let choice = match named.choice {
                Choice::Keep => "keep".to_owned(),
                Choice::Default => "default".to_owned(),
                Choice::Other(model) => model.to_string(),
            };
            assert_eq!((choice.as_str(), named.rest.as_str()), (expected, rest), "{text}");
        }
    }
}
