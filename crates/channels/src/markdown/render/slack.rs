//! Slack's mrkdwn (spec `channels.md` §4.2).

use super::super::pieces::rendered_pieces;
use super::super::styled::{Style, Styled};
use super::super::{MarkdownFeatures, TableMode};
use super::flatten::is_called_so;
use super::marks::{self, Marks};
use crate::text::Limit;

/// Markdown features for Slack. Tokens such as `<@U123>` stay as they are written.
pub const SLACK: MarkdownFeatures =
    MarkdownFeatures { tables: TableMode::Code, autolinks: false, angle_links: false, spoilers: false };

/// Prefixes of tokens that Slack understands.
const TOKENS: [&str; 8] = ["@", "#", "!", "mailto:", "tel:", "http://", "https://", "slack://"];

/// Bytes of a link's address; longer ones are no link that Slack takes, and fill a message by themselves.
const MAX_ADDRESS: usize = 2048;

/// The messages of a text, none longer when it is rendered than so many characters.
pub fn slack(styled: &Styled, limit: Limit) -> Vec<String> {
    let rendered_limit = if limit.is_unlimited() { usize::MAX } else { limit.units() };
    rendered_pieces(styled, limit, rendered_limit, &message).into_iter().map(|(_, text)| text).collect()
}

fn message(piece: &Styled) -> String {
    let bold = |style: &Style| match style {
        Style::Heading => Some(Style::Bold),
        other => Some(other.clone()),
    };
    let piece = marks::quoted(&marks::per_line(&piece.restyled(bold)));
    let piece = without_bare_links(&piece);
    marks::with_quote_marks(&marks::render(&piece, mark, escape))
}

fn mark(style: &Style) -> Option<Marks<'_>> {
    let both = |mark: &'static str| Some((mark.into(), mark.into()));
    match style {
        Style::Bold => both("*"),
        Style::Italic => both("_"),
        Style::Strikethrough => both("~"),
        Style::Code => both("`"),
        Style::CodeBlock(_) => Some(("```\n".into(), "```".into())),
        Style::Link(address) if address.len() > MAX_ADDRESS => None,
        Style::Link(address) => Some((format!("<{}|", address_text(address)).into(), ">".into())),
        Style::Spoiler | Style::Heading | Style::Quote => None,
    }
}

/// Slack makes links of addresses by itself.
fn without_bare_links(piece: &Styled) -> Styled {
    let is_needed = |span: &&super::super::Span| match &span.style {
        Style::Link(address) => {
            !is_called_so(piece.text.get(span.range.clone()).unwrap_or_default(), address)
        }
        _ => true,
    };
    Styled { text: piece.text.clone(), spans: piece.spans.iter().filter(is_needed).cloned().collect() }
}

fn address_text(address: &str) -> String {
    address.replace('&', "&amp;").replace('<', "%3C").replace('>', "%3E").replace('|', "%7C")
}

fn escape(out: &mut String, words: &str, is_code: bool) {
    let mut rest = words;
    while let Some(at) = rest.find(['&', '<', '>']) {
        let (before, special) = rest.split_at(at);
        out.push_str(before);
        if let Some(token) = token(special).filter(|_| !is_code) {
            out.push_str(token);
            rest = special.get(token.len()..).unwrap_or_default();
            continue;
        }
        out.push_str(match special.as_bytes().first() {
            Some(b'&') => "&amp;",
            Some(b'<') => "&lt;",
            _ => "&gt;",
        });
        rest = special.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// The token that a text begins with, brackets included.
fn token(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let end = inside
        .find(['<', '>', '\n'])
        .filter(|end| inside.get(*end..).is_some_and(|rest| rest.starts_with('>')))?;
    let body = inside.get(..end)?;
    let is_known = TOKENS.iter().any(|start| body.starts_with(start) && body.len() > start.len());
    is_known.then(|| text.get(..end + 2)).flatten()
}
