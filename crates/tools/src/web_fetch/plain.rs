//! The text of a page in one pass, without format: for pages that are too heavy for more.

use dom_query::{Document, Element, NodeData};

use super::stop::StopSignal;
use super::walk::{Side, walk};

/// Elements that begin and end a line.
const LINES: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];
/// Elements that are never read.
const UNREAD: &[&str] =
    &["head", "title", "script", "style", "noscript", "template", "svg", "iframe", "object", "nav"];

/// The text as far as it was read, and whether that was all of it.
pub(super) fn text(document: &Document, stop: &StopSignal) -> (String, bool) {
    let mut text = String::new();
    let is_done = walk(document.root(), stop, |node, side, _| {
        let inside = node.query(|node| match &node.data {
            NodeData::Text { contents } if side == Side::Begin => {
                push_words(&mut text, contents);
                false
            }
            NodeData::Element(element) => {
                let name = &*element.name.local;
                if LINES.contains(&name) {
                    end_line(&mut text);
                } else if matches!(name, "td" | "th") {
                    end_word(&mut text);
                }
                !is_unread(element)
            }
            _ => true,
        });
        inside.unwrap_or(false)
    });
    (text.trim().to_owned(), is_done)
}

fn is_unread(element: &Element) -> bool {
    UNREAD.contains(&&*element.name.local)
        || element.attrs.iter().any(|attr| match &*attr.name.local {
            "hidden" => true,
            "aria-hidden" => &*attr.value == "true",
            _ => false,
        })
}

fn push_words(text: &mut String, words: &str) {
    if words.starts_with(char::is_whitespace) {
        end_word(text);
    }
    let mut is_first = true;
    for word in words.split_whitespace() {
        if !is_first {
            text.push(' ');
        }
        is_first = false;
        text.push_str(word);
    }
    if words.ends_with(char::is_whitespace) {
        end_word(text);
    }
}

fn end_word(text: &mut String) {
    if !text.is_empty() && !text.ends_with([' ', '\n']) {
        text.push(' ');
    }
}

fn end_line(text: &mut String) {
    if text.ends_with(' ') {
        text.pop();
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests;
