//! Splits text into words as BERT does: at blanks, at punctuation, around each Chinese character.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Changes to a text before it is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BertText {
    pub(super) lowercase: bool,
    pub(super) strip_accents: bool,
    pub(super) clean: bool,
    pub(super) part_chinese: bool,
}

impl BertText {
    /// Calls `word` with each word of a text until it returns false.
    pub(super) fn words(self, text: &str, mut word: impl FnMut(&str) -> bool) {
        let mut current = String::new();
        for raw in text.split(char::is_whitespace) {
            let changed = self.changed(raw);
            for c in changed.chars() {
                let apart = is_punctuation(c) || (self.part_chinese && is_chinese(c));
                if (apart || c.is_whitespace()) && !take(&mut current, &mut word) {
                    return;
                }
                if !c.is_whitespace() {
                    current.push(c);
                }
                if apart && !take(&mut current, &mut word) {
                    return;
                }
            }
            if !take(&mut current, &mut word) {
                return;
            }
        }
    }

    fn changed(self, raw: &str) -> String {
        let kept = raw.chars().filter(|c| !self.clean || !is_dropped(*c));
        let text: String = if self.strip_accents {
            kept.nfd().filter(|c| c.general_category() != GeneralCategory::NonspacingMark).collect()
        } else {
            kept.collect()
        };
        if self.lowercase { text.chars().flat_map(char::to_lowercase).collect() } else { text }
    }
}

/// Hands out a word that has begun. Returns false if no more are wanted.
fn take(current: &mut String, word: &mut impl FnMut(&str) -> bool) -> bool {
    let goes_on = current.is_empty() || word(current);
    current.clear();
    goes_on
}

/// Control characters and characters that stand for something unreadable.
fn is_dropped(c: char) -> bool {
    c == '\u{fffd}' || c.general_category_group() == GeneralCategoryGroup::Other
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || (!c.is_ascii() && c.general_category_group() == GeneralCategoryGroup::Punctuation)
}

fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNCASED: BertText =
        BertText { lowercase: true, strip_accents: true, clean: true, part_chinese: true };
    const CASED: BertText = BertText { lowercase: false, strip_accents: false, ..UNCASED };

    fn words(rules: BertText, text: &str) -> Vec<String> {
        let mut all = Vec::new();
        rules.words(text, |word| {
            all.push(word.to_owned());
            true
        });
        all
    }

    #[test]
    fn text_is_split_into_words() {
        let rows: [(&str, &[&str]); 9] = [
            ("", &[]),
            ("  Hello,\tWorld!\n", &["hello", ",", "world", "!"]),
            ("Café naïve", &["cafe", "naive"]),
            ("a828e60 sqlite-vec", &["a828e60", "sqlite", "-", "vec"]),
            ("会议记录：网关", &["会", "议", "记", "录", "：", "网", "关"]),
            ("カタカナ", &["カタカナ"]),
            ("Встреча", &["встреча"]),
            ("a\u{0}b\u{200d}c\u{fffd}", &["abc"]),
            ("x¿y…z", &["x", "¿", "y", "…", "z"]),
        ];
        for (text, expect) in rows {
            assert_eq!(words(UNCASED, text), expect, "{text:?}");
        }
        assert_eq!(words(CASED, "Café X"), ["Café", "X"]);
    }

    #[test]
    fn no_more_words_are_made_than_wanted() {
        let mut seen = 0;
        UNCASED.words("a b c d", |_| {
            seen += 1;
            seen < 2
        });
        assert_eq!(seen, 2);
    }
}
