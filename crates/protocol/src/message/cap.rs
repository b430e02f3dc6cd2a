//! Size caps of tool results (spec `agent-runtime.md` §9.4, `sessions.md` §4.6).

use super::{Block, ToolResultMessage};
use crate::text_length::{utf16_head, utf16_len};

/// Least text a block keeps, in UTF-16 units.
const BLOCK_MIN: usize = 2_000;

/// Limit on the text of a tool result, all of its blocks together. Lengths in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// The most.
    pub max: usize,
    /// Ends a text that was cut.
    pub suffix: &'static str,
    /// Length set aside for the suffix.
    pub room: usize,
}

/// Cap of a transcript entry.
pub const STORED: Cap = Cap {
    max: 400_000,
    suffix: "\n\n[openclaw] Cut here: the result is longer than a transcript keeps. Ask for smaller parts, by offset and limit where possible.",
    room: 151,
};

/// Cap for a result that the model has no room for: it is shown at most `max` UTF-16 units.
pub const fn shown_in_part(max: usize) -> Cap {
    Cap {
        max,
        suffix: "\n\n[openclaw] Cut here: the whole result is too long for the model's context window, this is its beginning. Ask for the rest in smaller parts, by offset and limit where possible.",
        room: 217,
    }
}

impl Cap {
    /// True if a result is short enough as it is.
    pub fn fits(&self, result: &ToolResultMessage) -> bool {
        // No text has more UTF-16 units than bytes: most need not be counted.
        let bytes = |block: &Block| if let Block::Text(text) = block { text.text.len() } else { 0 };
        result.content.iter().map(bytes).sum::<usize>() <= self.max
            || result.content.iter().map(length).sum::<usize>() <= self.max
    }

    /// Cuts a result that is too long, each block in proportion, at a line's end where one is near.
    /// Returns true if anything was cut.
    pub fn apply(&self, result: &mut ToolResultMessage) -> bool {
        if self.fits(result) {
            return false;
        }
        let total: usize = result.content.iter().map(length).sum();
        let mut cut = false;
        for block in &mut result.content {
            let length = length(block);
            if let Block::Text(text) = block {
                // Each block's share of the limit, in 128 bits: the product of two lengths may not fit fewer.
                let share =
                    (self.max as u128 * length as u128 / total as u128).try_into().unwrap_or(self.max);
                let budget = BLOCK_MIN.max(usize::saturating_sub(share, self.room));
                if length > budget {
                    text.text = format!("{}{}", cut_at_line(&text.text, budget), self.suffix);
                    cut = true;
                }
            }
        }
        cut
    }
}

/// Length of a block's text, in UTF-16 units.
fn length(block: &Block) -> usize {
    match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    }
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

    #[test]
    fn what_fits_is_untouched() {
        let mut fits = result(&["x".repeat(STORED.max)]);
        let before = fits.clone();
        assert!(!STORED.apply(&mut fits));
        assert_eq!(fits, before);
    }

    #[test]
    fn blocks_are_cut_in_proportion_with_a_note() {
        let mut big = result(&["a".repeat(600_000), "b".repeat(200_000), "c".repeat(10)]);
        assert!(STORED.apply(&mut big));
        let expect = [
            format!("{}{}", "a".repeat(400_000 * 600_000 / 800_010 - 151), STORED.suffix),
            format!("{}{}", "b".repeat(400_000 * 200_000 / 800_010 - 151), STORED.suffix),
            "c".repeat(10),
        ];
        assert_eq!(texts(&big), expect);
        assert!(utf16_len(STORED.suffix) <= STORED.room);
        let shown = shown_in_part(9_600);
        assert!(utf16_len(shown.suffix) <= shown.room);
        assert!(shown.apply(&mut big) && shown.fits(&big));
    }

    #[test]
    fn a_cut_near_the_end_of_a_line_is_made_there() {
        let budget = 400_000 - 151;
        let text = format!("{}\n{}", "a".repeat(budget - 100), "b".repeat(400_000));
        let mut big = result(&[text]);
        let share = 400_000 - 151;
        assert!(STORED.apply(&mut big));
        assert_eq!(texts(&big)[0], format!("{}{}", "a".repeat(share - 100), STORED.suffix));
        let mut early = result(&[format!("{}\n{}", "a".repeat(100), "b".repeat(500_000))]);
        STORED.apply(&mut early);
        assert!(texts(&early)[0].len() > 300_000);
    }
}
