//! What people read of a page: its article, or all of it where none is found.

use dom_smoothie::{Config, Readability, TextMode};

use super::html::{self, Bounds, Parsed};
use super::parameters::PageFormat;
use super::plain;
use super::stop::StopSignal;
use super::tame::tame;
use super::weight::{self, HEAVIEST};

/// What is never read.
const UNREAD: &str =
    "script, style, noscript, template, svg, iframe, object, nav, [hidden], [aria-hidden=\"true\"]";

/// Characters of a title that are given.
const MAX_TITLE: usize = 1000;

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Readable {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Whether only its beginning was read.
    pub(super) is_cut: bool,
    /// Whether it is the words of the whole page because more would have taken too long.
    pub(super) is_plain: bool,
}

/// The article of the page at this address.
pub(super) fn article(page: &str, url: &str, mode: PageFormat, stop: &StopSignal) -> Readable {
    let parsed = html::parse(page, Bounds::default(), stop);
    tame(&parsed.document, stop);
    if weight::weight(&parsed.document, url, stop).is_none_or(|weight| weight > HEAVIEST) {
        return words(&parsed, stop);
    }
    let Parsed { document, is_cut } = parsed;
    let config = Config {
        text_mode: match mode {
            PageFormat::Markdown => TextMode::Markdown,
            PageFormat::Text => TextMode::Formatted,
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
        is_plain: false,
    });
    found.filter(|found| !found.text.is_empty()).unwrap_or_else(|| whole(page, mode, stop))
}

/// All that can be read of a page that is not too heavy. Parsed anew: looking for an article takes a page apart.
pub(super) fn whole(page: &str, mode: PageFormat, stop: &StopSignal) -> Readable {
    let parsed = html::parse(page, Bounds::default(), stop);
    if stop.is_over() {
        return words(&parsed, stop);
    }
    let Parsed { document, is_cut } = parsed;
    let title = line(&document.select("title").text());
    document.select(UNREAD).remove();
    let body = document.select("body");
    let text = body.nodes().first().map(|body| match mode {
        PageFormat::Markdown => body.md(None),
        PageFormat::Text => body.formatted_text(),
    });
    let text = text.map(|text| text.trim().to_owned()).unwrap_or_default();
    Readable { title, text, is_cut, is_plain: false }
}

/// The words of a page, in one pass.
fn words(parsed: &Parsed, stop: &StopSignal) -> Readable {
    let (text, is_all) = plain::text(&parsed.document, stop);
    let title = line(&parsed.document.select_single("title").text());
    Readable { title, text, is_cut: parsed.is_cut || !is_all, is_plain: true }
}

/// The beginning of a text on one line, if there is any.
fn line(text: &str) -> Option<String> {
    let line = text.split_whitespace().take(MAX_TITLE).collect::<Vec<_>>().join(" ");
    Some(line.chars().take(MAX_TITLE).collect::<String>()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
