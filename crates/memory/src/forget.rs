//! Finding entries of memory files that speak of something, and removing them from the files.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::files::Roots;
use crate::rank::dated_path;
use crate::words::{self, QueryTerm, WordForm};

/// Most entries that are found at once.
const MOST_ENTRIES: usize = 200;

/// Terms of a query that are looked at.
const MOST_TERMS: usize = 32;

/// A list item or paragraph of a memory file that a query matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetEntry {
    /// Path relative to the workspace.
    pub path: String,
    /// First line, counted from one.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Text of these lines.
    pub text: String,
    /// Day since which it is known: one that the entry or the name of its file says, or else that of the file's last
    /// change.
    pub since: Option<String>,
}

/// Finds the entries that hold all terms of `query`. Blocks.
pub(crate) fn find(roots: &Roots, query: &str) -> Vec<ForgetEntry> {
    let terms = words::query_terms(query, WordForm::Exact, MOST_TERMS);
    let mut found = Vec::new();
    if terms.is_empty() {
        return found;
    }
    for file in roots.scan().files {
        let Ok(read) = file.read() else { continue };
        for entry in entries(&read.text) {
            if found.len() >= MOST_ENTRIES {
                return found;
            }
            let text = lines_of(&read.text, entry);
            if holds_all(&text, &terms) {
                let since = day_in(&text)
                    .or_else(|| dated_path(&file.path).map(|day| day.to_string()))
                    .or_else(|| day_of(read.stat.modified));
                found.push(ForgetEntry {
                    path: file.path.clone(),
                    start_line: entry.0,
                    end_line: entry.1,
                    text,
                    since,
                });
            }
        }
    }
    found
}

/// Result of [`Memory::forget`](crate::Memory::forget).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgetOutcome {
    /// Number of entries that were removed.
    pub removed: usize,
    /// Files that could not be changed, with the reason.
    pub failed: Vec<String>,
}

/// Removes entries from their files. One whose lines have changed since it was found stays; a file that can't be changed
/// keeps no other one back. Blocks.
pub(crate) fn remove(roots: &Roots, chosen: &[ForgetEntry]) -> ForgetOutcome {
    let paths: BTreeSet<&str> = chosen.iter().map(|entry| entry.path.as_str()).collect();
    let mut outcome = ForgetOutcome::default();
    for path in paths {
        match remove_from(roots, path, chosen) {
            Ok(removed) => outcome.removed += removed,
            Err(error) => outcome.failed.push(format!("{path}: {error}")),
        }
    }
    outcome
}

fn remove_from(roots: &Roots, path: &str, chosen: &[ForgetEntry]) -> io::Result<usize> {
    let Ok(file) = roots.readable(path) else { return Ok(0) };
    let (mut opened, metadata) = file.open()?;
    let mut bytes = Vec::new();
    opened.read_to_end(&mut bytes)?;
    // Bytes that are no UTF-8 were shown replaced, and stay as they are.
    let text = String::from_utf8_lossy(&bytes);
    let mut gone: HashSet<usize> = HashSet::new();
    let mut removed = 0;
    for entry in chosen.iter().filter(|entry| entry.path == path) {
        if lines_of(&text, (entry.start_line, entry.end_line)) == entry.text {
            gone.extend(entry.start_line as usize..=entry.end_line as usize);
            removed += 1;
        }
    }
    if gone.is_empty() {
        return Ok(0);
    }
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let kept = lines.filter(|(index, _)| !gone.contains(&(index + 1))).map(|(_, line)| line);
    let kept = kept.collect::<Vec<_>>().join(&b'\n');
    let location = file.location();
    let directory = location.parent().unwrap_or(Path::new("."));
    let mut written = tempfile::NamedTempFile::new_in(directory)?;
    written.write_all(&kept)?;
    written.as_file().set_permissions(metadata.permissions())?;
    written.as_file().sync_all()?;
    written.persist(&location).map_err(|error| error.error)?;
    Ok(removed)
}

/// Returns the first and last lines of all list items and paragraphs.
fn entries(text: &str) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    // The entry that lines are added to: its first line and, of a list item, the column of its marker.
    let mut open: Option<(u32, Option<usize>)> = None;
    let mut last = 0;
    for (index, line) in text.split('\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        let continues = match open {
            _ if bare.is_empty() || bare.starts_with('#') => false,
            Some((_, Some(column))) => indent > column,
            Some((_, None)) => !is_item(bare),
            None => false,
        };
        if !continues && let Some((start, _)) = open.take() {
            found.push((start, last));
        }
        if !continues && !bare.is_empty() && !bare.starts_with('#') {
            open = Some((number, is_item(bare).then_some(indent)));
        }
        if open.is_some() {
            last = number;
        }
    }
    if let Some((start, _)) = open {
        found.push((start, last));
    }
    found
}

fn is_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = digits.len() < line.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    is_numbered || ["- ", "* ", "+ "].iter().any(|marker| line.starts_with(marker))
}

fn lines_of(text: &str, (start, end): (u32, u32)) -> String {
    let skipped = (start as usize).saturating_sub(1);
    let count = (end as usize + 1).saturating_sub(start as usize);
    text.split('\n').skip(skipped).take(count).collect::<Vec<_>>().join("\n")
}

fn holds_all(text: &str, terms: &[QueryTerm]) -> bool {
    let mut held = HashSet::new();
    words::for_each_term(text, WordForm::Exact, |term| {
        held.insert(term.to_owned());
    });
    terms.iter().all(|term| match term {
        QueryTerm::Whole(term) => held.contains(term),
        QueryTerm::FirstOf(letter) => held.iter().any(|term| term.starts_with(*letter)),
    })
}

/// Returns the first day that the text names.
fn day_in(text: &str) -> Option<String> {
    let is_day = |word: &&str| word.len() == 10 && word.bytes().filter(|byte| *byte == b'-').count() == 2;
    let words = text.split(|letter: char| !letter.is_ascii_digit() && letter != '-').filter(is_day);
    words.filter_map(|word| word.parse::<jiff::civil::Date>().ok()).map(|day| day.to_string()).next()
}

fn day_of(nanoseconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(i128::from(nanoseconds)).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::system()).date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "# People\n\n- Ada likes tea\n  and metric units\n- Grace is on call since 2026-01-14\n\nThe wifi password\nis hunter2.\n1. one\n2. two\n";

    #[test]
    fn items_and_paragraphs_are_entries() {
        assert_eq!(entries(NOTE), [(3, 4), (5, 5), (7, 8), (9, 9), (10, 10)]);
        assert_eq!(entries(""), []);
    }

    #[test]
    fn what_is_found_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        std::fs::write(dir.path().join("MEMORY.md"), NOTE).unwrap();
        std::fs::write(dir.path().join("memory/2026-02-01.md"), "- wifi is slow\n").unwrap();
        let roots = Roots::new(dir.path(), &[]);
        let found = find(&roots, "wifi");
        let shown: Vec<_> =
            found.iter().map(|entry| (entry.path.as_str(), entry.start_line, entry.end_line)).collect();
        assert_eq!(shown, [("MEMORY.md", 7, 8), ("memory/2026-02-01.md", 1, 1)]);
        assert_eq!(found[1].since.as_deref(), Some("2026-02-01"));
        assert_eq!(find(&roots, "grace call")[0].since.as_deref(), Some("2026-01-14"));
        assert!(find(&roots, "  ").is_empty());
        assert_eq!(remove(&roots, &found[..1]).removed, 1);
        let expect = NOTE.replace("The wifi password\nis hunter2.\n", "");
        assert_eq!(std::fs::read_to_string(dir.path().join("MEMORY.md")).unwrap(), expect);
        assert_eq!(remove(&roots, &found[..1]).removed, 0);
    }
}
