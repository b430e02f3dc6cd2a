//! Scores the similarity of a text to a model, in points (spec `models.md` §1.3, as OpenClaw
//! 2026.2.9 gives them).

use super::Choices;
use crate::reference::ModelRef;

/// Words that tell variants of a model apart; one that nobody asked for counts against a model.
const VARIANTS: [&str; 9] =
    ["lightning", "preview", "mini", "fast", "turbo", "lite", "beta", "small", "nano"];

/// Points for a name that is the text, begins with it, holds it.
type Likeness = [i32; 3];
const KEY: Likeness = [220, 140, 110];
const PROVIDER: Likeness = [180, 120, 90];
const ID: Likeness = [160, 110, 80];
const ALIAS: Likeness = [140, 90, 60];

/// Typing mistakes that are forgiven, and the points for each that was not made.
const MISTAKES: usize = 3;
const PER_MISTAKE: i32 = 70;
/// The model is named after its provider.
const NAMESAKE: i32 = 30;
/// Points for the model that the agent runs with.
const DEFAULT: i32 = 20;
/// Points for each requested variant that is in the id.
const VARIANT: i32 = 40;
/// Points for each variant in the id that was not requested.
const UNASKED_VARIANT: i32 = -30;
/// Points if none of the requested variants is in the id.
const NO_VARIANT: i32 = -20;

/// Similarity of a text to one model, with the tie-breakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// The points.
    pub(super) points: i32,
    /// True if the model is the agent's own.
    is_default: bool,
    /// Variants that were asked for and are there.
    asked_variants: usize,
}

impl Choices {
    /// The points of a model. `text` is in lower case.
    pub(super) fn score(&self, model: &ModelRef, text: &str) -> Score {
        let (provider, id) = (model.provider.as_str(), model.model.to_lowercase());
        let aliases: i32 = self.aliases_of(model).map(|a| likeness(&a.to_lowercase(), text, ALIAS)).sum();
        let is_default = *model == self.default;
        let (asked, had) = (variants_in(text), variants_in(&id));
        let asked_variants = asked.iter().filter(|variant| had.contains(variant)).count();
        let points = likeness(&format!("{provider}/{id}"), text, KEY)
            + likeness(provider, text, PROVIDER)
            + likeness(&id, text, ID)
            + mistakes(text, &id).map_or(0, |made| times(PER_MISTAKE, MISTAKES - made))
            + aliases
            + if id.starts_with(provider) { NAMESAKE } else { 0 }
            + if is_default { DEFAULT } else { 0 }
            + match (asked.is_empty(), asked_variants) {
                (true, _) => times(UNASKED_VARIANT, had.len()),
                (false, 0) => NO_VARIANT,
                (false, both) => times(VARIANT, both),
            };
        Score { points, is_default, asked_variants }
    }
}

/// Returns the number of variants that an id names.
pub(super) fn variant_count(id: &str) -> usize {
    variants_in(&id.to_lowercase()).len()
}

/// Typing mistakes between two words, where they are few enough to be forgiven.
pub(super) fn mistakes(text: &str, name: &str) -> Option<usize> {
    if text.is_empty() || text.chars().count().abs_diff(name.chars().count()) > MISTAKES {
        return None;
    }
    Some(strsim::levenshtein(text, name)).filter(|made| *made <= MISTAKES)
}

fn likeness(name: &str, text: &str, [whole, beginning, anywhere]: Likeness) -> i32 {
    match () {
        () if text.is_empty() => 0,
        () if name == text => whole,
        () if name.starts_with(text) => beginning,
        () if name.contains(text) => anywhere,
        () => 0,
    }
}

fn variants_in(id: &str) -> Vec<&'static str> {
    VARIANTS.into_iter().filter(|variant| id.contains(variant)).collect()
}

fn times(points: i32, count: usize) -> i32 {
    points.saturating_mul(i32::try_from(count).unwrap_or(i32::MAX))
}
