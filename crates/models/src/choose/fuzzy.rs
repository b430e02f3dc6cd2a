//! The model nearest to a text (spec `models.md` §1.3).

use std::cmp::Reverse;

use super::Choices;
use super::score::{mistakes, variant_count};
use crate::reference::{ModelRef, ProviderId};
use crate::select::standing;

/// Score that a match must reach.
const ENOUGH: i32 = 120;
/// Score that a match must reach if the provider was named.
const ENOUGH_OF_PROVIDER: i32 = 90;

impl Choices {
    /// The allowed model nearest to a text, of one provider where that is named; nothing where none is near enough.
    pub(super) fn fuzzy(&self, provider: Option<&str>, text: &str) -> Option<&ModelRef> {
        self.fuzzy_among(provider, text, |_| true)
    }

    /// Returns the nearest model among those that match the text by themselves rather than by their
    /// provider: a person who writes `/new anthropic an essay` does not name a model by `an`.
    pub(super) fn fuzzy_about(&self, provider: &str, text: &str) -> Option<&ModelRef> {
        let lower = text.to_lowercase();
        self.fuzzy_among(Some(provider), text, |model| {
            let few = |made: usize| made * 2 < lower.chars().count();
            self.contains(model, &lower) || mistakes(&lower, &model.model.to_lowercase()).is_some_and(few)
        })
    }

    /// Returns true if a text is part of a model's id or of one of its aliases.
    pub(super) fn contains(&self, model: &ModelRef, text: &str) -> bool {
        let text = text.trim().to_lowercase();
        model.model.to_lowercase().contains(&text)
            || self.aliases_of(model).any(|alias| alias.to_lowercase().contains(&text))
    }

    fn fuzzy_among(
        &self,
        provider: Option<&str>,
        text: &str,
        fits: impl Fn(&ModelRef) -> bool,
    ) -> Option<&ModelRef> {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return None;
        }
        let enough = if provider.is_some() { ENOUGH_OF_PROVIDER } else { ENOUGH };
        let provider = provider.map(ProviderId::normalize);
        self.known
            .iter()
            .filter(|model| provider.as_ref().is_none_or(|provider| model.provider == *provider))
            .filter(|model| fits(model))
            .map(|model| (self.score(model, &text), model))
            .filter(|(score, _)| score.points >= enough)
            .max_by_key(|(score, model)| {
                let id = &model.model;
                let standing = standing(&model.provider);
                (*score, Reverse((standing, variant_count(id), id.chars().count(), model.to_string())))
            })
            .map(|(_, model)| model)
    }
}
