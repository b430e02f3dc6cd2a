//! Advice that names a command: the command exists.

use std::path::{Path, PathBuf};

use super::*;

/// Files that speak of commands this version does not have, or to the agent.
const SPEAKS_OF_MISSING: &[&str] = &["command_line.rs", "advice.rs", "sections.rs"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && !SPEAKS_OF_MISSING.contains(&name.as_str()) {
            found.push(path);
        }
    }
}

/// Returns the code that runs, without comments and tests. A text that continues on the next line is joined.
fn told(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.fold(String::new(), |text, line| match text.strip_suffix('\\') {
        Some(begun) => format!("{begun}{line}"),
        None => format!("{text}\n{line}"),
    })
}

/// Returns the error in the command that a text names, checked as far as its words are literal; `None` if there is none.
fn fault(text: &str, grammar: &clap::Command) -> Option<String> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
    let mut words: Vec<String> = Vec::new();
    for written in text.split(' ').take(3) {
        let word = written.trim_end_matches(['.', ',', '`', ';', ':', ')', '"', '\'']);
        if !is_word(word) {
            break;
        }
        words.push(word.to_owned());
        // The rest is the sentence around the command.
        if word != written {
            break;
        }
    }
    if let Some((name, _)) = not_yet::find(&words) {
        return Some(format!("openclaw {name} does not exist"));
    }
    let first = grammar.find_subcommand(words.first()?)?;
    let second = words.get(1).filter(|word| first.has_subcommands() && !word.starts_with('-'))?;
    let takes_more = first.get_positionals().next().is_some() || !first.is_subcommand_required_set();
    (first.find_subcommand(second).is_none() && !takes_more)
        .then(|| format!("openclaw {} {second} does not exist", first.get_name()))
}

#[test]
fn every_command_that_a_message_advises_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let src = entry.unwrap().path().join("src");
        if src.is_dir() && !src.ends_with("testkit/src") {
            sources(&src, &mut files);
        }
    }
    let grammar = grammar();
    let mut seen = 0;
    let mut faults = Vec::new();
    for file in files {
        let code = told(&std::fs::read_to_string(&file).unwrap());
        for (at, _) in code.match_indices("openclaw ") {
            let Some(line) = code[at + "openclaw ".len()..].lines().next() else { continue };
            seen += 1;
            faults.extend(fault(line, &grammar).map(|fault| format!("{}: {fault}", file.display())));
        }
    }
    assert!(seen > 100, "only {seen} commands are named");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_command_that_is_not_there_is_found_in_a_text() {
    let grammar = grammar();
    let rows = [
        ("devices approve <id>.", true),
        ("onboard", true),
        ("gateway restart`", true),
        ("pairing aprove telegram", true),
        ("pairing approve telegram", false),
        ("models status` shows", false),
        ("gateway to start", false),
        ("{command}", false),
    ];
    for (text, is_wrong) in rows {
        assert_eq!(fault(text, &grammar).is_some(), is_wrong, "{text}");
    }
}
