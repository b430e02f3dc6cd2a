//! Thinking settings of Gemini models (spec `models.md` §5).

use serde_json::{Value, json};

use crate::model_spec::ModelSpec;
use crate::thinking::ThinkingLevel;
use crate::thinking::fit_budget;

/// Models whose id contains all of `id`. The values stand for off, minimal, low, medium, and high or more.
struct Family {
    id: &'static [&'static str],
    asks: Asks,
}

enum Asks {
    /// `thinkingLevel`
    Levels([&'static str; 5]),
    /// `thinkingBudget` in tokens.
    Budgets([u64; 5]),
}

/// First match wins. `off` stands for the least that can be requested of a model: without it the
/// model thinks as much as it likes.
const FAMILIES: &[Family] = &[
    Family {
        id: &["gemini-3", "flash"],
        asks: Asks::Levels(["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH"]),
    },
    Family { id: &["gemini-3"], asks: Asks::Levels(["LOW", "LOW", "LOW", "HIGH", "HIGH"]) },
    Family { id: &["2.5-pro"], asks: Asks::Budgets([128, 128, 2048, 8192, 32_768]) },
    // Takes no budget between 0 and 512.
    Family { id: &["2.5-flash-lite"], asks: Asks::Budgets([0, 512, 2048, 8192, 24_576]) },
    Family { id: &["2.5-flash"], asks: Asks::Budgets([0, 128, 2048, 8192, 24_576]) },
];

/// The budget that leaves the decision to the model.
const DYNAMIC: i64 = -1;

/// The output cap, and `thinkingConfig` where there is one. Thinking counts against the cap, so that a budget comes on top.
pub(super) fn plan(spec: &ModelSpec, level: ThinkingLevel, base: u64) -> (u64, Option<Value>) {
    if !spec.reasoning {
        return (base, None);
    }
    let level = spec.level(level);
    let thinks = level != ThinkingLevel::Off;
    let family = FAMILIES.iter().find(|family| family.id.iter().all(|part| spec.id().contains(part)));
    let (max, key, value) = match family.map(|family| &family.asks) {
        Some(Asks::Levels(levels)) => (base, "thinkingLevel", json!(of(level, levels))),
        Some(Asks::Budgets(budgets)) => {
            let (max, budget) = fit_budget(of(level, budgets), base, spec.max_tokens);
            (max, "thinkingBudget", json!(budget))
        }
        None if thinks => (base, "thinkingBudget", json!(DYNAMIC)),
        None => return (base, None),
    };
    let config = if thinks { json!({"includeThoughts": true, key: value}) } else { json!({key: value}) };
    (max, Some(config))
}

fn of<T: Copy>(level: ThinkingLevel, values: &[T; 5]) -> T {
    let [off, minimal, low, medium, high] = *values;
    match level {
        ThinkingLevel::Off => off,
        ThinkingLevel::Minimal => minimal,
        ThinkingLevel::Low => low,
        ThinkingLevel::Medium => medium,
        ThinkingLevel::High | ThinkingLevel::XHigh => high,
    }
}

#[cfg(test)]
mod tests {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, XHigh};

    use super::*;

    /// The table of `models.md` §5.
    #[test]
    fn every_family_is_asked_in_its_own_words() {
        let level = |name: &str| json!({"includeThoughts": true, "thinkingLevel": name});
        let budget = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
        let rows = [
            ("gemini-3-pro-preview", Minimal, 32_000, Some(level("LOW"))),
            ("gemini-3-pro-preview", Low, 32_000, Some(level("LOW"))),
            ("gemini-3-pro-preview", Medium, 32_000, Some(level("HIGH"))),
            ("gemini-3-pro-preview", High, 32_000, Some(level("HIGH"))),
            ("gemini-3-pro-preview", XHigh, 32_000, Some(level("HIGH"))),
            ("gemini-3-pro-preview", Off, 32_000, Some(json!({"thinkingLevel": "LOW"}))),
            ("gemini-3-flash-preview", Minimal, 32_000, Some(level("MINIMAL"))),
            ("gemini-3-flash-preview", Low, 32_000, Some(level("LOW"))),
            ("gemini-3-flash-preview", Medium, 32_000, Some(level("MEDIUM"))),
            ("gemini-3-flash-preview", High, 32_000, Some(level("HIGH"))),
            ("gemini-3-flash-preview", XHigh, 32_000, Some(level("HIGH"))),
            ("gemini-2.5-pro", Minimal, 32_128, Some(budget(128))),
            ("gemini-2.5-pro", Low, 34_048, Some(budget(2048))),
            ("gemini-2.5-pro", Medium, 40_192, Some(budget(8192))),
            ("gemini-2.5-pro", High, 64_768, Some(budget(32_768))),
            ("gemini-2.5-pro", XHigh, 64_768, Some(budget(32_768))),
            ("gemini-2.5-pro", Off, 32_128, Some(json!({"thinkingBudget": 128}))),
            ("gemini-2.5-flash", Minimal, 32_128, Some(budget(128))),
            ("gemini-2.5-flash", Low, 34_048, Some(budget(2048))),
            ("gemini-2.5-flash", Medium, 40_192, Some(budget(8192))),
            ("gemini-2.5-flash", High, 56_576, Some(budget(24_576))),
            ("gemini-2.5-flash", XHigh, 56_576, Some(budget(24_576))),
            ("gemini-2.5-flash", Off, 32_000, Some(json!({"thinkingBudget": 0}))),
            ("gemini-2.5-flash-lite", Minimal, 32_512, Some(budget(512))),
            ("gemini-2.0-flash-thinking", Low, 32_000, Some(budget(-1))),
            ("gemini-2.0-flash-thinking", Off, 32_000, None),
        ];
        for (id, asked, max, expect) in rows {
            let mut spec = ModelSpec::sample("google", id, "google-generative-ai");
            (spec.reasoning, spec.max_tokens) = (true, 65_536);
            assert_eq!(plan(&spec, asked, 32_000), (max, expect), "{id} {asked}");
        }
        let plain = ModelSpec::sample("google", "gemini-2.5-flash", "google-generative-ai");
        assert_eq!(plan(&plain, High, 8192), (8192, None));
        let tight = ModelSpec { reasoning: true, ..plain };
        assert_eq!(plan(&tight, High, 8192), (8192, Some(budget(7168))), "something is left for the answer");
    }
}
