//! What people read of a page: its article, or all of it where none is found.

use dom_smoothie::{Config, Readability, TextMode};

use super::html::{self, Bounds, Parsed};
use super::parameters::Mode;

/// What is never read.
const UNREAD: &str =
    "script, style, noscript, template, svg, iframe, object, nav, [hidden], [aria-hidden=\"true\"]";

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Readable {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Whether only its beginning was read.
    pub(super) is_cut: bool,
}

/// The article of the page at this address.
pub(super) fn article(page: &str, url: &str, mode: Mode) -> Readable {
    let Parsed { document, is_cut } = html::parse(page, Bounds::default());
    let config = Config {
        text_mode: match mode {
            Mode::Markdown => TextMode::Markdown,
            Mode::Text => TextMode::Formatted,
        },
        // Of the page's own data only the title would be used, and it is elsewhere too.
        disable_json_ld: true,
        ..Config::default()
    };
    let article = Readability::with_document(document, Some(url), Some(config))
        .and_then(|mut readability| readability.parse());
    let found = article.ok().map(|article| Readable {
        title: line(&article.title),
        text: article.text_content.trim().to_owned(),
        is_cut,
    });
    found.filter(|found| !found.text.is_empty()).unwrap_or_else(|| whole(page, mode))
}

/// All that can be read of it. Parsed anew: looking for an article takes a page apart.
pub(super) fn whole(page: &str, mode: Mode) -> Readable {
    let Parsed { document, is_cut } = html::parse(page, Bounds::default());
    let title = line(&document.select("title").text());
    document.select(UNREAD).remove();
    let body = document.select("body");
    let text = body.nodes().first().map(|body| match mode {
        Mode::Markdown => body.md(None),
        Mode::Text => body.formatted_text(),
    });
    Readable { title, text: text.map(|text| text.trim().to_owned()).unwrap_or_default(), is_cut }
}

/// Text on one line, if there is any.
fn line(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
