//! Addresses in running text. Only those with a scheme: `README.md` is a file, not a page.

use std::ops::Range;

/// Longer ones are no links that platforms take.
const MAX_ADDRESS: usize = 2048;
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// Returns the ranges of addresses in a text.
pub(super) fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find("http")).map(|at| from + at) {
        let rest = text.get(start..).unwrap_or_default();
        let scheme = SCHEMES.iter().find(|scheme| rest.starts_with(**scheme));
        let is_word = text
            .get(..start)
            .and_then(|before| before.chars().next_back())
            .is_some_and(char::is_alphanumeric);
        let len = scheme.filter(|_| !is_word).map_or(0, |scheme| address_len(rest, scheme.len()));
        if len > 0 {
            found.push(start..start + len);
        }
        from = start + len.max(4);
    }
    found
}

/// Returns the length of the address at the start of a text; 0 if nothing follows the scheme, or
/// too much. Punctuation at the end of a sentence does not belong to it, nor does a bracket that
/// was opened before it.
fn address_len(text: &str, scheme: usize) -> usize {
    let text = text.get(..text.floor_char_boundary(MAX_ADDRESS + 1)).unwrap_or_default();
    let is_end = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`');
    let mut address = text.get(..text.find(is_end).unwrap_or(text.len())).unwrap_or_default();
    let more = |closing: char, opening: char| {
        address.matches(closing).count().saturating_sub(address.matches(opening).count())
    };
    let (mut round, mut square) = (more(')', '('), more(']', '['));
    while let Some(last) = address.chars().next_back() {
        let brackets = match last {
            ')' => Some(&mut round),
            ']' => Some(&mut square),
            _ => None,
        };
        let is_dropped = match brackets {
            Some(0) => false,
            Some(too_many) => {
                *too_many -= 1;
                true
            }
            None => matches!(last, '.' | ',' | ':' | ';' | '!' | '?' | '\'' | '*' | '_' | '~' | '|'),
        };
        if !is_dropped {
            break;
        }
        address = address.get(..address.len() - last.len_utf8()).unwrap_or_default();
    }
    if (scheme + 1..=MAX_ADDRESS).contains(&address.len()) { address.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_with_a_scheme_are_links() {
        let rows: [(&str, &[&str]); 10] = [
            ("see https://a.b/c?d=1&e=2.", &["https://a.b/c?d=1&e=2"]),
            ("(https://a.b/c) and http://x", &["https://a.b/c", "http://x"]),
            ("https://en.wikipedia.org/wiki/Rust_(game)", &["https://en.wikipedia.org/wiki/Rust_(game)"]),
            ("https:// http://", &[]),
            ("([https://a.b/c]).", &["https://a.b/c"]),
            ("https://a.b/(c[d].)]).", &["https://a.b/(c[d].)"]),
            ("README.md example.com a@b.co", &[]),
            ("xhttps://a.b", &[]),
            ("http https httpshttps://a.b", &[]),
            ("\"https://a.b\"", &["https://a.b"]),
        ];
        for (text, expect) in rows {
            let found: Vec<&str> = addresses(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expect, "{text}");
        }
    }
}
