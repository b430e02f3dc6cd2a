//! Selects the lines of a text that are shown, and the note below them. Memory is bounded by what
//! is shown, not by the file.

use std::io::{self, BufRead};

use openclaw_agent::ToolError;

/// Lines shown at most (spec `tools.md` §2).
const MAX_LINES: usize = 2000;
/// Bytes shown at most (spec `tools.md` §2).
const MAX_BYTES: usize = 50 * 1024;

/// Requested range of lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineRange {
    /// First line, from 1.
    pub(super) offset: usize,
    /// Lines.
    pub(super) limit: Option<usize>,
}

/// Error of reading the file.
#[derive(Debug)]
pub(super) enum ScanError {
    Cancelled,
    Io(io::Error),
}

/// Limit that ended the shown lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowEnd {
    /// The end of the file, or the limit that was asked for.
    AsAsked,
    /// [`MAX_LINES`] or [`MAX_BYTES`].
    Full,
    /// The first line alone is too long; its size in bytes.
    FirstLine(usize),
}

/// Window of lines of a file. Lines are what newlines part: a file that ends with one has an empty
/// last line.
#[derive(Debug)]
pub(super) struct LineWindow {
    ask: LineRange,
    shown: Vec<u8>,
    /// Lines in `shown`.
    lines: usize,
    stop: WindowEnd,
    /// Lines of the file.
    total: usize,
}

/// Reads to the end of the file, because the notes tell how many lines there are.
pub(super) fn cut(
    mut file: impl BufRead,
    ask: LineRange,
    cancelled: impl Fn() -> bool,
) -> Result<LineWindow, ScanError> {
    let mut window = LineWindow { ask, shown: Vec::new(), lines: 0, stop: WindowEnd::AsAsked, total: 0 };
    let mut line = LineBuffer::default();
    loop {
        if cancelled() {
            return Err(ScanError::Cancelled);
        }
        let chunk = file.fill_buf().map_err(ScanError::Io)?;
        if chunk.is_empty() {
            window.take(&line);
            return Ok(window);
        }
        let length = chunk.len();
        let mut parts = chunk.split(|byte| *byte == b'\n');
        if let Some(rest) = parts.next() {
            line.push(rest);
        }
        for part in parts {
            window.take(&line);
            line.clear();
            line.push(part);
        }
        file.consume(length);
    }
}

/// A line being read, kept only as far as it could be shown.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    length: usize,
}

impl LineBuffer {
    fn push(&mut self, part: &[u8]) {
        let room = MAX_BYTES.saturating_sub(self.bytes.len());
        self.bytes.extend(part.iter().take(room));
        self.length += part.len();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.length = 0;
    }
}

impl LineWindow {
    /// Counts one line and shows it if it is wanted and there is room.
    fn take(&mut self, line: &LineBuffer) {
        self.total += 1;
        let wanted = self.total >= self.ask.offset && self.ask.limit.is_none_or(|limit| self.lines < limit);
        if !wanted || self.stop != WindowEnd::AsAsked {
            return;
        }
        let separator = usize::from(self.lines > 0);
        if self.lines == 0 && line.length > MAX_BYTES {
            self.stop = WindowEnd::FirstLine(line.length);
        } else if self.lines == MAX_LINES || self.shown.len() + separator + line.length > MAX_BYTES {
            self.stop = WindowEnd::Full;
        } else {
            self.shown.extend(std::iter::repeat_n(b'\n', separator));
            self.shown.extend(&line.bytes);
            self.lines += 1;
        }
    }

    /// The lines with the note that belongs below them (spec `tools.md` §2, "read notices").
    pub(super) fn render(&self, path: &str) -> Result<String, ToolError> {
        let (first, total) = (self.ask.offset, self.total);
        if first > total {
            let text = format!("Offset {first} is past the end: the file has {total} lines");
            return Err(ToolError::Failed(text));
        }
        let (last, next) = (first + self.lines.saturating_sub(1), first + self.lines);
        let note = match self.stop {
            WindowEnd::AsAsked if next > total => None,
            WindowEnd::AsAsked | WindowEnd::Full => {
                Some(format!("[Lines {first}-{last} of {total}. Go on with offset={next}.]"))
            }
            WindowEnd::FirstLine(length) => {
                return Ok(format!(
                    "[Line {first} has {}; at most {} are shown at a time. Its beginning: sed -n '{first}p' {path} | head -c {MAX_BYTES}]",
                    size(length),
                    size(MAX_BYTES)
                ));
            }
        };
        let shown = String::from_utf8_lossy(&self.shown);
        Ok(match note {
            Some(note) => format!("{shown}\n\n{note}"),
            None => shown.into_owned(),
        })
    }
}

/// `999B`, `50.0KB`, `1.5MB`.
fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let number = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..0x10_0000 => format!("{:.1}KB", number / 1024.0),
        _ => format!("{:.1}MB", number / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests;
