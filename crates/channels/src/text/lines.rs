//! Text, cut at every line (spec `streaming.md` §9.3, the variant by line).

use super::grapheme::trim_start;
use super::limit::Limit;
use super::plain::chunk_text;

/// Returns each line that is not blank as a part of its own, trimmed. Blank lines become line
/// breaks before the next one, as far as they fit; those at the end are nothing.
pub fn chunk_lines(text: &str, limit: Limit) -> Vec<String> {
    if limit.is_unlimited() {
        return if text.trim().is_empty() { Vec::new() } else { vec![text.to_owned()] };
    }
    let mut parts = Vec::new();
    let mut blank = 0;
    for line in text.split('\n').map(|line| trim_start(line).trim_end()) {
        if line.is_empty() {
            blank += 1;
            continue;
        }
        let before = "\n".repeat(std::mem::take(&mut blank).min(limit.units() - 1));
        let whole = format!("{before}{line}");
        if limit.fits(&whole) {
            parts.push(whole);
            continue;
        }
        let (first, rest) = line.split_at(limit.minus(before.len()).unwrap_or(limit).prefix(line));
        parts.push(format!("{before}{first}"));
        parts.extend(chunk_text(rest, limit));
    }
    parts
}
