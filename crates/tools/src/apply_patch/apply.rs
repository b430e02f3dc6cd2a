//! Computes the content of a file from the chunks of an update (spec `tools.md` §2.1, "Apply
//! update"). Pure.
//!
//! Lines that a chunk keeps stay as the file has them, also where the patch spells them differently. New lines get the line
//! end of the line before them, a byte order mark stays. A file that ends with an empty line keeps it, which OpenClaw loses.

use openclaw_protocol::printable;

use super::find::{Haystack, Start, split_end};
use super::parse::{PatchChunk, PatchLine};

const BOM: &str = "\u{feff}";

/// Reason why a file can't be updated. The model reads it and looks at the file again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileUpdateError {
    /// The file is not UTF-8, or contains null bytes.
    #[error("{path} is a binary file or not UTF-8 text. Use exec to change it.")]
    NotText {
        /// Path as the patch names it.
        path: String,
    },
    /// The line after `@@` is not in the file, or only further up.
    #[error("Failed to find context '{context}' in {path}")]
    NoContext {
        /// The line.
        context: String,
        /// Path as the patch names it.
        path: String,
    },
    /// The lines that a chunk keeps and removes are not in the file, or only further up.
    #[error("Failed to find expected lines in {path}:\n{lines}")]
    NoLines {
        /// Path as the patch names it.
        path: String,
        /// Joined by line ends.
        lines: String,
    },
}

/// The content of the file `path` after an update.
pub fn update(before: &[u8], chunks: &[PatchChunk<'_>], path: &str) -> Result<Vec<u8>, FileUpdateError> {
    let text = std::str::from_utf8(before).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| FileUpdateError::NotText { path: path.to_owned() })?;
    let body = text.strip_prefix(BOM).unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    if body.len() < text.len() {
        out.push_str(BOM);
    }
    rewrite(body, &locate(body, chunks, path)?, &mut out);
    Ok(out.into_bytes())
}

/// A chunk and the line of the file where it begins.
struct Located<'a> {
    at: usize,
    lines: Vec<PatchLine<'a>>,
}

/// Finds every chunk's place. They do not overlap and come in the order of the file.
fn locate<'a>(
    body: &str,
    chunks: &[PatchChunk<'a>],
    path: &str,
) -> Result<Vec<Located<'a>>, FileUpdateError> {
    let hay = Haystack::new(body);
    let mut located = Vec::with_capacity(chunks.len());
    let mut position = 0;
    for chunk in chunks {
        if let Some(context) = chunk.context {
            let found = hay.find(&[context], Start::Line(position));
            position = 1 + found.ok_or_else(|| FileUpdateError::NoContext {
                context: excerpt(context),
                path: path.to_owned(),
            })?;
        }
        let old: Vec<&str> = chunk.lines.iter().filter_map(|line| line.old()).collect();
        if old.is_empty() {
            located.push(Located { at: hay.lines(), lines: chunk.lines.clone() });
            continue;
        }
        let from = if chunk.is_end_of_file { Start::AtEnd } else { Start::Line(position) };
        // A passage at the end of the file that reaches above the position would overlap what an earlier chunk changes.
        let find = |passage: &[&str]| hay.find(passage, from).filter(|at| *at >= position);
        let (at, lines, length) = match (find(&old), old.as_slice()) {
            (Some(at), _) => (at, chunk.lines.clone(), old.len()),
            (None, [rest @ .., ""]) if !rest.is_empty() => match find(rest) {
                Some(at) => (at, without_last_blank(&chunk.lines), rest.len()),
                None => return Err(no_lines(path, &old)),
            },
            (None, _) => return Err(no_lines(path, &old)),
        };
        located.push(Located { at, lines });
        position = at + length;
    }
    // Insertions at the end of the file may be named before changes further up.
    located.sort_by_key(|chunk| chunk.at);
    Ok(located)
}

fn no_lines(path: &str, old: &[&str]) -> FileUpdateError {
    FileUpdateError::NoLines { path: path.to_owned(), lines: excerpt(&old.join("\n")) }
}

/// The beginning of a text that the model wrote itself: it knows the rest.
fn excerpt(text: &str) -> String {
    const CHARS: usize = 2_000;
    printable::excerpt(text, CHARS).into_owned()
}

/// A chunk whose last old line is empty and not in the file: patches often end with an empty line that means nothing. An empty
/// last new line means nothing either.
fn without_last_blank<'a>(lines: &[PatchLine<'a>]) -> Vec<PatchLine<'a>> {
    let mut lines = lines.to_vec();
    let last_old = lines.iter().rposition(|line| line.old().is_some());
    match last_old.and_then(|at| lines.get_mut(at)) {
        Some(kept @ PatchLine::Keep(_)) => *kept = PatchLine::Add(""),
        Some(_) | None => {
            last_old.map(|at| lines.remove(at));
        }
    }
    let last_new = lines.iter().rposition(|line| !matches!(line, PatchLine::Remove(_)));
    if let Some(at) = last_new.filter(|at| lines.get(*at) == Some(&PatchLine::Add(""))) {
        lines.remove(at);
    }
    lines
}

/// Writes the file's lines and what takes the place of some.
fn rewrite(body: &str, chunks: &[Located<'_>], out: &mut String) {
    let mut old = body.split_inclusive('\n');
    // A file without a line end, or an empty one, gets plain ones.
    let first = body.split_inclusive('\n').next().map_or("", |line| split_end(line).1);
    let mut end = if first.is_empty() { "\n" } else { first };
    let mut at = 0;
    for chunk in chunks {
        for line in old.by_ref().take(chunk.at.saturating_sub(at)) {
            keep(line, &mut end, out);
        }
        at = chunk.at;
        for line in &chunk.lines {
            match line {
                PatchLine::Keep(_) => {
                    old.next().inspect(|line| keep(line, &mut end, out));
                    at += 1;
                }
                PatchLine::Remove(_) => {
                    old.next().inspect(|line| note_end(line, &mut end));
                    at += 1;
                }
                PatchLine::Add(line) => {
                    out.push_str(line);
                    out.push_str(end);
                }
            }
        }
    }
    old.for_each(|line| keep(line, &mut end, out));
}

/// Writes a line of the file, and ends it if it has no end.
fn keep<'a>(line: &'a str, end: &mut &'a str, out: &mut String) {
    note_end(line, end);
    out.push_str(split_end(line).0);
    out.push_str(end);
}

/// Remembers how the file's lines end here.
fn note_end<'a>(line: &'a str, end: &mut &'a str) {
    let own = split_end(line).1;
    if !own.is_empty() {
        *end = own;
    }
}

#[cfg(test)]
mod tests;
