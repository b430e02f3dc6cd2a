//! Tables in Markdown that goes to its platform as it is.

use std::borrow::Cow;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::render::markdown;
use super::{MarkdownFeatures, Style, TableMode, read};

/// The Markdown with its tables in another form; everything else is as it was, byte for byte. Tables in lists and quotations stay.
pub fn convert_tables(text: &str, mode: TableMode) -> Cow<'_, str> {
    if mode == TableMode::Off || !text.contains('|') {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut from = 0;
    let mut depth = 0usize;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Table(_)) if depth == 0 => {
                let table = text.get(range.clone()).unwrap_or_default().trim_end_matches('\n');
                out.push_str(text.get(from..range.start).unwrap_or_default());
                out.push_str(&converted(table, mode));
                from = range.start + table.len();
            }
            Event::Start(Tag::List(_) | Tag::BlockQuote(_)) => depth += 1,
            Event::End(TagEnd::List(_) | TagEnd::BlockQuote(_)) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if from == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

fn converted(table: &str, mode: TableMode) -> String {
    let styled = read(table, MarkdownFeatures::PLAIN.with_tables(mode));
    match styled.spans.first() {
        Some(span) if matches!(span.style, Style::CodeBlock(_)) => format!("```\n{}```", styled.text),
        Some(_) | None => markdown(&styled),
    }
}
