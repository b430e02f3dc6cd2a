//! Words, and how they look.

use std::borrow::Cow;
use std::ops::Range;

/// Style of a stretch of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Style {
    /// Bold.
    Bold,
    /// Italic.
    Italic,
    /// Struck through.
    Strikethrough,
    /// Code in a line.
    Code,
    /// Lines of code, and their language if it is told.
    CodeBlock(Option<String>),
    /// Hidden until it is asked for.
    Spoiler,
    /// A heading.
    Heading,
    /// A quotation.
    Quote,
    /// A link to this address.
    Link(String),
}

impl Style {
    /// Returns true if the text is taken literally.
    pub fn is_code(&self) -> bool {
        matches!(self, Self::Code | Self::CodeBlock(_))
    }
}

/// A stretch of text that looks so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Range in bytes.
    pub range: Range<usize>,
    /// Style of the range.
    pub style: Style,
}

/// A text with its looks. Spans of which one lies in the other stand with the outer one first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Styled {
    /// The words.
    pub text: String,
    /// Styled ranges.
    pub spans: Vec<Span>,
}

impl Styled {
    /// A part of it.
    #[must_use]
    pub fn slice(&self, part: Range<usize>) -> Self {
        let cut = |span: &Span| {
            let range = span.range.start.max(part.start)..span.range.end.min(part.end);
            let moved = || range.start - part.start..range.end - part.start;
            (range.start < range.end).then(|| Span { range: moved(), style: span.style.clone() })
        };
        Self {
            text: self.text.get(part.clone()).unwrap_or_default().to_owned(),
            spans: self.spans.iter().filter_map(cut).collect(),
        }
    }

    /// Appends another one.
    pub fn push(&mut self, other: &Self) {
        let offset = self.text.len();
        self.text.push_str(&other.text);
        self.spans.extend(other.spans.iter().map(|span| Span {
            range: span.range.start + offset..span.range.end + offset,
            style: span.style.clone(),
        }));
    }

    /// Appends words of one look.
    pub fn push_as(&mut self, text: &str, style: Style) {
        let start = self.text.len();
        self.text.push_str(text);
        self.spans.push(Span { range: start..self.text.len(), style });
    }

    /// Returns the ranges of code blocks, in order.
    pub fn code_blocks(&self) -> Vec<Range<usize>> {
        let blocks = self.spans.iter().filter(|span| matches!(span.style, Style::CodeBlock(_)));
        blocks.map(|span| span.range.clone()).collect()
    }

    /// Returns the same text with other styles; `None` removes one.
    #[must_use]
    pub fn restyled(&self, style: impl Fn(&Style) -> Option<Style>) -> Self {
        let spans = self.spans.iter();
        let spans =
            spans.filter_map(|span| Some(Span { range: span.range.clone(), style: style(&span.style)? }));
        Self { text: self.text.clone(), spans: spans.collect() }.normalised()
    }

    /// Removes spans that have no effect: empty ones, and those that lie in one of the same style.
    #[must_use]
    pub fn normalised(mut self) -> Self {
        self.spans.retain(|span| !span.range.is_empty());
        self.spans.sort_by(|a, b| (a.range.start, b.range.end).cmp(&(b.range.start, a.range.end)));
        let mut kept: Vec<Span> = Vec::with_capacity(self.spans.len());
        // The last ends by style: a span that starts before that of its own style says nothing beyond it.
        let mut ends: std::collections::HashMap<Style, (usize, usize)> = std::collections::HashMap::new();
        for span in self.spans {
            match ends.get_mut(&span.style) {
                Some((at, end)) if span.range.start < *end => {
                    *end = span.range.end.max(*end);
                    if let Some(outer) = kept.get_mut(*at) {
                        outer.range.end = *end;
                    }
                }
                _ => {
                    ends.insert(span.style.clone(), (kept.len(), span.range.end));
                    kept.push(span);
                }
            }
        }
        self.spans = kept;
        self
    }

    /// Inserts words at places in order; they have no style, unless they stand inside of one.
    #[must_use]
    pub fn with_inserted(&self, inserted: &[(usize, Cow<'_, str>)]) -> Self {
        let mut text = String::with_capacity(self.text.len());
        let mut from = 0;
        for (at, words) in inserted {
            text.push_str(self.text.get(from..*at).unwrap_or_default());
            text.push_str(words);
            from = *at;
        }
        text.push_str(self.text.get(from..).unwrap_or_default());
        let mut before = Vec::with_capacity(inserted.len() + 1);
        before.push(0);
        for (_, words) in inserted {
            before.push(before.last().copied().unwrap_or(0) + words.len());
        }
        let shift = |count: usize| before.get(count).copied().unwrap_or(0);
        let start = |at: usize| at + shift(inserted.partition_point(|(place, _)| *place <= at));
        let end = |at: usize| at + shift(inserted.partition_point(|(place, _)| *place < at));
        let spans = self.spans.iter().map(|span| Span {
            range: start(span.range.start)..end(span.range.end),
            style: span.style.clone(),
        });
        Self { text, spans: spans.collect() }
    }

    /// Removes stretches, given in order.
    #[must_use]
    pub fn without(&self, removed: &[Range<usize>]) -> Self {
        let mut text = String::with_capacity(self.text.len());
        let mut from = 0;
        // Start of each stretch, and the number of bytes removed before it.
        let mut gone = Vec::with_capacity(removed.len());
        let mut sum = 0;
        for range in removed {
            text.push_str(self.text.get(from..range.start).unwrap_or_default());
            from = range.end;
            gone.push((range.clone(), sum));
            sum += range.len();
        }
        text.push_str(self.text.get(from..).unwrap_or_default());
        let moved = |at: usize| match gone.partition_point(|(range, _)| range.start < at) {
            0 => at,
            count => gone
                .get(count - 1)
                .map_or(at, |(range, before)| at - before - range.len().min(at - range.start)),
        };
        let spans = self.spans.iter().map(|span| Span {
            range: moved(span.range.start)..moved(span.range.end),
            style: span.style.clone(),
        });
        Self { text, spans: spans.collect() }
    }
}
