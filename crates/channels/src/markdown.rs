//! Markdown as platforms show it (spec `channels.md` §4).
//!
//! [`read()`] makes a [`Styled`] text of it: words, and which of them are bold, a link, code. The
//! styled text is cut ([`pieces()`]) and then written in a platform's own markup ([`render`], or
//! the platform's crate), so that no formatting is broken by a cut. Platforms that take Markdown
//! as it is get their tables converted by [`convert_tables`].

mod angle;
mod autolink;
mod escape;
mod lead;
mod pieces;
mod raw_tables;
mod read;
pub mod render;
mod spoiler;
mod styled;
mod table;

pub use escape::escaped;
pub use lead::begins_with_block;
pub use pieces::{pieces, rendered_pieces};
pub use raw_tables::convert_tables;
pub use read::read;
pub use styled::{Span, Style, Styled};
pub use table::TableMode;

/// Features of Markdown that a platform supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkdownFeatures {
    /// Treatment of tables.
    pub tables: TableMode,
    /// True if addresses with a scheme become links.
    pub autolinks: bool,
    /// True if `<https://…>` is a link; otherwise it stays as it is written.
    pub angle_links: bool,
    /// True if `||…||` is a spoiler.
    pub spoilers: bool,
}

impl MarkdownFeatures {
    /// Reads Markdown as it is written, without features that only some platforms have.
    pub const PLAIN: Self =
        Self { tables: TableMode::Code, autolinks: false, angle_links: true, spoilers: false };

    /// Returns the same features with tables in another form.
    pub const fn with_tables(self, tables: TableMode) -> Self {
        Self { tables, ..self }
    }
}

#[cfg(test)]
pub(crate) mod tests;
