//! A patch text becomes hunks (spec `tools.md` §2.1, grammar). Pure; nothing is copied but the content of new files.

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hunk<'a> {
    /// A file gets this content, whether it existed or not.
    Add {
        /// Path as the patch names it.
        path: &'a str,
        /// Every line ends with `\n`.
        content: String,
    },
    /// A file is removed.
    Delete {
        /// Path as the patch names it.
        path: &'a str,
    },
    /// Parts of a file are replaced.
    Update {
        /// Path as the patch names it.
        path: &'a str,
        /// The file's new path.
        move_to: Option<&'a str>,
        /// Chunks in the order of the patch, at least one.
        chunks: Vec<PatchChunk<'a>>,
    },
}

/// Passage of an update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchChunk<'a> {
    /// A line that stands somewhere above the passage.
    pub context: Option<&'a str>,
    /// The passage, at least one line unless it is only an end-of-file mark.
    pub lines: Vec<PatchLine<'a>>,
    /// True if the passage ends with the file.
    pub is_end_of_file: bool,
}

/// A line of a chunk, without its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchLine<'a> {
    /// Line of the file before and after.
    Keep(&'a str),
    /// Line of the file before.
    Remove(&'a str),
    /// Line of the file after.
    Add(&'a str),
}

impl<'a> PatchLine<'a> {
    /// The line as the file has it before the patch.
    pub fn old(self) -> Option<&'a str> {
        match self {
            Self::Keep(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }
}

/// Error in the text of a patch. The model reads it and tries again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is empty or white space only.
    #[error("Provide a patch input.")]
    Empty,
    /// The marks are there, and nothing between them.
    #[error("No files were modified.")]
    NoHunks,
    /// The opening mark is missing.
    #[error("The first line of the patch must be '{BEGIN}'")]
    NoBegin,
    /// The closing mark is missing.
    #[error("The last line of the patch must be '{END}'")]
    NoEnd,
    /// A line of the patch can't be read.
    #[error("Invalid patch hunk at line {line}: {problem}")]
    Hunk {
        /// Counted from 1, the opening mark included.
        line: usize,
        /// Description of the problem.
        problem: HunkProblem,
    },
}

/// Problem of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HunkProblem {
    /// No hunk begins like this.
    #[error(
        "'{0}' is not a valid hunk header. Valid hunk headers: '{ADD}{{path}}', '{DELETE}{{path}}', '{UPDATE}{{path}}'"
    )]
    Header(String),
    /// An update of this path without a chunk.
    #[error("Update file hunk for path '{0}' is empty")]
    EmptyUpdate(String),
    /// A second chunk without its mark.
    #[error("Expected update hunk to start with a @@ context marker, got: '{0}'")]
    NoMarker(String),
    /// A mark without a chunk.
    #[error("Update hunk does not contain any lines")]
    NoLines,
    /// A chunk that begins with a line without a mark.
    #[error(
        "Unexpected line found in update hunk: '{0}'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
    )]
    Unexpected(String),
}

/// The hunks of a patch, at least one.
pub fn parse(input: &str) -> Result<Vec<Hunk<'_>>, ParseError> {
    let input = input.trim();
    if input.is_empty() {
        return Err(ParseError::Empty);
    }
    let lines: Vec<&str> = input.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    // Counted from 1, and the first line is the opening mark. A heredoc's own line does not count.
    let mut rest = Rest { lines: body(&lines)?, number: 2 };
    let mut hunks = Vec::new();
    while let Some(header) = rest.first() {
        hunks.push(hunk(header, &mut rest)?);
    }
    if hunks.is_empty() { Err(ParseError::NoHunks) } else { Ok(hunks) }
}

/// Returns the lines between the marks.
fn body<'l, 'a>(lines: &'l [&'a str]) -> Result<&'l [&'a str], ParseError> {
    match marked(lines) {
        Ok(body) => Ok(body),
        Err(error) => match lines {
            ["<<EOF" | "<<'EOF'" | "<<\"EOF\"", inner @ .., last]
                if inner.len() >= 2 && last.ends_with("EOF") =>
            {
                marked(inner)
            }
            _ => Err(error),
        },
    }
}

fn marked<'l, 'a>(lines: &'l [&'a str]) -> Result<&'l [&'a str], ParseError> {
    match lines {
        [first, ..] if first.trim() != BEGIN => Err(ParseError::NoBegin),
        [_, body @ .., last] if last.trim() == END => Ok(body),
        _ => Err(ParseError::NoEnd),
    }
}

/// The lines that are not read yet.
struct Rest<'l, 'a> {
    lines: &'l [&'a str],
    /// Number of the first of these lines.
    number: usize,
}

impl<'a> Rest<'_, 'a> {
    fn first(&self) -> Option<&'a str> {
        self.lines.first().copied()
    }

    fn skip(&mut self) {
        if let [_, rest @ ..] = self.lines {
            self.lines = rest;
            self.number += 1;
        }
    }

    fn skip_blank(&mut self) {
        while self.first().is_some_and(|line| line.trim().is_empty()) {
            self.skip();
        }
    }

    /// The next line if `read` can make something of it.
    fn take_if<T>(&mut self, read: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let found = read(self.first()?)?;
        self.skip();
        Some(found)
    }
}

fn hunk<'a>(header: &'a str, rest: &mut Rest<'_, 'a>) -> Result<Hunk<'a>, ParseError> {
    let number = rest.number;
    let wrong = |problem| ParseError::Hunk { line: number, problem };
    // Unusual spaces at the end belong to the name.
    let named = header.trim_start().trim_ascii_end();
    rest.skip();
    if let Some(path) = named.strip_prefix(ADD) {
        let mut content = String::new();
        while let Some(line) = rest.take_if(|line| line.strip_prefix('+')) {
            content.push_str(line);
            content.push('\n');
        }
        return Ok(Hunk::Add { path, content });
    }
    if let Some(path) = named.strip_prefix(DELETE) {
        return Ok(Hunk::Delete { path });
    }
    let Some(path) = named.strip_prefix(UPDATE) else {
        return Err(wrong(HunkProblem::Header(header.to_owned())));
    };
    let move_to = rest.take_if(|line| line.trim_start().trim_ascii_end().strip_prefix(MOVE));
    let mut chunks = Vec::new();
    rest.skip_blank();
    while rest.first().is_some_and(|line| !line.starts_with("***")) {
        chunks.push(chunk(rest, chunks.is_empty())?);
        rest.skip_blank();
    }
    if chunks.is_empty() {
        return Err(wrong(HunkProblem::EmptyUpdate(path.to_owned())));
    }
    Ok(Hunk::Update { path, move_to, chunks })
}

/// Reads one chunk. Only the first of an update may lack the `@@` line.
fn chunk<'a>(rest: &mut Rest<'_, 'a>, is_first: bool) -> Result<PatchChunk<'a>, ParseError> {
    let wrong = |line, problem| Err(ParseError::Hunk { line, problem });
    let marker = rest.take_if(|line| match line {
        "@@" => Some(None),
        line => line.strip_prefix("@@ ").map(Some),
    });
    if let (None, false, Some(line)) = (marker, is_first, rest.first()) {
        return wrong(rest.number, HunkProblem::NoMarker(line.to_owned()));
    }
    let mut chunk = PatchChunk { context: marker.flatten(), ..PatchChunk::default() };
    while let Some(line) = rest.take_if(line) {
        chunk.lines.push(line);
    }
    match rest.first() {
        Some(END_OF_FILE) if !chunk.lines.is_empty() => {
            rest.skip();
            chunk.is_end_of_file = true;
        }
        Some(END_OF_FILE) | None if chunk.lines.is_empty() => {
            return wrong(rest.number, HunkProblem::NoLines);
        }
        Some(line) if chunk.lines.is_empty() => {
            return wrong(rest.number, HunkProblem::Unexpected(line.to_owned()));
        }
        Some(_) | None => {}
    }
    Ok(chunk)
}

/// A marked line; an empty one is an empty line of context.
fn line(line: &str) -> Option<PatchLine<'_>> {
    let mut chars = line.chars();
    match chars.next() {
        None => Some(PatchLine::Keep("")),
        Some(' ') => Some(PatchLine::Keep(chars.as_str())),
        Some('-') => Some(PatchLine::Remove(chars.as_str())),
        Some('+') => Some(PatchLine::Add(chars.as_str())),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
