//! Ranks the models that were tested. Pure.

use std::cmp::Ordering;

use super::{Found, Tried};

/// Default picks of a scan, unless a person chooses otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picks {
    /// Fallbacks, the best first.
    pub fallbacks: Vec<String>,
    /// Fallbacks for images, the fastest first.
    pub image_fallbacks: Vec<String>,
}

/// The order in which models are shown: those that see first, then the fastest with tools, then by size.
pub fn ranked(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by(|a, b| {
        let by_image = b.image.ok.cmp(&a.image.ok);
        by_image.then_with(|| latency(&a.tool).cmp(&latency(&b.tool))).then_with(|| size(a, b))
    });
    found
}

/// The best models that call tools, at most `most`: those that also see, if there are any; and the best that see.
pub fn pick(found: &[Found], most: usize) -> Picks {
    let able = ranked(found.iter().filter(|model| model.tool.ok).cloned().collect());
    let sees_too = able.iter().any(|model| model.image.ok);
    let mut seeing: Vec<&Found> = found.iter().filter(|model| model.image.ok).collect();
    seeing.sort_by(|a, b| latency(&a.image).cmp(&latency(&b.image)).then_with(|| size(a, b)));
    let fallbacks = able.iter().filter(|model| model.image.ok || !sees_too);
    Picks {
        fallbacks: fallbacks.take(most).map(|model| model.model_ref.clone()).collect(),
        image_fallbacks: seeing.into_iter().take(most).map(|model| model.model_ref.clone()).collect(),
    }
}

/// Returns the latency of a model in a test; a failed test counts as the slowest, however fast it
/// failed.
fn latency(tried: &Tried) -> u64 {
    tried.latency_ms.filter(|_| tried.ok).unwrap_or(u64::MAX)
}

/// The larger window first, then more parameters, then by name.
fn size(a: &Found, b: &Found) -> Ordering {
    let parameters = |model: &Found| model.parameters.unwrap_or(0.0);
    b.context_length
        .cmp(&a.context_length)
        .then_with(|| parameters(b).total_cmp(&parameters(a)))
        .then_with(|| a.model_ref.cmp(&b.model_ref))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, tool: Option<u64>, image: Option<u64>, context: u64) -> Found {
        let tried = |latency_ms: Option<u64>| Tried {
            ok: latency_ms.is_some(),
            latency_ms,
            error: None,
            skipped: false,
        };
        Found {
            id: name.to_owned(),
            name: name.to_owned(),
            provider: super::super::PROVIDER,
            model_ref: name.to_owned(),
            context_length: Some(context),
            max_completion_tokens: None,
            supported_parameters_count: 0,
            supports_tools_meta: false,
            modality: None,
            parameters: None,
            created_at_ms: None,
            pricing: None,
            is_free: true,
            tool: tried(tool),
            image: tried(image),
        }
    }

    fn names(found: &[Found]) -> Vec<&str> {
        found.iter().map(|model| model.id.as_str()).collect()
    }

    #[test]
    fn the_best_stand_first() {
        let found = vec![
            model("slow", Some(900), None, 1),
            model("none", None, None, 9),
            model("fast", Some(10), None, 1),
            model("sees", Some(500), Some(70), 1),
            model("fast-larger", Some(10), None, 2),
            model("only-sees", None, Some(5), 1),
        ];
        let order = ["sees", "only-sees", "fast-larger", "fast", "slow", "none"];
        assert_eq!(names(&ranked(found.clone())), order);
        let mut failed_fast = found.clone();
        failed_fast[1].tool.latency_ms = Some(1);
        assert_eq!(names(&ranked(failed_fast)), order, "to fail fast is no merit");
        let picks = pick(&found, 2);
        assert_eq!(picks.fallbacks, ["sees"], "those that see are preferred");
        assert_eq!(picks.image_fallbacks, ["only-sees", "sees"]);
        let blind: Vec<Found> = found.into_iter().filter(|model| !model.image.ok).collect();
        assert_eq!(pick(&blind, 2).fallbacks, ["fast-larger", "fast"]);
    }
}
