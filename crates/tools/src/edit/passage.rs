//! Finding the one passage that is meant, and putting another in its place.

use memchr::memmem::Finder;

use super::fold::{Fold, Folded};

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Reason why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditError {
    NotFound,
    Ambiguous(usize),
    NoChange,
    NotText,
}

/// `file` with `new` in the place of `old`. Every byte outside the passage stays; the passage takes the file's line ends.
pub(super) fn replace(file: &[u8], old: &str, new: &str) -> Result<Vec<u8>, EditError> {
    let body = file.strip_prefix(BOM).unwrap_or(file);
    let bom = file.len() - body.len();
    let old = old.strip_prefix('\u{feff}').unwrap_or(old);
    let new = new.strip_prefix('\u{feff}').unwrap_or(new);
    let found = match find(body, old, Fold::LineEnds) {
        Err(EditError::NotFound) => find(body, old, Fold::Typography)?,
        found => found?,
    };
    let (Some(before), Some(passage), Some(after)) =
        (file.get(..bom + found.start), body.get(found.clone()), body.get(found.end..))
    else {
        return Err(EditError::NotFound);
    };
    let new = new.replace("\r\n", "\n");
    let new = if has_crlf(passage).or_else(|| has_crlf(body)) == Some(true) {
        new.replace('\n', "\r\n")
    } else {
        new
    };
    if passage == new.as_bytes() {
        return Err(EditError::NoChange);
    }
    Ok([before, new.as_bytes(), after].concat())
}

/// The bytes of the only occurrence of `old`. Overlapping ones count: either could be meant. Takes time in proportion to the
/// file, whatever repeats in it: occurrences are counted as far as they stand side by side.
fn find(body: &[u8], old: &str, fold: Fold) -> Result<std::ops::Range<usize>, EditError> {
    let (text, old) = (Folded::of(body, fold), Folded::of(old.as_bytes(), fold).text);
    let Some(step) = old.chars().next().map(char::len_utf8) else { return Err(EditError::NotFound) };
    let finder = Finder::new(&old);
    let first = finder.find(text.text.as_bytes()).ok_or(EditError::NotFound)?;
    let behind = text.text.as_bytes().get(first + step..).unwrap_or_default();
    if finder.find(behind).is_some() {
        let side_by_side = finder.find_iter(text.text.as_bytes()).count();
        return Err(EditError::Ambiguous(side_by_side.max(2)));
    }
    text.source(first..first + old.len()).ok_or(EditError::NotText)
}

/// Returns true if the first line ends with `\r\n`; `None` if there is no line end.
fn has_crlf(bytes: &[u8]) -> Option<bool> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some(bytes.get(..end).is_some_and(|line| line.ends_with(b"\r")))
}

#[cfg(test)]
mod tests;
