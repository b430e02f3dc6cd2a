//! `agents.defaults.contextPruning`, with its defaults and bounds.

use std::time::Duration;

use openclaw_config::settings::{ContextPruning, ContextPruningMode};
use openclaw_config::{DurationUnit, parse_duration};

use crate::tool_policy;

const TTL: Duration = Duration::from_secs(5 * 60);
const KEEP_LAST_ASSISTANTS: usize = 3;
const SOFT_TRIM_RATIO: f64 = 0.3;
const HARD_CLEAR_RATIO: f64 = 0.5;
const MIN_PRUNABLE_TOOL_CHARS: usize = 50_000;
const SOFT_TRIM: SoftTrim = SoftTrim { max: 4_000, head: 1_500, tail: 1_500 };
/// Placeholder for a cleared result.
const PLACEHOLDER: &str = "[Old tool result content cleared]";

/// Settings of pruning. Characters are UTF-16 units.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneSettings {
    /// Time for which the provider caches a prompt.
    pub(super) ttl: Duration,
    /// Answers whose results are never pruned, counted from the last.
    pub(super) keep_last_assistants: usize,
    /// Share of the window from which on long results are trimmed.
    pub(super) soft_trim_ratio: f64,
    /// Share of the window from which on results are cleared, oldest first, until it is reached.
    pub(super) hard_clear_ratio: f64,
    /// Less than this is not worth clearing.
    pub(super) min_prunable_chars: usize,
    pub(super) soft_trim: SoftTrim,
    /// Placeholder for a cleared result; `None` clears none.
    pub(super) placeholder: Option<String>,
    /// Lower case.
    allow: Vec<String>,
    deny: Vec<String>,
}

/// Limits for trimming a long result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SoftTrim {
    pub(super) max: usize,
    pub(super) head: usize,
    pub(super) tail: usize,
}

impl PruneSettings {
    /// Reads the settings from the configuration; `None` when nothing is to be pruned.
    pub fn of(config: &ContextPruning) -> Option<Self> {
        match config.mode {
            Some(ContextPruningMode::CacheTtl) => {}
            Some(ContextPruningMode::Off) | None => return None,
        }
        let ttl = config.ttl.as_deref().and_then(|text| parse_duration(text, DurationUnit::Minutes).ok());
        let (soft, hard) = (&config.soft_trim, &config.hard_clear);
        let placeholder = hard.placeholder.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let is_cleared = hard.enabled.unwrap_or(true);
        Some(Self {
            ttl: ttl.map_or(TTL, Duration::from_millis),
            keep_last_assistants: at_least_none(config.keep_last_assistants, KEEP_LAST_ASSISTANTS),
            soft_trim_ratio: share(config.soft_trim_ratio, SOFT_TRIM_RATIO),
            hard_clear_ratio: share(config.hard_clear_ratio, HARD_CLEAR_RATIO),
            min_prunable_chars: at_least_none(config.min_prunable_tool_chars, MIN_PRUNABLE_TOOL_CHARS),
            soft_trim: SoftTrim {
                max: at_least_none(soft.max_chars, SOFT_TRIM.max),
                head: at_least_none(soft.head_chars, SOFT_TRIM.head),
                tail: at_least_none(soft.tail_chars, SOFT_TRIM.tail),
            },
            placeholder: is_cleared.then(|| placeholder.unwrap_or(PLACEHOLDER).to_owned()),
            allow: lower(&config.tools.allow),
            deny: lower(&config.tools.deny),
        })
    }

    /// Returns true if results of a tool may be pruned: an empty allowlist allows all, and denied
    /// tools are never pruned.
    pub(super) fn may_prune(&self, tool: &str) -> bool {
        let tool = tool.trim().to_lowercase();
        let is_in = |list: &[String]| list.iter().any(|pattern| tool_policy::matches(pattern, &tool));
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

/// Returns true if the provider caches prompts of a model for a known time: Anthropic, directly and
/// through OpenRouter.
pub fn is_cached(provider: &str, model: &str) -> bool {
    provider.eq_ignore_ascii_case("anthropic")
        || provider.eq_ignore_ascii_case("openrouter")
            && model.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("anthropic/"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is no less than 0"
)]
fn at_least_none(configured: Option<f64>, default: usize) -> usize {
    configured.filter(|number| number.is_finite()).map_or(default, |number| number.floor().max(0.0) as usize)
}

fn share(configured: Option<f64>, default: f64) -> f64 {
    configured.filter(|number| number.is_finite()).unwrap_or(default).clamp(0.0, 1.0)
}

fn lower(patterns: &[String]) -> Vec<String> {
    patterns
        .iter()
        .map(|pattern| pattern.trim().to_lowercase())
        .filter(|pattern| !pattern.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(config: Value) -> Option<PruneSettings> {
        PruneSettings::of(&serde_json::from_value(config).unwrap())
    }

    fn on(mut config: Value) -> PruneSettings {
        config["mode"] = "cache-ttl".into();
        read(config).unwrap()
    }

    /// The vectors of spec `agent-runtime.md` §7.2.
    #[test]
    fn settings_have_defaults_and_bounds() {
        for (ttl, ms) in [("10", 600_000), ("90s", 90_000), ("bogus", 300_000), ("1h", 3_600_000)] {
            assert_eq!(on(json!({"ttl": ttl})).ttl, Duration::from_millis(ms), "{ttl}");
        }
        assert!((on(json!({"softTrimRatio": 7})).soft_trim_ratio - 1.0).abs() < f64::EPSILON);
        assert!(on(json!({"hardClearRatio": -7})).hard_clear_ratio.abs() < f64::EPSILON);
        assert_eq!(on(json!({"keepLastAssistants": -3.5})).keep_last_assistants, 0);
        assert_eq!(on(json!({"keepLastAssistants": 2.9})).keep_last_assistants, 2);
        assert_eq!(on(json!({"minPrunableToolChars": -1})).min_prunable_chars, 0);
        assert_eq!(on(json!({"softTrim": {"maxChars": -1}})).soft_trim, SoftTrim { max: 0, ..SOFT_TRIM });
        assert_eq!((read(json!({"mode": "off"})), read(json!({}))), (None, None));
        assert_eq!(on(json!({"hardClear": {"placeholder": " "}})).placeholder.as_deref(), Some(PLACEHOLDER));
        assert_eq!(on(json!({"hardClear": {"placeholder": "gone"}})).placeholder.as_deref(), Some("gone"));
        assert_eq!(on(json!({"hardClear": {"enabled": false}})).placeholder, None);
        let all = PruneSettings {
            ttl: TTL,
            keep_last_assistants: 3,
            soft_trim_ratio: 0.3,
            hard_clear_ratio: 0.5,
            min_prunable_chars: 50_000,
            soft_trim: SoftTrim { max: 4_000, head: 1_500, tail: 1_500 },
            placeholder: Some(PLACEHOLDER.to_owned()),
            allow: vec![],
            deny: vec![],
        };
        assert_eq!(on(json!({})), all);
    }

    #[test]
    fn denied_tools_stay_and_an_empty_list_allows_all() {
        let rows = [
            (json!({}), "exec", true),
            (json!({"allow": ["ex*"], "deny": ["exec"]}), "Exec", false),
            (json!({"allow": ["ex*"], "deny": ["exec"]}), "Browser", false),
            (json!({"allow": ["EX*"]}), "exec", true),
            (json!({"deny": ["*image*"]}), "view_image_file", false),
            (json!({"deny": ["*image*"]}), "read", true),
        ];
        for (tools, tool, expect) in rows {
            assert_eq!(on(json!({"tools": tools})).may_prune(tool), expect, "{tools} {tool}");
        }
    }

    #[test]
    fn prompts_are_kept_by_anthropic() {
        let rows = [
            ("anthropic", "claude-opus-4-6", true),
            ("openrouter", "anthropic/claude-opus-4-6", true),
            ("openrouter", "google/gemini-3", false),
            ("openai", "gpt-5.2", false),
            ("amazon-bedrock", "anthropic.claude", false),
        ];
        for (provider, model, expect) in rows {
            assert_eq!(is_cached(provider, model), expect, "{provider}/{model}");
        }
    }
}
