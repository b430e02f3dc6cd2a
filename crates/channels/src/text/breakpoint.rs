//! Finds the best place to end a part in a window of text: at its last line break, else at its last
//! blank, both outside parentheses.

use unicode_segmentation::UnicodeSegmentation;

use super::grapheme::is_blank;

/// Rule for cutting at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutRule {
    /// Ordinary text.
    Prose,
    /// Inside code: parentheses mean nothing there, and lines are what it is cut at.
    Code,
    /// Cutting is forbidden here.
    Whole,
}

/// The place of the best separator, in bytes; never the very beginning. `None` where there is none.
///
/// Returns the best place to cut. If all breaks lie in parentheses, they count after all: OpenClaw
/// 2026.2.9 splits a word then, which is hard to read.
pub(super) fn best(window: &str, place_of: impl Fn(usize) -> CutRule) -> Option<usize> {
    let mut outside = Separators::default();
    let mut anywhere = Separators::default();
    let mut depth = 0usize;
    for (at, grapheme) in window.grapheme_indices(true) {
        let place = place_of(at);
        match (place, grapheme) {
            (CutRule::Whole, _) => {}
            (CutRule::Prose, "(") => depth += 1,
            (CutRule::Prose, ")") => depth = depth.saturating_sub(1),
            (CutRule::Prose | CutRule::Code, blank) if at > 0 && is_blank(blank) => {
                anywhere.see(at, blank);
                if depth == 0 || place == CutRule::Code {
                    outside.see(at, blank);
                }
            }
            (CutRule::Prose | CutRule::Code, _) => {}
        }
    }
    outside.best().or(anywhere.best())
}

#[derive(Default)]
struct Separators {
    line: Option<usize>,
    blank: Option<usize>,
}

impl Separators {
    fn see(&mut self, at: usize, separator: &str) {
        if separator.contains('\n') {
            self.line = Some(at);
        } else {
            self.blank = Some(at);
        }
    }

    fn best(&self) -> Option<usize> {
        self.line.or(self.blank)
    }
}
