//! WhatsApp's markup (spec `channels.md` §4.2).

use super::super::pieces::rendered_pieces;
use super::super::styled::{Style, Styled};
use super::super::{MarkdownFeatures, TableMode};
use super::flatten::flattened;
use super::marks::{self, Marks};
use crate::text::Limit;

/// Markdown features for WhatsApp.
pub const WHATSAPP: MarkdownFeatures =
    MarkdownFeatures { tables: TableMode::Bullets, autolinks: false, angle_links: true, spoilers: false };

/// The messages of a text, none longer with its marks than so many characters.
pub fn whatsapp(styled: &Styled, limit: Limit) -> Vec<String> {
    let rendered_limit = if limit.is_unlimited() { usize::MAX } else { limit.units() };
    let flat = flattened(styled);
    rendered_pieces(&flat, limit, rendered_limit, &message).into_iter().map(|(_, text)| text).collect()
}

fn message(piece: &Styled) -> String {
    let bold = |style: &Style| match style {
        Style::Heading => Some(Style::Bold),
        other => Some(other.clone()),
    };
    let piece = marks::quoted(&marks::per_line(&piece.restyled(bold)));
    marks::with_quote_marks(&marks::render(&piece, mark, |out, words, _| out.push_str(words)))
}

fn mark(style: &Style) -> Option<Marks<'_>> {
    let both = |mark: &'static str| Some((mark.into(), mark.into()));
    match style {
        Style::Bold => both("*"),
        Style::Italic => both("_"),
        Style::Strikethrough => both("~"),
        Style::Code => both("`"),
        Style::CodeBlock(_) => both("```"),
        Style::Spoiler | Style::Heading | Style::Quote | Style::Link(_) => None,
    }
}
