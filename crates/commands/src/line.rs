//! Cutting a directive out of a message. A directive stands on one line. What is left of that line has its blanks collapsed;
//! other lines stay as they were written, so that a pasted program survives.

/// Result of a search in a line: the place in the line, and the value that was read.
pub(crate) struct Hit<T> {
    /// Bytes of the line, without the blank before them.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) value: T,
}

/// Cuts everything out of a text that `find` finds in its lines, from the left. Returns the first
/// find and the rest of the text; `None` if nothing is found.
pub(crate) fn cut<T>(text: &str, find: impl Fn(&str) -> Option<Hit<T>>) -> Option<(T, String)> {
    let (found, left) = cut_all(text, find)?;
    Some((found.into_iter().next()?, left))
}

/// Cuts like [`cut`], and returns all finds.
pub(crate) fn cut_all<T>(text: &str, find: impl Fn(&str) -> Option<Hit<T>>) -> Option<(Vec<T>, String)> {
    let mut found = Vec::new();
    let mut left: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let Some(hit) = find(line) else {
            left.push(line.to_owned());
            continue;
        };
        let mut rest = without(line, &hit);
        found.push(hit.value);
        while let Some(more) = find(&rest) {
            rest = without(&rest, &more);
            found.push(more.value);
        }
        if !rest.is_empty() {
            left.push(rest);
        }
    }
    (!found.is_empty()).then(|| (found, left.join("\n").trim().to_owned()))
}

/// A line without a hit, its blanks collapsed.
fn without<T>(line: &str, hit: &Hit<T>) -> String {
    let before = line.get(..hit.from).unwrap_or_default();
    let behind = line.get(hit.to..).unwrap_or_default();
    before.split_whitespace().chain(behind.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Finds the slashes of a line that begin a word; yields the text behind each, with the slash's
/// position in bytes.
pub(crate) fn slashes(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices('/').filter_map(|(at, _)| {
        let before = line.get(..at)?;
        let begins = before.chars().next_back().is_none_or(char::is_whitespace);
        begins.then(|| line.get(at + 1..)).flatten().map(|behind| (at, behind))
    })
}

/// True if the name before this text ends here: at the end, a blank or a colon.
pub(crate) fn ends_name(behind: &str) -> bool {
    behind.chars().next().is_none_or(|next| next.is_whitespace() || next == ':')
}

/// Skips blanks, a colon, and blanks again.
pub(crate) fn skip_colon(text: &str) -> &str {
    let text = text.trim_start();
    text.strip_prefix(':').unwrap_or(text).trim_start()
}
