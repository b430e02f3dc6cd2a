//! Reading lines of a memory file, for `memory_get`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::beneath::open_beneath;
use crate::files::{Refusal, Roots};

/// Largest answer, in UTF-16 code units.
const LARGEST_ANSWER: usize = 50_000;

/// Lines that are to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetRequest {
    /// Path relative to the workspace, or absolute.
    pub path: String,
    /// First line, counted from one. Absent or 0 means the first; negative numbers too.
    pub from: Option<i64>,
    /// Number of lines. Absent or 0 means all.
    pub lines: Option<i64>,
}

/// Lines that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetAnswer {
    /// Path as searches name it.
    pub path: String,
    /// The lines. A long answer ends with a line that says how to go on.
    pub text: String,
    /// The line to go on with, if the answer was cut.
    pub next_line: Option<u64>,
}

/// Reasons for which nothing is read. The texts are for models: they name no path of the host.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// The path is blank, or names no memory file.
    #[error("path required")]
    PathRequired,
    /// The path names a transcript, which other tools read.
    #[error("transcripts can't be read with memory_get; use sessions_history")]
    Transcript,
    /// No file has this path.
    #[error("not found")]
    NotFound,
    /// The file is there and can't be read.
    #[error("not readable ({0})")]
    Unreadable(io::ErrorKind),
}

impl From<io::Error> for GetError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            // A link, a directory, a pipe.
            io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                Self::PathRequired
            }
            kind => Self::Unreadable(kind),
        }
    }
}

/// Reads what `request` asks for. Blocks.
pub(crate) fn get(roots: &Roots, request: &GetRequest) -> Result<GetAnswer, GetError> {
    let file = roots.readable(&request.path).map_err(|refusal| match refusal {
        Refusal::NotMemory => GetError::PathRequired,
        Refusal::Transcript => GetError::Transcript,
    })?;
    let (opened, _) = file.open()?;
    page_of(opened, file.path, request)
}

/// Reads the lines that `request` asks for of the file at `inside`, a relative path below `root`, through no link. The
/// answer names the file as the request does. Blocks.
///
/// # Errors
/// [`GetError`], with [`GetError::PathRequired`] for a path that leads out of `root` or to something that is no file.
pub fn get_below(root: &Path, inside: &Path, request: &GetRequest) -> Result<GetAnswer, GetError> {
    let (opened, _) = open_beneath(root, inside)?;
    page_of(opened, request.path.trim().to_owned(), request)
}

fn page_of(opened: File, path: String, request: &GetRequest) -> Result<GetAnswer, GetError> {
    let wanted = |number: Option<i64>| {
        number.filter(|number| *number != 0).map(|number| u64::try_from(number).unwrap_or(1).max(1))
    };
    let from = wanted(request.from).unwrap_or(1);
    let page = read_page(BufReader::with_capacity(64 * 1024, opened), from, wanted(request.lines))?;
    Ok(GetAnswer { path, text: page.text, next_line: page.next_line })
}

#[derive(Debug, PartialEq, Eq)]
struct LinePage {
    text: String,
    next_line: Option<u64>,
}

/// Reads `count` lines from line `from` on, or all. Holds no more in memory than the answer may have.
fn read_page(mut file: impl BufRead, from: u64, count: Option<u64>) -> io::Result<LinePage> {
    for _ in 1..from {
        if file.skip_until(b'\n')? == 0 {
            return Ok(LinePage { text: String::new(), next_line: None });
        }
    }
    let mut text = String::new();
    let mut units = 0;
    let mut line = from;
    let mut bytes = Vec::new();
    loop {
        if count.is_some_and(|count| line >= from.saturating_add(count)) {
            // The newline of the last line belongs to what follows it.
            if text.ends_with('\n') {
                text.pop();
            }
            return Ok(LinePage { text, next_line: None });
        }
        bytes.clear();
        let most = LARGEST_ANSWER as u64 * 4;
        let read = file.by_ref().take(most).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(LinePage { text, next_line: None });
        }
        let piece = String::from_utf8_lossy(&bytes);
        let size: usize = piece.chars().map(char::len_utf16).sum();
        if units + size > LARGEST_ANSWER {
            let is_first = text.is_empty();
            if is_first {
                text.push_str(cut(&piece, LARGEST_ANSWER));
                text.push('\n');
            }
            let next = if is_first { line + 1 } else { line };
            text.push_str(&format!("… truncated, continue with from={next}"));
            return Ok(LinePage { text, next_line: Some(next) });
        }
        units += size;
        text.push_str(&piece);
        line += 1;
    }
}

/// Returns the beginning of `text` that has at most `units` UTF-16 code units.
#[must_use]
pub fn cut(text: &str, units: usize) -> &str {
    if text.len() <= units {
        return text;
    }
    let mut size = 0;
    for (at, letter) in text.char_indices() {
        size += letter.len_utf16();
        if size > units {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::tests::golden;

    fn corpus() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in golden("memory-corpus.json")["files"].as_object().unwrap() {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.as_str().unwrap()).unwrap();
        }
        dir
    }

    fn ask(
        workspace: &Path,
        path: &str,
        from: Option<i64>,
        lines: Option<i64>,
    ) -> Result<GetAnswer, GetError> {
        let roots = Roots::new(workspace, &["notes".to_owned()]);
        get(&roots, &GetRequest { path: path.to_owned(), from, lines })
    }

    #[test]
    fn answers_as_recorded() {
        let dir = corpus();
        let workspace = dir.path().to_str().unwrap();
        for row in golden("memory-tools.json")["memory_get"].as_array().unwrap() {
            let (args, details) = (&row["args"], &row["details"]);
            let path = args["path"].as_str().unwrap().replace("<WORKSPACE>", workspace);
            let answer = ask(dir.path(), &path, args["from"].as_i64(), args["lines"].as_i64());
            let error = |answer: Result<GetAnswer, GetError>| answer.unwrap_err().to_string();
            match details["error"].as_str() {
                None => {
                    let answer = answer.unwrap();
                    assert_eq!(answer.path, details["path"].as_str().unwrap());
                    let whole = || std::fs::read_to_string(dir.path().join(&answer.path)).unwrap();
                    let expect = details["text"].as_str().unwrap();
                    assert_eq!(
                        answer.text,
                        if expect == "<whole file>" { whole() } else { expect.to_owned() },
                        "{args}"
                    );
                }
                Some(text) if text.starts_with("ENOENT") => assert_eq!(error(answer), "not found"),
                Some(_) if path.starts_with("sessions/") => {
                    assert!(error(answer).contains("sessions_history"))
                }
                Some(text) => assert_eq!(error(answer), text),
            }
        }
    }

    #[test]
    fn b13_a_linked_directory_leads_nowhere() {
        let dir = corpus();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("x.md"), "secret").unwrap();
        symlink(outside.path(), dir.path().join("memory/link")).unwrap();
        symlink(outside.path().join("x.md"), dir.path().join("memory/link.md")).unwrap();
        for path in ["memory/link/x.md", "memory/link.md"] {
            assert!(matches!(ask(dir.path(), path, None, None), Err(GetError::PathRequired)), "{path}");
        }
    }

    #[test]
    fn long_answers_are_paged_and_pages_make_the_file() {
        let dir = corpus();
        let text: String =
            (0..3_000).map(|number| format!("line {number} of a long note, with 中文\n")).collect();
        std::fs::write(dir.path().join("memory/big.md"), &text).unwrap();
        let (mut read, mut from, mut pages) = (String::new(), Some(1), 0);
        while let Some(line) = from {
            let answer = ask(dir.path(), "memory/big.md", Some(i64::try_from(line).unwrap()), None).unwrap();
            let marker = format!("… truncated, continue with from={}", answer.next_line.unwrap_or_default());
            read.push_str(answer.text.strip_suffix(&marker).unwrap_or(&answer.text));
            (from, pages) = (answer.next_line, pages + 1);
        }
        assert_eq!(read, text);
        assert!(pages > 1);
    }

    #[test]
    fn a_line_of_fifty_megabytes_is_cut() {
        let dir = corpus();
        std::fs::write(dir.path().join("memory/line.md"), format!("{}\nend", "x".repeat(50_000_000)))
            .unwrap();
        let answer = ask(dir.path(), "memory/line.md", None, None).unwrap();
        assert!(answer.text.len() < 60_000);
    }

    #[test]
    fn lines_are_those_between_newlines() {
        let rows = [
            ("a\nb\nc", 1, Some(2), "a\nb"),
            ("a\nb\n", 2, Some(1), "b"),
            ("a\nb\n", 2, None, "b\n"),
            ("a\n\n\n", 2, Some(1), ""),
            ("a\n\n\nb", 1, Some(3), "a\n\n"),
            ("a", 1, Some(5), "a"),
            ("", 1, None, ""),
            ("a\n", 3, Some(1), ""),
        ];
        for (text, from, count, expect) in rows {
            assert_eq!(
                read_page(text.as_bytes(), from, count).unwrap().text,
                expect,
                "{text:?} {from} {count:?}"
            );
        }
    }
}
