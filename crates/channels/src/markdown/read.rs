//! Reads Markdown to a styled text.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeWithOffset};

use super::styled::{Span, Style, Styled};
use super::table::MarkdownTable;
use super::{MarkdownFeatures, TableMode, angle, autolink, spoiler};

/// Levels of lists that are shown by an indent of their own. A line of a thousand dashes has a thousand levels.
const DEEPEST: usize = 12;

/// The styled text that Markdown means: CommonMark with struck-through text and tables. Paragraphs are parted by a blank line, lists have
/// `•` or numbers, pictures are their description and link to themselves, HTML is shown as it is written.
pub fn read(markdown: &str, reading: MarkdownFeatures) -> Styled {
    let masked = angle::mask(markdown, reading.angle_links);
    let mut options = Options::ENABLE_STRIKETHROUGH;
    options.set(Options::ENABLE_TABLES, reading.tables != TableMode::Off);
    let mut builder = Builder::new(&masked, reading);
    let events = Parser::new_ext(&masked, options).into_offset_iter();
    for (event, range) in TextMergeWithOffset::new(events) {
        builder.event(event, range);
    }
    builder.finish()
}

struct Builder<'m> {
    source: &'m str,
    reading: MarkdownFeatures,
    out: Styled,
    /// Spans that have begun, by their index in `out`; how many of them are code, and how many links.
    open: Vec<usize>,
    codes: usize,
    links: usize,
    /// The pictures that it is in the description of, and whether each is a link.
    pictures: Vec<bool>,
    /// The lists that it is in, by the number of their next item.
    lists: Vec<Option<u64>>,
    /// True if a list item has begun and is still empty.
    is_fresh_item: bool,
    /// Bars of spoilers in the paragraph, and those of spoilers before it.
    bars: Vec<usize>,
    spoilers: Vec<Range<usize>>,
    table: Option<MarkdownTable>,
    /// Text before the table cell that is being read.
    outside: Option<(Styled, Vec<usize>)>,
}

impl<'m> Builder<'m> {
    fn new(source: &'m str, reading: MarkdownFeatures) -> Self {
        Self {
            source,
            reading,
            out: Styled::default(),
            open: Vec::new(),
            codes: 0,
            links: 0,
            pictures: Vec::new(),
            lists: Vec::new(),
            is_fresh_item: false,
            bars: Vec::new(),
            spoilers: Vec::new(),
            table: None,
            outside: None,
        }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, &range),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) => self.text(&angle::unmask(&text)),
            Event::Code(text) => {
                self.out.push_as(&angle::unmask(&text), Style::Code);
                self.is_fresh_item = false;
            }
            Event::SoftBreak | Event::HardBreak => self.out.text.push('\n'),
            Event::Rule => self.gap(2),
            // Masked, or not switched on: as it is written.
            Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => self.block(),
            Tag::Heading { .. } => {
                self.block();
                self.open(Style::Heading);
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.open(Style::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.block();
                self.open(Style::CodeBlock(language(&kind)));
            }
            Tag::List(number) => {
                self.pair_bars();
                self.gap(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(number);
            }
            Tag::Item => self.item(),
            Tag::Table(_) => {
                self.block();
                self.table = Some(MarkdownTable::default());
            }
            Tag::TableCell => {
                self.outside = Some((std::mem::take(&mut self.out), std::mem::take(&mut self.open)));
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.open(Style::Italic),
            Tag::Strong => self.open(Style::Bold),
            Tag::Strikethrough if self.is_single_tilde(range) => self.out.text.push('~'),
            Tag::Strikethrough => self.open(Style::Strikethrough),
            Tag::Link { link_type, dest_url, .. } => self.open(Style::Link(address(link_type, &dest_url))),
            Tag::HtmlBlock => self.block(),
            Tag::Image { dest_url, .. } => self.open_picture(angle::unmask(&dest_url).into_owned()),
            Tag::TableHead => {}
            Tag::FootnoteDefinition(_) | Tag::DefinitionList | Tag::DefinitionListTitle => {}
            Tag::DefinitionListDefinition | Tag::Superscript | Tag::Subscript | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph => self.pair_bars(),
            TagEnd::Item => {
                self.pair_bars();
                self.is_fresh_item = false;
            }
            TagEnd::Heading(_) | TagEnd::BlockQuote(_) | TagEnd::CodeBlock => {
                self.pair_bars();
                self.close();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link => self.close(),
            TagEnd::Strikethrough if self.is_single_tilde(range) => self.out.text.push('~'),
            TagEnd::Strikethrough => self.close(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => self.end_cell(),
            TagEnd::TableHead => {
                // The cells of the first line were gathered as a row.
                if let Some(table) = &mut self.table {
                    table.header = table.rows.pop().unwrap_or_default();
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Image => self.close_picture(),
            TagEnd::TableRow | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => {}
            TagEnd::DefinitionList | TagEnd::DefinitionListTitle | TagEnd::DefinitionListDefinition => {}
            TagEnd::Superscript | TagEnd::Subscript | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        let start = self.out.text.len();
        let (is_code, is_link) = (self.codes > 0, self.links > 0);
        if self.reading.autolinks && !is_code && !is_link {
            let links = autolink::addresses(text).into_iter().map(|range| Span {
                style: Style::Link(text.get(range.clone()).unwrap_or_default().to_owned()),
                range: range.start + start..range.end + start,
            });
            self.out.spans.extend(links);
        }
        if self.reading.spoilers && !is_code && self.table.is_none() {
            self.bars.extend(spoiler::bars(text, start));
        }
        self.out.text.push_str(text);
        self.is_fresh_item = false;
    }

    /// A block begins: below a blank line, in a list on a line of its own.
    fn block(&mut self) {
        self.pair_bars();
        if std::mem::take(&mut self.is_fresh_item) {
            return;
        }
        if self.lists.is_empty() {
            self.gap(2);
        } else {
            self.gap(1);
            self.indent(self.lists.len());
        }
    }

    fn item(&mut self) {
        self.gap(1);
        self.indent(self.lists.len().saturating_sub(1));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                self.out.text.push_str(&format!("{number}. "));
                *number = number.saturating_add(1);
            }
            Some(None) | None => self.out.text.push_str("• "),
        }
        self.is_fresh_item = true;
    }

    fn indent(&mut self, levels: usize) {
        self.out.text.push_str(&"  ".repeat(levels.min(DEEPEST)));
    }

    /// Adds line breaks up to this number, unless they are there or there is no text before them.
    fn gap(&mut self, wanted: usize) {
        self.is_fresh_item = false;
        let text = &mut self.out.text;
        let there = text.len() - text.trim_end_matches('\n').len();
        if !text.is_empty() {
            text.push_str(&"\n".repeat(wanted.saturating_sub(there)));
        }
    }

    fn open(&mut self, style: Style) {
        let start = self.out.text.len();
        self.codes += usize::from(style.is_code());
        self.links += usize::from(matches!(style, Style::Link(_)));
        self.open.push(self.out.spans.len());
        self.out.spans.push(Span { range: start..start, style });
    }

    fn close(&mut self) {
        if let Some(span) = self.open.pop().and_then(|at| self.out.spans.get_mut(at)) {
            span.range.end = self.out.text.len();
            self.codes -= usize::from(span.style.is_code());
            self.links -= usize::from(matches!(span.style, Style::Link(_)));
        }
    }

    /// A picture of the web is a link to it. In a link its address is not needed.
    fn open_picture(&mut self, address: String) {
        let is_link =
            self.links == 0 && ["https://", "http://"].iter().any(|scheme| address.starts_with(scheme));
        self.pictures.push(is_link);
        if is_link {
            self.open(Style::Link(address));
        }
    }

    fn close_picture(&mut self) {
        if self.pictures.pop() != Some(true) {
            return;
        }
        // Without a description it is called by its address.
        if let Some(Span { range, style: Style::Link(address) }) =
            self.open.last().and_then(|at| self.out.spans.get(*at))
            && range.start == self.out.text.len()
        {
            let address = address.clone();
            self.out.text.push_str(&address);
            self.is_fresh_item = false;
        }
        self.close();
    }

    /// GitHub strikes through between single tildes too; people who write `~5` mean about five.
    fn is_single_tilde(&self, range: &Range<usize>) -> bool {
        !self.source.get(range.clone()).is_some_and(|text| text.starts_with("~~"))
    }

    fn end_cell(&mut self) {
        let Some((outside, open)) = self.outside.take() else { return };
        let cell = std::mem::replace(&mut self.out, outside);
        self.open = open;
        if let Some(table) = &mut self.table {
            if table.rows.is_empty() {
                table.rows.push(Vec::new());
            }
            if let Some(row) = table.rows.last_mut() {
                row.push(cell.normalised());
            }
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let table = match self.reading.tables {
            TableMode::Bullets => table.as_bullets(),
            TableMode::Code | TableMode::Off => table.as_code(),
        };
        self.out.push(&table);
    }

    fn pair_bars(&mut self) {
        let bars = std::mem::take(&mut self.bars);
        self.spoilers.extend(spoiler::pairs(&self.out.text, &bars));
    }

    fn finish(mut self) -> Styled {
        self.pair_bars();
        let trimmed = self.out.text.trim_end_matches('\n').len();
        if !self.out.code_blocks().iter().any(|code| code.end > trimmed) {
            self.out.text.truncate(trimmed);
        }
        if !self.spoilers.is_empty() {
            let spans =
                self.spoilers.iter().map(|range| Span { range: range.clone(), style: Style::Spoiler });
            self.out.spans.extend(spans);
            let bars: Vec<Range<usize>> = self.spoilers.iter().flat_map(spoiler::ends).collect();
            self.out = self.out.without(&bars);
        }
        self.out.normalised()
    }
}

/// The language of a code block, if it is told by a plain word.
fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split_whitespace().next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '#' | '.' | '-');
    (word.len() <= 32 && word.chars().all(is_plain)).then(|| word.to_owned())
}

fn address(kind: LinkType, address: &str) -> String {
    let address = angle::unmask(address);
    match kind {
        LinkType::Email if !address.starts_with("mailto:") => format!("mailto:{address}"),
        _ => Cow::into_owned(address),
    }
}
