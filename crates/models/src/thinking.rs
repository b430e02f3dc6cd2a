//! Thinking levels: who has which, and what they are on the wire (spec `models.md` §5).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Thinking levels in rising order (spec `models.md` §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No reasoning.
    #[default]
    Off,
    /// Least.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Most; few models have it.
    XHigh,
}

impl ThinkingLevel {
    /// The canonical name, as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text that names no thinking level.
#[derive(Debug, Clone, thiserror::Error)]
#[error("invalid thinking level \"{0}\"")]
pub struct UnknownThinkingLevel(String);

impl FromStr for ThinkingLevel {
    type Err = UnknownThinkingLevel;

    /// Accepts every synonym a person may type (spec `models.md` §5).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_lowercase().as_str() {
            "off" => Ok(Self::Off),
            "min" | "minimal" | "think" => Ok(Self::Minimal),
            "on" | "enable" | "enabled" | "low" | "thinkhard" | "think-hard" | "think_hard" => Ok(Self::Low),
            "mid" | "med" | "medium" | "thinkharder" | "think-harder" | "harder" => Ok(Self::Medium),
            "high" | "ultra" | "ultrathink" | "thinkhardest" | "highest" | "max" => Ok(Self::High),
            "xhigh" | "x-high" | "x_high" | "extra high" | "extra-high" | "extrahigh" => Ok(Self::XHigh),
            _ => Err(UnknownThinkingLevel(text.to_owned())),
        }
    }
}

/// Models with level `xhigh`, by provider and exact id or, for those ending in `*`, prefix (spec `models.md` §5; Opus
/// 4.6 is missing upstream and has it as effort `max`).
const XHIGH_MODELS: &[(&str, &str)] = &[
    ("openai", "gpt-5.2"),
    ("openai-codex", "gpt-5.3-codex"),
    ("openai-codex", "gpt-5.2-codex"),
    ("openai-codex", "gpt-5.1-codex"),
    ("github-copilot", "gpt-5.2-codex"),
    ("github-copilot", "gpt-5.2"),
    ("anthropic", "claude-opus-4-6*"),
    ("anthropic", "claude-opus-4.6*"),
];

/// Returns true if a model has the level `xhigh`.
pub fn has_xhigh(provider: &str, model: &str) -> bool {
    XHIGH_MODELS.iter().any(|(of, id)| {
        *of == provider
            && match id.strip_suffix('*') {
                Some(prefix) => model.starts_with(prefix),
                None => *id == model,
            }
    })
}

/// The models with level `xhigh`, for error texts.
pub fn xhigh_models() -> String {
    let names: Vec<_> = XHIGH_MODELS
        .iter()
        .map(|(provider, id)| format!("{provider}/{}", id.trim_end_matches('*')))
        .collect();
    names.join(", ")
}

/// The nearest level a model has.
pub fn clamp(level: ThinkingLevel, reasons: bool, xhigh: bool) -> ThinkingLevel {
    match level {
        _ if !reasons => ThinkingLevel::Off,
        ThinkingLevel::XHigh if !xhigh => ThinkingLevel::High,
        other => other,
    }
}

/// Output cap and thinking budget of a model that takes a budget; nothing for `off`.
pub fn budget(level: ThinkingLevel, base: u64, model_max: u64) -> Option<(u64, u64)> {
    let budget = match level {
        ThinkingLevel::Off => return None,
        ThinkingLevel::Minimal => 1024,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::XHigh => 16_384,
    };
    Some(fit_budget(budget, base, model_max))
}

/// Output cap and thinking budget: the budget comes on top of `base` as far as `model_max` allows; where nothing would be
/// left for the answer, 1024 tokens are kept.
pub fn fit_budget(budget: u64, base: u64, model_max: u64) -> (u64, u64) {
    const LEAST_ANSWER: u64 = 1024;
    let max = base.saturating_add(budget).min(model_max);
    let budget = if max <= budget { max.saturating_sub(LEAST_ANSWER) } else { budget };
    (max, budget)
}

/// Anthropic's effort names, for models that think adaptively.
pub fn adaptive_effort(level: ThinkingLevel) -> Option<&'static str> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal | ThinkingLevel::Low => Some("low"),
        ThinkingLevel::Medium => Some("medium"),
        ThinkingLevel::High => Some("high"),
        ThinkingLevel::XHigh => Some("max"),
    }
}

/// Returns true if replies of a provider keep their reasoning in `<think>` tags rather than in
/// separate blocks.
pub fn uses_tags(provider: &str) -> bool {
    matches!(provider, "ollama" | "google-gemini-cli" | "google-generative-ai")
        || provider.contains("google-antigravity")
        || provider.contains("minimax")
}

/// The level to try after a provider refused one and said which it has: the first named that was not tried yet.
pub fn next_supported(error: &str, tried: &[ThinkingLevel]) -> Option<ThinkingLevel> {
    let lower = error.to_lowercase();
    let rest = ["supported values are:", "supported values:"]
        .iter()
        .find_map(|mark| lower.split_once(mark).map(|(_, rest)| rest.to_owned()))?;
    // Only the sentence that lists them; anything after it may quote other words.
    let list = rest.split(['.', '\n', '}']).next().unwrap_or_default();
    let quoted: Vec<&str> = list.split(['\'', '"', '`']).skip(1).step_by(2).collect();
    let words: Vec<&str> = if quoted.is_empty() {
        list.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| *word != "and").collect()
    } else {
        quoted
    };
    words
        .iter()
        .filter_map(|word| match word.trim() {
            "none" => Some(ThinkingLevel::Off),
            word => ThinkingLevel::from_str(word).ok(),
        })
        .find(|level| !tried.contains(level))
}

#[cfg(test)]
mod tests {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, XHigh};

    use super::*;

    /// Vectors of `models.md` §5.
    #[test]
    fn budgets_come_on_top_of_the_answer() {
        let rows = [
            (High, 32_000, 64_000, Some((48_384, 16_384))),
            (High, 8_192, 8_192, Some((8_192, 7_168))),
            (Minimal, 4_096, 4_096, Some((4_096, 1_024))),
            (Low, 500, 500, Some((500, 0))),
            (Off, 32_000, 64_000, None),
        ];
        for (level, base, max, expect) in rows {
            assert_eq!(budget(level, base, max), expect, "{level} {base} {max}");
        }
    }

    #[test]
    fn every_level_has_its_effort() {
        let rows = [(Off, None), (Minimal, Some("low")), (Low, Some("low")), (Medium, Some("medium"))];
        for (level, expect) in rows.into_iter().chain([(High, Some("high")), (XHigh, Some("max"))]) {
            assert_eq!(adaptive_effort(level), expect, "{level}");
        }
    }

    /// Every synonym of `models.md` §5; `extra-high` is one of `gateway-protocol.md`.
    #[test]
    fn synonyms_of_levels_are_read() {
        let rows: [(&[&str], Option<ThinkingLevel>); 7] = [
            (&["off"], Some(Off)),
            (&["min", "minimal", "think"], Some(Minimal)),
            (&["on", "enable", "enabled", "low", "thinkhard", "think-hard", "think_hard"], Some(Low)),
            (&["mid", "med", "medium", "thinkharder", "think-harder", "harder"], Some(Medium)),
            (&["high", "ultra", "ultrathink", "thinkhardest", "highest", "max"], Some(High)),
            (&["xhigh", "x-high", "x_high", "extra high", "extra-high", "extrahigh"], Some(XHigh)),
            (&["bogus", "none", "on off", ""], None),
        ];
        for (texts, expect) in rows {
            for text in texts {
                assert_eq!(ThinkingLevel::from_str(text).ok(), expect, "{text:?}");
                let shouted = format!(" {} ", text.to_uppercase());
                assert_eq!(ThinkingLevel::from_str(&shouted).ok(), expect, "{shouted:?}");
            }
        }
    }

    #[test]
    fn xhigh_becomes_high_where_there_is_none_and_off_where_nothing_reasons() {
        assert_eq!(clamp(XHigh, true, false), High);
        assert_eq!(clamp(XHigh, true, true), XHigh);
        assert_eq!(clamp(Medium, false, false), Off);
        let rows = [
            ("openai", "gpt-5.2", true),
            ("openai", "gpt-5.2-pro", false),
            ("openai-codex", "gpt-5.3-codex", true),
            ("openai-codex", "gpt-5.2-codex", true),
            ("openai-codex", "gpt-5.1-codex", true),
            ("openai-codex", "gpt-5.2", false),
            ("github-copilot", "gpt-5.2-codex", true),
            ("github-copilot", "gpt-5.2", true),
            ("github-copilot", "gpt-5", false),
            ("anthropic", "claude-opus-4-6-20260101", true),
            ("anthropic", "claude-opus-4.6", true),
            ("anthropic", "claude-opus-4-5", false),
        ];
        for (provider, model, expect) in rows {
            assert_eq!(has_xhigh(provider, model), expect, "{provider}/{model}");
        }
    }

    /// The last row of `models.md` §5.
    #[test]
    fn some_providers_keep_their_reasoning_in_tags() {
        let rows: [(bool, &[&str]); 2] = [
            (
                true,
                &[
                    "ollama",
                    "google-gemini-cli",
                    "google-generative-ai",
                    "google-antigravity",
                    "x-google-antigravity-y",
                    "minimax",
                    "minimax-portal",
                ],
            ),
            (false, &["google", "anthropic", "openai"]),
        ];
        for (expect, providers) in rows {
            for provider in providers {
                assert_eq!(uses_tags(provider), expect, "{provider}");
            }
        }
    }

    #[test]
    fn a_refused_level_is_replaced_by_the_first_supported_one() {
        let rows = [
            ("Unsupported value: 'low'. Supported values are: 'medium', 'high'.", vec![Low], Some(Medium)),
            ("Supported values are: 'medium', 'high'.", vec![Low, Medium], Some(High)),
            ("Supported values are: 'medium', 'high'.", vec![Low, Medium, High], None),
            ("supported values: minimal, low and medium", vec![Minimal], Some(Low)),
            ("Supported values are: \"none\", \"high\"", vec![], Some(Off)),
            ("some other error", vec![Low], None),
        ];
        for (error, tried, expect) in rows {
            assert_eq!(next_supported(error, &tried), expect, "{error}");
        }
    }
}
