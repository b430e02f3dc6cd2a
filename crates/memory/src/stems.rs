//! Forms of a word that are indexed as one: singular and plural, and the usual endings of English and Russian.
//!
//! Endings of other languages in Latin letters lose a final `s` or `e`, which texts and queries lose alike. Words with
//! digits, such as hashes and versions, stay as they are.

/// Letters that a word must have to be shortened.
const SHORTEST: usize = 4;

/// Letters that a Russian stem keeps.
const SHORTEST_RUSSIAN_STEM: usize = 3;

/// Endings of Russian nouns, adjectives and verbs, the longest first.
const RUSSIAN: &[&str] = &[
    "иями", "ется", "ются", "ться", "ами", "ями", "ого", "его", "ому", "ему", "ыми", "ими", "иях", "ием",
    "иям", "ать", "ять", "ить", "еть", "ает", "ают", "ешь", "ах", "ях", "ов", "ев", "ей", "ой", "ий", "ый",
    "ая", "яя", "ое", "ее", "ые", "ие", "ую", "юю", "ом", "ем", "ам", "ям", "ию", "ия", "ии", "ых", "их",
    "ть", "ся", "ет", "ют", "ут", "ит", "ят", "ал", "ла", "ло", "ли", "а", "я", "о", "е", "ы", "и", "у", "ю",
    "ь", "й",
];

/// Shortens a folded word to what its forms share.
pub(crate) fn shorten(word: &mut String) {
    if word.is_ascii() {
        if word.len() >= SHORTEST && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            without_plural(word);
            without_verb_ending(word);
            if word.len() > SHORTEST && word.ends_with('e') {
                word.pop();
            }
        }
    } else if word.chars().all(|letter| matches!(letter, 'а'..='я' | 'ё')) {
        let letters = word.chars().count();
        let is_left = |ending: &&&str| letters >= ending.chars().count() + SHORTEST_RUSSIAN_STEM;
        if let Some(ending) = RUSSIAN.iter().filter(is_left).find(|ending| word.ends_with(**ending)) {
            word.truncate(word.len() - ending.len());
        }
    }
}

fn without_plural(word: &mut String) {
    if word.len() > SHORTEST && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["xes", "ches", "shes", "sses"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
}

/// Removes `-ing` and `-ed`, so that what is left is the word that they were added to.
fn without_verb_ending(word: &mut String) {
    if word.len() > SHORTEST && word.ends_with("ied") {
        word.truncate(word.len() - 3);
        word.push('y');
        return;
    }
    let Some(stem) = ["ing", "ed"].iter().find_map(|ending| word.strip_suffix(ending)) else { return };
    // `string` and `speed` have no ending.
    if stem.len() < 3 || stem.ends_with('e') || !stem.bytes().any(is_vowel) {
        return;
    }
    word.truncate(stem.len());
    match *word.as_bytes() {
        // As in `running`, but not in `filling` and `passing`.
        [.., before, last] if before == last && !is_vowel(last) && !matches!(last, b'l' | b's' | b'z') => {
            word.pop();
        }
        // As in `making`, but not in `fixing`.
        [first, middle, last]
            if !is_vowel(first)
                && is_vowel(middle)
                && !is_vowel(last)
                && !matches!(last, b'w' | b'x' | b'y') =>
        {
            word.push('e');
        }
        _ => {}
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stem(word: &str) -> String {
        let mut word = word.to_owned();
        shorten(&mut word);
        word
    }

    #[test]
    fn forms_of_a_word_are_one() {
        let rows: &[&[&str]] = &[
            &["note", "notes", "noted", "noting"],
            &["file", "files", "filing"],
            &["run", "runs", "running"],
            &["query", "queries", "queried"],
            &["process", "processes", "processed", "processing"],
            &["create", "creates", "created", "creating"],
            &["box", "boxes", "boxed"],
            &["pass", "passes", "passing"],
            &["backup", "backups"],
            &["встреча", "встречи", "встрече", "встречу", "встречами"],
            &["программа", "программы", "программой"],
            &["новый", "новая", "новое", "новых"],
        ];
        for forms in rows {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{forms:?}: {stems:?}");
        }
    }

    #[test]
    fn words_without_an_ending_stay() {
        for word in
            ["string", "speed", "this", "status", "class", "red", "bus", "a828e60", "v2s", "кот", "naïve", ""]
        {
            assert_eq!(stem(word), word);
        }
        assert_ne!(stem("note"), stem("not"));
    }

    proptest! {
        #[test]
        fn no_word_vanishes(word in "[a-zа-яё0-9é]{1,12}") {
            prop_assert!(!stem(&word).is_empty());
        }
    }
}
