//! Words only: iMessage, and where a platform refuses its own markup.

use super::super::styled::Styled;
use super::super::{MarkdownFeatures, TableMode};
use super::flatten::flattened;

/// Markdown features for plain text.
pub const PLAIN: MarkdownFeatures =
    MarkdownFeatures { tables: TableMode::Code, autolinks: false, angle_links: true, spoilers: false };

/// A text without its looks; links are followed by their address.
pub fn plain(styled: &Styled) -> String {
    flattened(styled).text
}
