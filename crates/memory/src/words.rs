//! Terms of a text for the keyword index: words of every script, and pairs of characters where a script writes no
//! spaces between words.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfkc};

use crate::stems;

/// Version of these rules. A keyword index that was made by others is made anew.
pub(crate) const WORDS_VERSION: u32 = 2;

/// Longest term, in characters. Longer words (keys, encoded data) are cut, in texts and queries alike.
const LONGEST_TERM: usize = 48;

/// A term that a query asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum QueryTerm {
    /// Exactly this term of the index.
    Whole(String),
    /// A single character of a script without spaces: any pair that begins with it, or the character at the end of a run.
    FirstOf(char),
}

/// Role of a character in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a word that spaces or punctuation end.
    Word,
    /// Part of a run that is indexed as pairs.
    Unspaced,
    /// A mark that belongs to the character before it.
    Mark,
    Separator,
}

/// Form in which the words of a text are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordForm {
    /// As they are, but for case and accents.
    Exact,
    /// Without the endings that [`stems`] knows, as they are indexed.
    Stem,
}

/// Calls `found` with each term of `text`, in order, with repetitions.
pub(crate) fn for_each_term(text: &str, form: WordForm, mut found: impl FnMut(&str)) {
    let mut pair = String::new();
    runs(text, form, |class, run| match class {
        Class::Word => found(run),
        Class::Unspaced | Class::Mark | Class::Separator => {
            let mut clusters = clusters(run).peekable();
            while let Some(first) = clusters.next() {
                pair.clear();
                pair.push_str(first);
                if let Some(second) = clusters.peek() {
                    pair.push_str(second);
                }
                found(&pair);
            }
        }
    });
}

/// Returns the distinct terms of a query, in order, at most `limit` of them.
pub(crate) fn query_terms(query: &str, form: WordForm, limit: usize) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    let mut add = |term: QueryTerm| {
        if terms.len() < limit && !terms.contains(&term) {
            terms.push(term);
        }
    };
    runs(query, form, |class, run| match class {
        Class::Word => add(QueryTerm::Whole(run.to_owned())),
        Class::Unspaced | Class::Mark | Class::Separator => {
            let parts: Vec<&str> = clusters(run).collect();
            match parts.as_slice() {
                [] => {}
                [single] => {
                    if let Some(letter) = single.chars().next() {
                        add(QueryTerm::FirstOf(letter));
                    }
                }
                several => several.windows(2).for_each(|pair| add(QueryTerm::Whole(pair.concat()))),
            }
        }
    });
    terms
}

/// Calls `found` with each run of characters of one kind, folded.
fn runs(text: &str, form: WordForm, mut found: impl FnMut(Class, &str)) {
    let mut run = String::new();
    let mut letters = 0;
    let mut kind = Class::Separator;
    let mut end = |kind: Class, run: &mut String| {
        if !run.is_empty() {
            if kind == Class::Word && form == WordForm::Stem {
                stems::shorten(run);
            }
            found(kind, run);
            run.clear();
        }
    };
    for letter in folded(text).chars() {
        let class = match class(letter) {
            Class::Mark if run.is_empty() => Class::Separator,
            Class::Mark => kind,
            class => class,
        };
        if class != kind {
            end(kind, &mut run);
            letters = 0;
            kind = class;
        }
        if class == Class::Separator {
            continue;
        }
        letters += 1;
        if class == Class::Unspaced || letters <= LONGEST_TERM {
            run.push(letter);
        }
    }
    end(kind, &mut run);
}

/// Returns the characters of an unspaced run, each with the marks that follow it.
fn clusters(run: &str) -> impl Iterator<Item = &str> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let mut letters = rest.char_indices();
        letters.next()?;
        let end = letters.find(|(_, letter)| class(*letter) != Class::Mark).map_or(rest.len(), |(at, _)| at);
        let (cluster, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(cluster)
    })
}

/// Returns `text` as it is compared: compatibility forms composed, lower case, without accents on Latin and Greek
/// letters and without Arabic vowel signs.
fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let composed =
        if is_nfkc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect::<String>()) };
    let mut out = String::with_capacity(composed.len());
    for letter in composed.chars().flat_map(char::to_lowercase) {
        match u32::from(letter) {
            // Harakat, superscript alef and tatweel.
            0x064B..=0x0652 | 0x0670 | 0x0640 => {}
            0x00C0..=0x024F | 0x0370..=0x03FF | 0x1E00..=0x1FFF => {
                let mut bare = letter.nfd().filter(|part| !matches!(u32::from(*part), 0x0300..=0x036F));
                out.extend(bare.by_ref().map(without_final_form));
            }
            0x0300..=0x036F if out.ends_with(|before: char| before.is_ascii_alphabetic()) => {}
            _ => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Returns sigma for the form that stands at the end of a word.
fn without_final_form(letter: char) -> char {
    if letter == 'ς' { 'σ' } else { letter }
}

fn class(letter: char) -> Class {
    if letter.is_ascii() {
        return if letter.is_ascii_alphanumeric() { Class::Word } else { Class::Separator };
    }
    let code = u32::from(letter);
    match code {
        // Signs above and below of Thai, Lao, Khmer and Burmese, voicing marks of kana, variation selectors.
        0x0E31
        | 0x0E34..=0x0E3A
        | 0x0E47..=0x0E4E
        | 0x0EB1
        | 0x0EB4..=0x0EBC
        | 0x0EC8..=0x0ECE
        | 0x102B..=0x103E
        | 0x17B4..=0x17D3
        | 0x3099
        | 0x309A
        | 0xFE00..=0xFE0F => Class::Mark,
        // Thai, Lao, Burmese, Hangul letters, Khmer; kana; Han; Hangul syllables.
        0x0E01..=0x0E46
        | 0x0E80..=0x0EC6
        | 0x1000..=0x109F
        | 0x1100..=0x11FF
        | 0x1780..=0x17B3
        | 0x3005..=0x3007
        | 0x3041..=0x3096
        | 0x309D..=0x309F
        | 0x30A1..=0x30FA
        | 0x30FC..=0x30FF
        | 0x3105..=0x312F
        | 0x3131..=0x318E
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xA960..=0xA97F
        | 0xAC00..=0xD7FF
        | 0xF900..=0xFAFF
        | 0x1B000..=0x1B16F
        | 0x20000..=0x3FFFF => Class::Unspaced,
        // Combining marks of other scripts: accents, Cyrillic, Hebrew, Arabic, Indic vowel signs.
        0x0300..=0x036F
        | 0x0483..=0x0487
        | 0x0591..=0x05BD
        | 0x0610..=0x061A
        | 0x064B..=0x065F
        | 0x0900..=0x0903
        | 0x093A..=0x094F
        | 0x0951..=0x0957
        | 0x0981..=0x0983
        | 0x09BC..=0x09CD
        | 0x0A01..=0x0A03
        | 0x0A3C..=0x0A4D
        | 0x0A81..=0x0A83
        | 0x0ABC..=0x0ACD
        | 0x0B01..=0x0B03
        | 0x0B3C..=0x0B57
        | 0x0B82
        | 0x0BBE..=0x0BCD
        | 0x0C00..=0x0C04
        | 0x0C3E..=0x0C56
        | 0x0C81..=0x0C83
        | 0x0CBC..=0x0CD6
        | 0x0D00..=0x0D03
        | 0x0D3B..=0x0D4D
        | 0x200C
        | 0x200D => Class::Mark,
        _ if letter.is_alphanumeric() => Class::Word,
        _ => Class::Separator,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        for_each_term(text, WordForm::Exact, |term| terms.push(term.to_owned()));
        terms
    }

    fn asked(query: &str) -> Vec<String> {
        let name = |term: QueryTerm| match term {
            QueryTerm::Whole(term) => term,
            QueryTerm::FirstOf(letter) => format!("{letter}*"),
        };
        query_terms(query, WordForm::Exact, 64).into_iter().map(name).collect()
    }

    #[test]
    fn reads_words_of_every_script() {
        let rows: &[(&str, &[&str])] = &[
            ("hello, World!", &["hello", "world"]),
            ("OPENAI_API_KEY a.b/c", &["openai", "api", "key", "a", "b", "c"]),
            ("café Ｃａｆé", &["cafe", "cafe"]),
            ("Встреча с Олегом", &["встреча", "с", "олегом"]),
            ("Ο Οδυσσεύς", &["ο", "οδυσσευσ"]),
            ("كِتَابٌ", &["كتاب"]),
            ("会议记录", &["会议", "议记", "记录", "录"]),
            ("使用gen-itgc脚本", &["使用", "用", "gen", "itgc", "脚本", "本"]),
            ("배포 전략", &["배포", "포", "전략", "략"]),
            ("デプロイ", &["デプ", "プロ", "ロイ", "イ"]),
            ("ที่นี่", &["ที่นี่", "นี่"]),
            ("!!! \u{0301}", &[]),
            ("", &[]),
        ];
        for (text, expect) in rows {
            assert_eq!(terms(text), *expect, "{text}");
        }
    }

    #[test]
    fn asks_for_pairs_and_for_single_characters_by_their_beginning() {
        assert_eq!(asked("会议记录 plan plan"), ["会议", "议记", "记录", "plan"]);
        assert_eq!(asked("猫"), ["猫*"]);
        assert_eq!(asked("Café 猫"), ["cafe", "猫*"]);
        assert_eq!(asked("\"AND\" OR NOT *"), ["and", "or", "not"]);
        assert!(asked("!?").is_empty());
        assert_eq!(query_terms(&"a b c d e f ".repeat(100_000), WordForm::Stem, 4).len(), 4);
    }

    proptest! {
        #[test]
        fn every_term_of_a_text_is_found_by_asking_for_it(text in any::<String>()) {
            let mut indexed = Vec::new();
            for_each_term(&text, WordForm::Stem, |term| indexed.push(term.to_owned()));
            for term in query_terms(&text, WordForm::Stem, 1_000) {
                match term {
                    QueryTerm::Whole(term) => prop_assert!(indexed.contains(&term)),
                    QueryTerm::FirstOf(letter) => prop_assert!(indexed.iter().any(|term| term.starts_with(letter))),
                }
            }
        }
    }
}
