//! Markdown again, for what was made of a table.

use super::super::styled::{Style, Styled};
use super::marks::{self, Marks};

pub(in super::super) fn markdown(styled: &Styled) -> String {
    marks::render(styled, mark, |out, words, _| out.push_str(words))
}

fn mark(style: &Style) -> Option<Marks<'_>> {
    let both = |mark: &'static str| Some((mark.into(), mark.into()));
    match style {
        Style::Bold => both("**"),
        Style::Italic => both("_"),
        Style::Strikethrough => both("~~"),
        Style::Code => both("`"),
        Style::Spoiler => both("||"),
        Style::Link(address) => Some(("[".into(), format!("]({address})").into())),
        Style::CodeBlock(_) | Style::Heading | Style::Quote => None,
    }
}
