//! Signal: plain words, and where which style begins and how long it is (spec `channels.md` §4.2).

use super::super::pieces::pieces;
use super::super::styled::{Style, Styled};
use super::super::{MarkdownFeatures, TableMode};
use super::flatten::flattened;
use crate::text::{LengthUnit, Limit};

/// Markdown features for Signal.
pub const SIGNAL: MarkdownFeatures =
    MarkdownFeatures { tables: TableMode::Bullets, autolinks: false, angle_links: true, spoilers: true };

/// A message of Signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalText {
    /// The words.
    pub text: String,
    /// Style ranges, by position.
    pub styles: Vec<SignalStyle>,
}

/// A style of Signal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignalStyle {
    /// Start in UTF-16 units.
    pub start: usize,
    /// Length in UTF-16 units.
    pub length: usize,
    /// `BOLD`, `ITALIC`, `STRIKETHROUGH`, `MONOSPACE` or `SPOILER`.
    pub name: &'static str,
}

impl SignalStyle {
    /// Returns the style in the form of the daemon: `start:length:STYLE`.
    pub fn to_wire(&self) -> String {
        format!("{}:{}:{}", self.start, self.length, self.name)
    }
}

/// The messages of a text.
pub fn signal(styled: &Styled, limit: Limit) -> Vec<SignalText> {
    pieces(&flattened(styled), limit).iter().map(message).collect()
}

fn message(piece: &Styled) -> SignalText {
    let units = |range| LengthUnit::Utf16.len(piece.text.get(range).unwrap_or_default());
    let style = |span: &super::super::Span| {
        let name = name(&span.style)?;
        let start = units(0..span.range.start);
        Some(SignalStyle { start, length: units(span.range.clone()), name })
    };
    let mut styles: Vec<SignalStyle> = piece.spans.iter().filter_map(style).collect();
    styles.sort();
    styles.dedup();
    SignalText { text: piece.text.clone(), styles }
}

fn name(style: &Style) -> Option<&'static str> {
    match style {
        Style::Bold => Some("BOLD"),
        Style::Italic => Some("ITALIC"),
        Style::Strikethrough => Some("STRIKETHROUGH"),
        Style::Code | Style::CodeBlock(_) => Some("MONOSPACE"),
        Style::Spoiler => Some("SPOILER"),
        Style::Heading | Style::Quote | Style::Link(_) => None,
    }
}
