//! Reasoning effort of OpenAI models (spec `models.md` §4.3, §4.4, §5).

use crate::model_spec::ModelSpec;
use crate::thinking::ThinkingLevel;

use ThinkingLevel::{High, Low, Medium, Minimal, XHigh};

/// Levels a model does not take, and what it is asked for instead. A `*` ends a prefix; the first match wins.
struct Clamp {
    model: &'static str,
    asked: &'static [ThinkingLevel],
    given: ThinkingLevel,
}

const CLAMPS: &[Clamp] = &[
    Clamp { model: "gpt-5.1-codex-mini", asked: &[High, XHigh], given: High },
    Clamp { model: "gpt-5.1-codex-mini", asked: &[Minimal, Low, Medium], given: Medium },
    Clamp { model: "gpt-5.1", asked: &[XHigh], given: High },
    Clamp { model: "gpt-5.1*", asked: &[Minimal], given: Low },
    Clamp { model: "gpt-5.2*", asked: &[Minimal], given: Low },
    Clamp { model: "gpt-5.3*", asked: &[Minimal], given: Low },
];

/// The least effort of the models that take one below `low`. Without a word about it these models think a good while.
const LEAST: &[(&str, &str)] = &[
    ("gpt-5", "minimal"),
    ("gpt-5-mini", "minimal"),
    ("gpt-5-nano", "minimal"),
    ("gpt-5.1", NONE),
    ("gpt-5.2", NONE),
];

/// The effort that is none: the model answers at once.
pub(super) const NONE: &str = "none";

/// The effort for a level the model has; nothing for `off`.
pub(super) fn effort(spec: &ModelSpec, level: ThinkingLevel) -> Option<&'static str> {
    let id = bare_id(spec);
    let level = spec.level(level);
    let clamp = CLAMPS.iter().find(|clamp| names(clamp.model, id) && clamp.asked.contains(&level));
    match clamp.map_or(level, |clamp| clamp.given) {
        ThinkingLevel::Off => None,
        level => Some(level.as_str()),
    }
}

/// Returns the effort that comes closest to no thinking for a reasoning model; `None` for other
/// models.
pub(super) fn least(spec: &ModelSpec) -> Option<&'static str> {
    let id = bare_id(spec);
    let is =
        |model: &str| id.strip_prefix(model).is_some_and(|rest| rest.is_empty() || rest.starts_with("-20"));
    LEAST.iter().find(|(model, _)| spec.reasoning && is(model)).map(|(_, effort)| *effort)
}

/// The id without the vendor some routers put before it.
fn bare_id(spec: &ModelSpec) -> &str {
    spec.id().rsplit('/').next().unwrap_or_default()
}

fn names(pattern: &str, id: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == id, |prefix| id.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(provider: &str, id: &str) -> ModelSpec {
        ModelSpec { reasoning: true, ..ModelSpec::sample(provider, id, "openai-responses") }
    }

    /// The clamps of `models.md` §4.4, and the levels of §5.
    #[test]
    fn levels_become_efforts_the_model_takes() {
        let rows = [
            ("openai", "gpt-5.2", XHigh, Some("xhigh")),
            ("openai", "gpt-5.2", Low, Some("low")),
            ("openai", "gpt-5.2", Medium, Some("medium")),
            ("openai", "gpt-5.2", High, Some("high")),
            ("openai", "o3", Medium, Some("medium")),
            ("openai", "o3", High, Some("high")),
            ("openai", "gpt-5-mini", Minimal, Some("minimal")),
            ("openai", "gpt-5-mini", XHigh, Some("high")),
            ("openai", "gpt-5.2", ThinkingLevel::Off, None),
            ("openai-codex", "gpt-5.2-codex", Minimal, Some("low")),
            ("openai-codex", "gpt-5.3-codex", Minimal, Some("low")),
            ("openai-codex", "gpt-5.3-codex", XHigh, Some("xhigh")),
            ("openai-codex", "gpt-5.1", XHigh, Some("high")),
            ("openai-codex", "gpt-5.1-codex-mini", XHigh, Some("high")),
            ("openai-codex", "gpt-5.1-codex-mini", High, Some("high")),
            ("openai-codex", "gpt-5.1-codex-mini", Medium, Some("medium")),
            ("openai-codex", "gpt-5.1-codex-mini", Minimal, Some("medium")),
            ("openrouter", "openai/gpt-5.2", Minimal, Some("low")),
        ];
        for (provider, id, level, expect) in rows {
            assert_eq!(effort(&spec(provider, id), level), expect, "{provider}/{id} {level}");
        }
        let plain = ModelSpec::sample("openai", "gpt-4.1", "openai-responses");
        assert_eq!((effort(&plain, High), least(&plain)), (None, None));
    }

    #[test]
    fn a_model_is_asked_not_to_think_only_where_it_understands_it() {
        let rows = [
            ("gpt-5.2", Some("none")),
            ("gpt-5.1-2025-11-13", Some("none")),
            ("gpt-5-mini", Some("minimal")),
            ("gpt-5-2025-08-07", Some("minimal")),
            ("gpt-5-pro", None),
            ("gpt-5.2-codex", None),
            ("gpt-5-chat-latest", None),
            ("o3", None),
        ];
        for (id, expect) in rows {
            assert_eq!(least(&spec("openai", id)), expect, "{id}");
        }
    }
}
