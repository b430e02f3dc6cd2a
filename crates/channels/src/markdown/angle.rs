//! HTML in Markdown is shown, not taken as such: to the parser of Markdown a `<` is a letter that means nothing.

use std::borrow::Cow;

/// Placeholder for a `<`. No text has it: Unicode keeps it for uses like this one.
const MASK: char = '\u{FDD0}';

/// The text with every `<` masked that does not begin a link.
pub(super) fn mask(text: &str, keeps_links: bool) -> Cow<'_, str> {
    if !text.contains(['<', MASK]) {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            '<' if keeps_links && is_link(text, at) => masked.push('<'),
            '<' => masked.push(MASK),
            MASK => {}
            other => masked.push(other),
        }
    }
    Cow::Owned(masked)
}

/// The words as they were written.
pub(super) fn unmask(text: &str) -> Cow<'_, str> {
    if text.contains(MASK) { Cow::Owned(text.replace(MASK, "<")) } else { Cow::Borrowed(text) }
}

/// Returns true if this is the `<` of `<https://…>`, `<a@b.c>` or `[…](<…>)`.
fn is_link(text: &str, at: usize) -> bool {
    let (before, rest) = text.split_at(at);
    if before.ends_with("](") {
        return true;
    }
    let inside = rest.get(1..).unwrap_or_default();
    let end = inside.find(|c: char| c.is_whitespace() || c == '<' || c == '>');
    let Some(address) = end.filter(|end| inside.get(*end..).is_some_and(|rest| rest.starts_with('>'))) else {
        return false;
    };
    let address = inside.get(..address).unwrap_or_default();
    let is_scheme = |name: &str| {
        name.len() >= 2
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'))
    };
    address.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
        || address.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
}
