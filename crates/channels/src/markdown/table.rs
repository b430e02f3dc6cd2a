//! Tables, for platforms that have none (spec `channels.md` §4.3).

use unicode_width::UnicodeWidthStr;

use super::render::plain;
use super::styled::{Style, Styled};

/// Cells are padded to this width at most: a long one must not make every row as long.
const WIDEST: usize = 80;

/// Treatment of a table: `channels.<id>.markdown.tables`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableMode {
    /// Leaves the table as it is written.
    Off,
    /// A line a cell, below what its row is called.
    Bullets,
    /// Lines of code, their columns below each other.
    #[default]
    Code,
}

impl TableMode {
    /// Reads the mode as it is written in the configuration.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "off" => Some(Self::Off),
            "bullets" => Some(Self::Bullets),
            "code" => Some(Self::Code),
            _ => None,
        }
    }
}

/// A table as it was read.
#[derive(Debug, Default)]
pub(super) struct MarkdownTable {
    pub(super) header: Vec<Styled>,
    pub(super) rows: Vec<Vec<Styled>>,
}

impl MarkdownTable {
    /// Renders the table as lines of code. Looks of its cells are gone: code has none.
    pub(super) fn as_code(&self) -> Styled {
        let rows: Vec<Vec<String>> =
            std::iter::once(&self.header).chain(&self.rows).map(|row| cells(row)).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths: Vec<usize> =
            (0..columns).map(|column| width(column).unwrap_or(0).clamp(3, WIDEST)).collect();
        let mut text = String::new();
        for (at, row) in rows.iter().enumerate() {
            line(&mut text, &widths, |column| row.get(column).cloned().unwrap_or_default());
            if at == 0 {
                line(&mut text, &widths, |column| "-".repeat(widths.get(column).copied().unwrap_or(0)));
            }
        }
        let mut styled = Styled::default();
        styled.push_as(&text, Style::CodeBlock(None));
        styled
    }

    /// Renders the table as lines: the name of each row in bold, and below it one line per cell.
    pub(super) fn as_bullets(&self) -> Styled {
        let mut styled = Styled::default();
        for row in &self.rows {
            let named = self.header.len() > 1;
            let name = row.first().filter(|name| named && !name.text.is_empty());
            let cells = row.iter().zip(&self.header).skip(usize::from(named));
            let cells: Vec<_> = cells.filter(|(cell, _)| !cell.text.is_empty()).collect();
            if name.is_none() && cells.is_empty() {
                continue;
            }
            if !styled.text.is_empty() {
                styled.text.push_str("\n\n");
            }
            let start = styled.text.len();
            if let Some(name) = name {
                styled.push(name);
                let range = start..styled.text.len();
                styled.spans.push(super::Span { range, style: Style::Bold });
            }
            for (cell, header) in cells {
                if styled.text.len() > start {
                    styled.text.push('\n');
                }
                styled.text.push_str("• ");
                if !header.text.is_empty() {
                    styled.push(header);
                    styled.text.push_str(": ");
                }
                styled.push(cell);
            }
        }
        styled
    }
}

/// Code has no links: their addresses stand behind them.
fn cells(row: &[Styled]) -> Vec<String> {
    row.iter().map(|cell| plain(cell).replace('\n', " ")).collect()
}

fn line(text: &mut String, widths: &[usize], cell: impl Fn(usize) -> String) {
    for (column, width) in widths.iter().enumerate() {
        let cell = cell(column);
        text.push_str(if column == 0 { "| " } else { " | " });
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width())));
    }
    text.push_str(" |\n");
}
