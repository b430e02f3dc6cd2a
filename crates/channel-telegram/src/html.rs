//! Telegram's HTML (spec `channels.md` §4.2, §4.4).
//!
//! Telegram counts a message without its tags, but refuses some whose HTML is longer: both are kept to. Each message comes with the same
//! words without markup, for when Telegram can't read the HTML.

use openclaw_channels::FormattedText;
use openclaw_channels::markdown::render::{marks, plain};
use openclaw_channels::markdown::{MarkdownFeatures, Style, Styled, TableMode, read, rendered_pieces};
use openclaw_channels::text::{ChunkMode, LengthUnit, Limit, paragraphs};
use openclaw_config::registry;

/// Markdown features for Telegram.
pub const TELEGRAM: MarkdownFeatures =
    MarkdownFeatures { tables: TableMode::Code, autolinks: true, angle_links: true, spoilers: true };

/// UTF-16 units of a message's HTML.
pub const RENDERED_LIMIT: usize = 4096;
/// UTF-16 units of a link's address in HTML; longer ones are no link that Telegram takes.
const MAX_ADDRESS: usize = 2048;

/// Settings for cutting answers (chunking).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// UTF-16 units of the words of a message: `channels.telegram.textChunkLimit`. More than [`RENDERED_LIMIT`] is as much as that.
    pub limit: usize,
    /// `channels.telegram.chunkMode`.
    pub mode: ChunkMode,
    /// `channels.telegram.markdown.tables`.
    pub tables: TableMode,
}

impl Default for Cut {
    fn default() -> Self {
        Self {
            limit: registry::TELEGRAM.replies.text_limit,
            mode: ChunkMode::Length,
            tables: TableMode::Code,
        }
    }
}

/// The messages of an answer in Markdown; none is blank.
pub fn messages(markdown: &str, cut: Cut) -> Vec<FormattedText> {
    match cut.mode {
        ChunkMode::Length => of_text(markdown, cut),
        ChunkMode::Newline => paragraphs(markdown).iter().flat_map(|text| of_text(text, cut)).collect(),
    }
}

/// Markdown as one message, however long it is: for captions, which their caller measures, and for edits.
pub fn whole(markdown: &str, tables: TableMode) -> FormattedText {
    let styled = read(markdown, TELEGRAM.with_tables(tables));
    words(&styled, html(&styled))
}

/// Returns the number of UTF-16 units that Telegram counts for a text in Markdown.
pub fn visible_len(markdown: &str, tables: TableMode) -> usize {
    LengthUnit::Utf16.len(&read(markdown, TELEGRAM.with_tables(tables)).text)
}

/// A styled text as HTML.
pub fn html(styled: &Styled) -> String {
    marks::render(styled, tags, |out, words, _| escape(out, words))
}

fn of_text(markdown: &str, cut: Cut) -> Vec<FormattedText> {
    let styled = read(markdown, TELEGRAM.with_tables(cut.tables));
    let limit = if cut.limit == 0 { RENDERED_LIMIT } else { cut.limit.min(RENDERED_LIMIT) };
    let pieces = rendered_pieces(&styled, Limit::utf16(limit), RENDERED_LIMIT, &html);
    pieces.into_iter().map(|(piece, html)| words(&piece, html)).collect()
}

fn words(piece: &Styled, html: String) -> FormattedText {
    let told = plain(piece);
    let fits = LengthUnit::Utf16.len(&told) <= RENDERED_LIMIT;
    FormattedText { plain: if fits { told } else { piece.text.clone() }, formatted: Some(html) }
}

fn tags(style: &Style) -> Option<marks::Marks<'_>> {
    let of = |open: &'static str, close: &'static str| Some((open.into(), close.into()));
    match style {
        Style::Bold => of("<b>", "</b>"),
        Style::Italic => of("<i>", "</i>"),
        Style::Strikethrough => of("<s>", "</s>"),
        Style::Code => of("<code>", "</code>"),
        Style::CodeBlock(None) => of("<pre><code>", "</code></pre>"),
        Style::CodeBlock(Some(language)) => {
            let mut open = String::from("<pre><code class=\"language-");
            escape(&mut open, language);
            open.push_str("\">");
            Some((open.into(), "</code></pre>".into()))
        }
        Style::Spoiler => of("<tg-spoiler>", "</tg-spoiler>"),
        Style::Quote => of("<blockquote>", "</blockquote>"),
        Style::Heading => None,
        Style::Link(address) => {
            let mut open = String::new();
            escape(&mut open, address);
            let is_taken = !address.is_empty() && LengthUnit::Utf16.len(&open) <= MAX_ADDRESS;
            is_taken.then(|| (format!("<a href=\"{}\">", open.replace('"', "&quot;")).into(), "</a>".into()))
        }
    }
}

/// Words in which nothing is formatting.
pub(super) fn literal(text: &str) -> FormattedText {
    let mut formatted = String::new();
    escape(&mut formatted, text);
    FormattedText { plain: text.to_owned(), formatted: Some(formatted) }
}

fn escape(out: &mut String, words: &str) {
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
