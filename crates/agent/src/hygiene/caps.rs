//! Size caps of tool results in front of a model (spec `agent-runtime.md` §9.4).

use openclaw_protocol::message::ToolResultMessage;
use openclaw_protocol::message::cap::{Cap, STORED};

const SUFFIX: &str = "\n\n⚠️ [Content truncated — original was too large for the model's context window. The content above is a partial view. If you need more, request specific sections or use offset/limit parameters to read smaller chunks.]";
/// What the reference sets aside for it.
const SUFFIX_ROOM: usize = 217;

/// Cuts a result to what a model with this context window can take. Whether anything was cut.
pub fn cap_for_context(result: &mut ToolResultMessage, context_tokens: u64) -> bool {
    Cap { max: context_limit(context_tokens), suffix: SUFFIX, room: SUFFIX_ROOM }.apply(result)
}

/// 30 % of the window at four characters a token, never more than is stored.
pub fn context_limit(context_tokens: u64) -> usize {
    const CHARS_PER_TOKEN: u64 = 4;
    let chars = (context_tokens * 3 / 10).saturating_mul(CHARS_PER_TOKEN);
    usize::try_from(chars).unwrap_or(STORED.max).min(STORED.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of spec `agent-runtime.md` §9.4.
    #[test]
    fn the_overflow_limit_follows_the_window() {
        for (window, limit) in [(8_000, 9_600), (128_000, 153_600), (200_000, 240_000), (1_000_000, 400_000)]
        {
            assert_eq!(context_limit(window), limit, "{window}");
        }
    }
}
