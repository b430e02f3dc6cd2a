//! Token budget of a conversation for a model (spec `agent-runtime.md` §10.1). Pure.

use super::CompactionSettings;

/// A share of the window that is always for the history, whatever is kept free: else a small window would be compacted at every turn.
const LEAST_SHARE: u64 = 4;

/// A model's window, and what of it is for the conversation. Sizes in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The whole window.
    pub window: u64,
    /// Tokens kept free for the answer.
    pub reserve: u64,
    /// Tokens at the end of the history that are kept unchanged.
    pub keep_recent: u64,
}

impl Budget {
    /// The budget of a model with this window.
    pub fn new(settings: &CompactionSettings, window: u64) -> Self {
        Self { window, reserve: settings.reserve, keep_recent: settings.keep_recent }
    }

    /// The most a conversation may take.
    pub fn threshold(&self) -> u64 {
        self.window.saturating_sub(self.reserve).max(self.window / LEAST_SHARE)
    }

    /// Returns true if this number of tokens exceeds the budget.
    pub fn is_exceeded_by(&self, tokens: u64) -> bool {
        tokens > self.threshold()
    }

    /// Returns the number of tokens at the end that are kept: few enough that the limit is not
    /// exceeded again at once, and fewer with each attempt of a run (the first is 0), down to the
    /// minimum.
    pub fn kept(&self, attempt: u32) -> u64 {
        let kept = self.keep_recent.min(self.threshold() / 2);
        match attempt {
            0 => kept,
            1 => kept / 4,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_too_much_above_the_threshold() {
        // Window, reserve, tokens.
        let rows = [
            (200_000, 20_000, 180_000, false),
            (200_000, 20_000, 180_001, true),
            (32_000, 20_000, 12_000, false),
            (32_000, 20_000, 31_500, true),
            // A reserve that leaves next to nothing.
            (21_000, 20_000, 5_250, false),
            (16_000, 50_000, 4_001, true),
        ];
        for (window, reserve, tokens, expect) in rows {
            let budget = Budget { window, reserve, keep_recent: 20_000 };
            assert_eq!(budget.is_exceeded_by(tokens), expect, "{window} {reserve} {tokens}");
        }
    }

    #[test]
    fn each_attempt_keeps_less() {
        let budget = Budget { window: 200_000, reserve: 20_000, keep_recent: 20_000 };
        assert_eq!([0, 1, 2].map(|attempt| budget.kept(attempt)), [20_000, 5_000, 0]);
        let small = Budget { window: 32_000, ..budget };
        assert_eq!((small.kept(0), small.kept(200)), (6_000, 0));
    }
}
