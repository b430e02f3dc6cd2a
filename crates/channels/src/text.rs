//! Cuts text into parts that a platform takes (spec `streaming.md` §9, `channels.md` §4.4).
//!
//! [`chunk`] is the door: it cuts plain text or Markdown, by length or by paragraph. [`fence`]
//! knows where code blocks are, so that none is parted without being closed and opened again;
//! [`discord`] counts lines too. Rendering is not done here: see [`crate::markdown`].

mod breakpoint;
pub mod discord;
pub mod fence;
mod grapheme;
mod limit;
mod lines;
mod markdown;
mod paragraphs;
mod plain;

use serde::Deserialize;

pub use grapheme::is_grapheme_boundary;
pub use limit::{LengthUnit, Limit};
pub use lines::chunk_lines;
pub use markdown::{chunk_markdown, cut_in_fence};
pub use paragraphs::{next_gap, paragraphs};
pub use plain::chunk_text;
pub(crate) use plain::{TextPart, next_part, ranges};

/// Places at which parts end: `channels.<id>.chunkMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChunkMode {
    /// Cuts only where a part is full.
    #[default]
    Length,
    /// Cuts at every blank line.
    Newline,
}

impl ChunkMode {
    /// Reads the mode as it is written in the configuration; anything else is the default.
    pub fn from_config(text: Option<&str>) -> Self {
        match text.map(str::trim) {
            Some("newline") => Self::Newline,
            _ => Self::Length,
        }
    }
}

/// Markup of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// Words only.
    Plain,
    /// Markdown: code blocks stay whole, or are closed and opened again.
    Markdown,
}

/// The parts of a text, none longer than the limit, none blank.
pub fn chunk(text: &str, limit: Limit, mode: ChunkMode, markup: Markup) -> Vec<String> {
    let by_length = |text: &str| match markup {
        Markup::Plain => chunk_text(text, limit),
        Markup::Markdown => chunk_markdown(text, limit),
    };
    match mode {
        ChunkMode::Length => by_length(text),
        ChunkMode::Newline => paragraphs(text).iter().flat_map(|paragraph| by_length(paragraph)).collect(),
    }
}

#[cfg(test)]
mod tests;
