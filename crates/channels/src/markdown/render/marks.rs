//! Writes spans as pairs of marks, so that they nest whatever they cover.

use std::borrow::Cow;

use super::super::styled::{Span, Style, Styled};

/// Marks before and after a span.
pub type Marks<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The text with marks around its spans. `marks` tells those of a style, if it has any; `write`
/// puts down words, in code or not. If spans cross, the inner one is closed and opened again.
pub fn render<'a>(
    styled: &'a Styled,
    marks: impl Fn(&'a Style) -> Option<Marks<'a>>,
    write: impl Fn(&mut String, &str, bool),
) -> String {
    let marked = styled.spans.iter().filter_map(|span| Some((span, marks(&span.style)?)));
    let mut coming: Vec<(&Span, Marks<'_>)> = marked.filter(|(span, _)| !span.range.is_empty()).collect();
    coming.sort_by(|(a, _), (b, _)| (a.range.start, b.range.end).cmp(&(b.range.start, a.range.end)));
    let mut places: Vec<usize> =
        coming.iter().flat_map(|(span, _)| [span.range.start, span.range.end]).collect();
    places.extend([0, styled.text.len()]);
    places.sort_unstable();
    places.dedup();
    let mut out = String::with_capacity(styled.text.len() + 16);
    let mut open: Vec<(&Span, Marks<'_>)> = Vec::new();
    let mut coming = coming.into_iter().peekable();
    for (index, &at) in places.iter().enumerate() {
        let mut again = close_until(at, &mut open, &mut out);
        again.extend(std::iter::from_fn(|| coming.next_if(|(span, _)| span.range.start == at)));
        for (span, marks) in again {
            out.push_str(&marks.0);
            open.push((span, marks));
        }
        let Some(next) = places.get(index + 1) else { break };
        let is_code = open.iter().any(|(span, _)| span.style.is_code());
        write(&mut out, styled.text.get(at..*next).unwrap_or_default(), is_code);
    }
    out
}

/// Closes what ends here, and what stands inside of it; that goes on and is given back.
fn close_until<'s, 'a>(
    at: usize,
    open: &mut Vec<(&'s Span, Marks<'a>)>,
    out: &mut String,
) -> Vec<(&'s Span, Marks<'a>)> {
    let Some(first) = open.iter().position(|(span, _)| span.range.end <= at) else { return Vec::new() };
    let mut again = Vec::new();
    for (span, marks) in open.drain(first..).rev() {
        out.push_str(&marks.1);
        if span.range.end > at {
            again.push((span, marks));
        }
    }
    again.reverse();
    again
}

/// Adapts to markup that allows no line breaks or blanks at the ends of its marks: spans are cut at
/// line breaks, without the blanks at their ends. Code blocks and quotations stay.
pub(super) fn per_line(styled: &Styled) -> Styled {
    let mut spans = Vec::with_capacity(styled.spans.len());
    for span in &styled.spans {
        if matches!(span.style, Style::CodeBlock(_) | Style::Quote) {
            spans.push(span.clone());
            continue;
        }
        let mut start = span.range.start;
        for line in styled.text.get(span.range.clone()).unwrap_or_default().split('\n') {
            let from = start + line.len() - line.trim_start().len();
            let range = from..from + line.trim().len();
            if !range.is_empty() {
                spans.push(Span { range, style: span.style.clone() });
            }
            start += line.len() + 1;
        }
    }
    Styled { text: styled.text.clone(), spans }
}

/// Stands for the `>` of a quotation until everything else is escaped. No text has it: Unicode keeps it for uses like this one.
const QUOTE: char = '\u{FDD1}';

/// A rendered text with the marks of its quotations.
pub(super) fn with_quote_marks(rendered: &str) -> String {
    rendered.replace(QUOTE, ">")
}

/// Puts `> ` before every line of quotations; code blocks in them are left as they are.
pub(super) fn quoted(styled: &Styled) -> Styled {
    let code = styled.code_blocks();
    let mut places: Vec<(usize, Cow<'_, str>)> = Vec::new();
    for quote in styled.spans.iter().filter(|span| span.style == Style::Quote) {
        let mut start = quote.range.start;
        for line in styled.text.get(quote.range.clone()).unwrap_or_default().split_inclusive('\n') {
            if !code.iter().any(|code| code.contains(&start)) {
                places.push((start, Cow::Owned(format!("{QUOTE} "))));
            }
            start += line.len();
        }
    }
    places.sort_by_key(|(at, _)| *at);
    places.dedup_by_key(|(at, _)| *at);
    styled.with_inserted(&places)
}
