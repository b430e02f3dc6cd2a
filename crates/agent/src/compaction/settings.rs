//! `agents.defaults.compaction`, and what an agent's own settings file adds.

use openclaw_config::settings::{Compaction, CompactionMode};
use serde::Deserialize;

/// Tokens that are always kept free, unless the settings file says otherwise.
const RESERVE_TOKENS: u64 = 16_384;
/// `compaction.reserveTokensFloor`
const RESERVE_FLOOR: u64 = 20_000;
/// Tokens of the history's end that stay as they are.
const KEEP_RECENT_TOKENS: u64 = 20_000;
/// `compaction.maxHistoryShare`
const HISTORY_SHARE: f64 = 0.5;

/// Settings of compaction. Sizes in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionSettings {
    /// Mode: one summary, or summaries of parts.
    pub mode: CompactionMode,
    /// Tokens kept free for the answer and what comes with it.
    pub reserve: u64,
    /// Tokens at the end of the history that are kept unchanged.
    pub keep_recent: u64,
    /// Share of the window that the history to be summarised may take ([`CompactionMode::Safeguard`]).
    pub history_share: f64,
}

/// `compaction` of `settings.json` beside an agent's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileSettings {
    /// Tokens to keep free.
    pub reserve_tokens: Option<u64>,
    /// Tokens of the history's end that stay.
    pub keep_recent_tokens: Option<u64>,
}

impl CompactionSettings {
    /// Combines the configuration with the agent's settings file.
    pub fn of(config: &Compaction, file: FileSettings) -> Self {
        let floor = config.reserve_tokens_floor.unwrap_or(RESERVE_FLOOR);
        let share = config.max_history_share.filter(|share| share.is_finite() && *share > 0.0);
        Self {
            mode: config.mode.unwrap_or(CompactionMode::Safeguard),
            reserve: file.reserve_tokens.unwrap_or(RESERVE_TOKENS).max(floor),
            keep_recent: file.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS),
            history_share: share.unwrap_or(HISTORY_SHARE).min(1.0),
        }
    }
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self::of(&Compaction::default(), FileSettings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of spec `agent-runtime.md` §10.1.
    #[test]
    fn the_reserve_is_no_less_than_its_floor() {
        let rows = [
            (Some(16_384), None, 20_000),
            (None, None, 20_000),
            (Some(32_000), None, 32_000),
            (None, Some(0), 16_384),
            (Some(16_384), Some(0), 16_384),
            (Some(16_384), Some(50_000), 50_000),
        ];
        for (reserve_tokens, reserve_tokens_floor, expect) in rows {
            let config = Compaction { reserve_tokens_floor, ..Compaction::default() };
            let file = FileSettings { reserve_tokens, ..FileSettings::default() };
            assert_eq!(CompactionSettings::of(&config, file).reserve, expect, "{file:?} {config:?}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let expect = CompactionSettings {
            mode: CompactionMode::Safeguard,
            reserve: 20_000,
            keep_recent: 20_000,
            history_share: 0.5,
        };
        assert_eq!(CompactionSettings::default(), expect);
        let file: FileSettings = serde_json::from_str(r#"{"keepRecentTokens": 5, "enabled": true}"#).unwrap();
        assert_eq!(CompactionSettings::of(&Compaction::default(), file).keep_recent, 5);
    }
}
