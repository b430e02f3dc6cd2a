//! Size caps of tool results (spec `agent-runtime.md` §9.4).

use openclaw_protocol::message::{Block, ToolResultMessage};

use crate::text_length::{utf16_head, utf16_len};

/// Most text of one tool result that is stored, in UTF-16 units.
pub const PERSIST_MAX: usize = 400_000;
/// Least text a block keeps.
const BLOCK_MIN: usize = 2_000;
/// What the reference sets aside for each suffix.
const PERSIST_SUFFIX_ROOM: usize = 151;
const OVERFLOW_SUFFIX_ROOM: usize = 217;

const PERSIST_SUFFIX: &str = "\n\n⚠️ [Content truncated during persistence — original exceeded size limit. Use offset/limit parameters or request specific sections for large content.]";
const OVERFLOW_SUFFIX: &str = "\n\n⚠️ [Content truncated — original was too large for the model's context window. The content above is a partial view. If you need more, request specific sections or use offset/limit parameters to read smaller chunks.]";

/// Cuts a result to what may be stored. Whether anything was cut.
pub fn cap_for_storage(result: &mut ToolResultMessage) -> bool {
    cap(result, PERSIST_MAX, PERSIST_SUFFIX_ROOM, PERSIST_SUFFIX)
}

/// Cuts a result to what a model with this context window can take. Whether anything was cut.
pub fn cap_for_context(result: &mut ToolResultMessage, context_tokens: u64) -> bool {
    cap(result, context_limit(context_tokens), OVERFLOW_SUFFIX_ROOM, OVERFLOW_SUFFIX)
}

/// 30 % of the window at four characters a token, never more than is stored.
pub fn context_limit(context_tokens: u64) -> usize {
    const CHARS_PER_TOKEN: u64 = 4;
    let chars = (context_tokens * 3 / 10).saturating_mul(CHARS_PER_TOKEN);
    usize::try_from(chars).unwrap_or(PERSIST_MAX).min(PERSIST_MAX)
}

fn cap(result: &mut ToolResultMessage, limit: usize, room: usize, suffix: &str) -> bool {
    let lengths = |block: &Block| match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    };
    let total: usize = result.content.iter().map(lengths).sum();
    if total <= limit {
        return false;
    }
    let mut cut = false;
    for block in &mut result.content {
        if let Block::Text(text) = block {
            let length = utf16_len(&text.text);
            // Each block's share of the limit, in 128 bits: the product of two lengths may not fit fewer.
            let share = (limit as u128 * length as u128 / total as u128).try_into().unwrap_or(limit);
            let budget = BLOCK_MIN.max(usize::saturating_sub(share, room));
            if length > budget {
                text.text = format!("{}{suffix}", cut_at_line(&text.text, budget));
                cut = true;
            }
        }
    }
    cut
}

/// The start of the text, cut at its last line break if that costs less than a fifth.
fn cut_at_line(text: &str, budget: usize) -> &str {
    let head = utf16_head(text, budget);
    match head.rfind('\n') {
        Some(at) if at * 10 > head.len() * 8 => head.get(..at).unwrap_or(head),
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(texts: &[String]) -> ToolResultMessage {
        ToolResultMessage { content: texts.iter().map(Block::text).collect(), ..ToolResultMessage::default() }
    }

    fn texts(result: &ToolResultMessage) -> Vec<&str> {
        result
            .content
            .iter()
            .map(|b| match b {
                Block::Text(t) => t.text.as_str(),
                _ => "",
            })
            .collect()
    }

    /// Vectors of spec `agent-runtime.md` §9.4.
    #[test]
    fn the_overflow_limit_follows_the_window() {
        for (window, limit) in [(8_000, 9_600), (128_000, 153_600), (200_000, 240_000), (1_000_000, 400_000)]
        {
            assert_eq!(context_limit(window), limit, "{window}");
        }
    }

    #[test]
    fn what_fits_is_untouched() {
        let mut fits = result(&["x".repeat(PERSIST_MAX)]);
        let before = fits.clone();
        assert!(!cap_for_storage(&mut fits));
        assert_eq!(fits, before);
    }

    #[test]
    fn blocks_are_cut_in_proportion_with_a_note() {
        let mut big = result(&["a".repeat(600_000), "b".repeat(200_000), "c".repeat(10)]);
        assert!(cap_for_storage(&mut big));
        let expect = [
            format!("{}{PERSIST_SUFFIX}", "a".repeat(400_000 * 600_000 / 800_010 - 151)),
            format!("{}{PERSIST_SUFFIX}", "b".repeat(400_000 * 200_000 / 800_010 - 151)),
            "c".repeat(10),
        ];
        assert_eq!(texts(&big), expect);
    }

    #[test]
    fn a_cut_near_the_end_of_a_line_is_made_there() {
        let budget = 400_000 - 151;
        let text = format!("{}\n{}", "a".repeat(budget - 100), "b".repeat(400_000));
        let mut big = result(&[text]);
        let share = 400_000 - 151;
        assert!(cap_for_storage(&mut big));
        assert_eq!(texts(&big)[0], format!("{}{PERSIST_SUFFIX}", "a".repeat(share - 100)));
        let mut early = result(&[format!("{}\n{}", "a".repeat(100), "b".repeat(500_000))]);
        cap_for_storage(&mut early);
        assert!(texts(&early)[0].len() > 300_000);
    }
}
