//! Sources of the product as the checks of their shape read them: without comments, texts and tests.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// One source file of a crate.
pub(crate) struct SourceFile {
    /// Name of the crate's folder below `crates`.
    pub(crate) crate_name: String,
    /// Path below the crate's `src`.
    pub(crate) path: PathBuf,
    /// Content of the file.
    pub(crate) text: String,
}

impl SourceFile {
    /// The top-level module that the file belongs to; `None` for the root of the crate.
    pub(crate) fn module(&self) -> Option<&str> {
        let first = self.path.iter().next()?.to_str()?;
        let module = first.strip_suffix(".rs").unwrap_or(first);
        (!["lib", "main"].contains(&module)).then_some(module)
    }

    /// Number of modules above the code of this file, the crate's root not counted.
    pub(crate) fn depth(&self) -> usize {
        self.path.iter().count()
    }
}

/// Root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads the product's own files: those of all crates below `crates`, but for tests.
///
/// # Errors
/// When a file can't be read.
pub(crate) fn product() -> anyhow::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("crates"))? {
        let entry = entry?;
        let crate_name = entry.file_name().to_string_lossy().into_owned();
        collect(&crate_name, &entry.path().join("src"), Path::new(""), &mut files)?;
    }
    files.sort_by(|one, other| (&one.crate_name, &one.path).cmp(&(&other.crate_name, &other.path)));
    let tests: Vec<(String, PathBuf)> = files.iter().flat_map(test_modules).collect();
    files.retain(|file| {
        let is_in = |(crate_name, module): &(String, PathBuf)| {
            *crate_name == file.crate_name && file.path.with_extension("").starts_with(module)
        };
        !tests.iter().any(is_in)
    });
    Ok(files)
}

/// Returns the modules in files of their own that one file declares for tests alone: the crate, and the path without its extension.
fn test_modules(file: &SourceFile) -> Vec<(String, PathBuf)> {
    let is_root = file.module().is_none();
    let dir = if is_root { PathBuf::new() } else { file.path.with_extension("") };
    let items = file.text.split("#[cfg(test)]").skip(1);
    let declared = items.filter_map(|item| {
        let line = item.trim_start().lines().next()?;
        let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix(';').map(|name| dir.join(name))
    });
    declared.map(|path| (file.crate_name.clone(), path)).collect()
}

fn collect(crate_name: &str, root: &Path, below: &Path, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    let dir = root.join(below);
    for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "testing");
        if is_test {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(crate_name, root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(root.join(&path))?;
            files.push(SourceFile { crate_name: crate_name.to_owned(), path, text });
        }
    }
    Ok(())
}

/// Returns Rust code without comments, the content of texts, and what is compiled for tests alone.
pub(crate) fn code(text: &str) -> String {
    without_tests(&without_words(text))
}

/// Replaces comments and the content of texts by nothing.
fn without_words(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', 'r', '\'']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        let is_word = code.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_');
        let length = match from.as_bytes() {
            [b'/', b'/', ..] => from.find('\n').unwrap_or(from.len()),
            [b'/', b'*', ..] => from.find("*/").map_or(from.len(), |end| end + 2),
            [b'"', ..] => quoted(from),
            [b'r', b'"' | b'#', ..] if !is_word || code.ends_with('b') => raw(from).unwrap_or(0),
            [b'\'', b'\\', ..] => from.get(2..).and_then(|rest| rest.find('\'')).map_or(1, |end| end + 3),
            [b'\'', ..] => character(from),
            _ => 0,
        };
        if length == 0 {
            code.push_str(&from[..1]);
        }
        rest = &from[length.max(1)..];
    }
    code.push_str(rest);
    code
}

/// Length of a text in quotes.
fn quoted(from: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in from.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    from.len()
}

/// Length of a raw text; `None` if it is none.
fn raw(from: &str) -> Option<usize> {
    let hashes = from[1..].bytes().take_while(|byte| *byte == b'#').count();
    let open = 1 + hashes;
    if from.as_bytes().get(open) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(from[open + 1..].find(&end).map_or(from.len(), |at| open + 1 + at + end.len()))
}

/// Length of a character in quotes; 0 for a lifetime.
fn character(from: &str) -> usize {
    let mut letters = from.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 0,
    }
}

/// Leaves out the items that stand behind `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        rest = &item[item_length(item)..];
    }
    kept.push_str(rest);
    kept
}

/// Length of an item: to its semicolon, or to the brace that closes its body.
fn item_length(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in item.char_indices() {
        match letter {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if letter == '}' && depth == 0 {
                    return at + 1;
                }
            }
            ';' | ',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_tests_are_left_out() {
        let text = "/// of crate::a\nuse crate::b; // crate::c\nconst D: &str = \"crate::d \\\" crate::d\";\n\
                    const E: &str = r#\"crate::e \" \"#; fn f<'a>(x: &'a str) { x.split('\"'); crate::g(); }\n\
                    #[cfg(test)]\nmod h { use crate::i; }\n#[cfg(test)]\nmod j;\nuse crate::k;";
        let named: Vec<String> =
            code(text).split("crate::").skip(1).map(|rest| rest.chars().take(1).collect()).collect();
        assert_eq!(named, ["b", "g", "k"]);
    }

    #[test]
    fn modules_for_tests_alone_are_named_with_their_folder() {
        let text = "mod a;\n#[cfg(test)]\nmod memory;\n#[cfg(test)]\npub(crate) mod laws;\n#[cfg(test)]\nmod tests {}";
        let found = |path: &str| {
            let file = SourceFile { crate_name: "x".into(), path: path.into(), text: text.into() };
            test_modules(&file).into_iter().map(|(_, path)| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("journal.rs"), ["journal/memory", "journal/laws"]);
        assert_eq!(found("lib.rs"), ["memory", "laws"]);
    }

    #[test]
    fn the_first_folder_or_file_is_the_module() {
        let file = |path: &str| SourceFile { crate_name: "x".into(), path: path.into(), text: String::new() };
        assert_eq!(file("lib.rs").module(), None);
        assert_eq!(file("runner.rs").module(), Some("runner"));
        assert_eq!(file("runner/prepare/tools.rs").module(), Some("runner"));
    }
}
