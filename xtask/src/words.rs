//! Names and prose that a search finds: counts doc comments that begin with a pronoun or question word, names that several files give
//! to a type, and terms of `docs/glossary.md` that name nothing. The counts are written down here and may only fall.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use regex::Regex;

use crate::source::{self, SourceFile, code};

/// Largest permitted counts.
const ALLOWED: Counts = Counts { comments: 531, types: 22, terms: 0 };

/// First words of a comment that say nothing of what it describes.
const EMPTY_FIRST_WORDS: &str = "it its they them their he she we our us you your this that these those who whom whose which what when \
                                 where why how whether there somebody someone anybody anyone nobody everybody everyone something \
                                 anything nothing";

/// What is counted.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    /// Doc comments that begin with one of [`EMPTY_FIRST_WORDS`].
    comments: usize,
    /// Types whose name two other files or more define too.
    types: usize,
    /// Terms of the glossary that name no module, type or heading.
    terms: usize,
}

/// The places behind [`Counts`], with the totals they are part of.
#[derive(Debug, Default)]
struct Found {
    comments: Vec<String>,
    all_comments: usize,
    /// Names that three files or more define, with the number of files.
    types: BTreeMap<String, usize>,
    all_types: usize,
    terms: Vec<String>,
    all_terms: usize,
}

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let found = find()?;
    if args.iter().any(|arg| arg == "--list") {
        found.comments.iter().for_each(|comment| println!("comment  {comment}"));
        found.types.iter().for_each(|(name, files)| println!("type     {name}, {files} files"));
        found.terms.iter().for_each(|term| println!("term     {term}"));
    }
    let counts = found.counts();
    let lines = [
        ("doc comments that begin with a pronoun or question word", counts.comments, found.all_comments),
        ("types whose name three files or more define", counts.types, found.all_types),
        ("terms of the glossary that name nothing", counts.terms, found.all_terms),
    ];
    for (what, count, all) in lines {
        println!("{count:>6} of {all:>6}  {what}");
    }
    match complaint(&counts) {
        None => Ok(()),
        Some(complaint) => bail!("{complaint}; --list names them"),
    }
}

fn complaint(counts: &Counts) -> Option<String> {
    (*counts != ALLOWED)
        .then(|| format!("{ALLOWED:?} are written down, {counts:?} are there: mend what is new, or write down smaller counts"))
}

fn find() -> anyhow::Result<Found> {
    let files = source::product()?;
    let mut found = Found::default();
    for file in &files {
        found.read_comments(file);
    }
    let names = Names::of(&files);
    found.all_types = names.types.values().map(BTreeSet::len).sum();
    let shared = names.types.iter().filter(|(_, files)| files.len() >= 3);
    found.types = shared.map(|(name, files)| (name.clone(), files.len())).collect();
    let named = names.all_words(&headings()?);
    let terms = glossary_terms()?;
    found.all_terms = terms.len();
    found.terms = terms.into_iter().filter(|term| !named.contains(&squeezed(term))).collect();
    Ok(found)
}

impl Found {
    fn counts(&self) -> Counts {
        Counts { comments: self.comments.len(), types: self.types.values().sum(), terms: self.terms.len() }
    }

    fn read_comments(&mut self, file: &SourceFile) {
        let mut is_inside = false;
        for (number, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(comment) = comment.filter(|_| !is_inside) {
                self.all_comments += 1;
                if begins_empty(comment) {
                    let path = format!("crates/{}/src/{}", file.crate_name, file.path.display());
                    self.comments.push(format!("{path}:{}: {}", number + 1, comment.trim()));
                }
            }
            is_inside = comment.is_some();
        }
    }
}

fn begins_empty(comment: &str) -> bool {
    let first: String = comment.trim_start().chars().take_while(|letter| letter.is_alphabetic()).collect();
    EMPTY_FIRST_WORDS.split_whitespace().any(|word| word.eq_ignore_ascii_case(&first))
}

/// Names of the product's modules and types.
struct Names {
    modules: BTreeSet<String>,
    /// Types by name, with the files that define them.
    types: BTreeMap<String, BTreeSet<String>>,
}

impl Names {
    fn of(files: &[SourceFile]) -> Self {
        let definition = Regex::new(r"\b(?:struct|enum|trait|type)\s+([A-Z]\w*)");
        let mut names = Self { modules: BTreeSet::new(), types: BTreeMap::new() };
        for file in files {
            let segments = file.path.iter().map(|segment| segment.to_string_lossy());
            names.modules.extend(segments.map(|segment| segment.trim_end_matches(".rs").to_owned()));
            let path = format!("{}/{}", file.crate_name, file.path.display());
            let code = without_associated_types(&code(&file.text));
            let Ok(definition) = &definition else { continue };
            for [name] in definition.captures_iter(&code).map(|captures| captures.extract::<1>().1) {
                names.types.entry(name.to_owned()).or_default().insert(path.clone());
            }
        }
        names
    }

    /// Returns every run of words in these names, written without gaps and in lower case.
    fn all_words(&self, headings: &[String]) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let names = self.modules.iter().chain(self.types.keys()).chain(headings);
        for words in names.map(|name| words(name)) {
            for from in 0..words.len() {
                for to in from + 1..=words.len() {
                    all.insert(words[from..to].concat());
                }
            }
        }
        all
    }
}

/// Leaves out the lines that name a type within a trait or its implementation: they define none.
fn without_associated_types(code: &str) -> String {
    code.lines()
        .filter(|line| !line.starts_with(char::is_whitespace) || !line.trim_start().starts_with("type "))
        .fold(String::new(), |mut kept, line| {
            kept.push_str(line);
            kept.push('\n');
            kept
        })
}

/// The words of a name in any case, in lower case and without the `s` of a plural.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        let begins = letter.is_uppercase() || !letter.is_alphanumeric();
        if begins {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words.iter().map(|word| singular(word).to_owned()).collect()
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).unwrap_or(word)
}

fn squeezed(term: &str) -> String {
    words(term).concat()
}

/// Headings of the documentation.
fn headings() -> anyhow::Result<Vec<String>> {
    let mut headings = Vec::new();
    for entry in std::fs::read_dir(source::root().join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("glossary.md") {
            let text = std::fs::read_to_string(path)?;
            headings.extend(text.lines().filter(|line| line.starts_with('#')).map(str::to_owned));
        }
    }
    Ok(headings)
}

/// Terms of the glossary: the first column of its table, in bold.
fn glossary_terms() -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(source::root().join("docs/glossary.md"))?;
    let rows = text.lines().filter_map(|line| line.strip_prefix("| **"));
    Ok(rows.filter_map(|row| row.split_once("**")).map(|(term, _)| term.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_count_grows() {
        assert_eq!(complaint(&find().unwrap().counts()), None);
    }

    #[test]
    fn empty_first_words_are_found_in_any_case() {
        assert!(begins_empty(" What is told of it.") && begins_empty(" whether it may"));
        assert!(!begins_empty(" Returns what is told.") && !begins_empty(" Whole text") && !begins_empty(""));
    }

    #[test]
    fn names_fall_into_words_and_plurals_are_the_same() {
        assert_eq!(words("CredentialProfiles"), ["credential", "profile"]);
        assert_eq!(words("## Retry and backoff"), ["retry", "and", "backoff"]);
        assert_eq!(squeezed("credential profile"), "credentialprofile");
        assert_eq!(words("access"), ["access"]);
    }
}
