//! Parsing HTML within bounds. Parser and extractor take time and memory that grow with the square of the nesting, and a page of
//! a few bytes can make thousands of elements, so that a hostile page would keep a thread busy for hours.

use std::cell::Cell;
use std::time::Duration;

use dom_query::{Document, NodeId};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{Tracer, TreeBuilderOpts};
use html5ever::{ParseOpts, Parser, parse_document};

use super::stop::StopSignal;

/// Bytes that are parsed between two looks at the bounds.
const STEP: usize = 512;

/// What a page may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Elements that are open at the same time. Pages that people read have fewer than a hundred.
    pub(super) open: usize,
    /// Nodes of the page.
    pub(super) nodes: usize,
    /// Time to parse it.
    pub(super) time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { open: 400, nodes: 200_000, time: Duration::from_secs(5) }
    }
}

/// A page, or its beginning.
pub(super) struct Parsed {
    pub(super) document: Document,
    /// Whether it ended at a bound.
    pub(super) is_cut: bool,
}

/// Parses as much of it as the bounds allow, and no more than one step once it is to stop.
pub(super) fn parse(html: &str, bounds: Bounds, stop: &StopSignal) -> Parsed {
    let stop = stop.sooner(bounds.time);
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let mut parser = parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (step, after) = rest.split_at(rest.floor_char_boundary(STEP));
        parser.process(StrTendril::from(step));
        rest = after;
        // Nobody reads them, and a flood of them takes more memory than the page.
        parser.tokenizer.sink.sink.errors.borrow_mut().clear();
        let is_over = open(&parser) > bounds.open
            || parser.tokenizer.sink.sink.tree.len() > bounds.nodes
            || stop.is_over();
        if is_over {
            break;
        }
    }
    Parsed { document: parser.finish(), is_cut: !rest.is_empty() }
}

/// Elements that are open, and formats that every new paragraph would repeat.
fn open(parser: &Parser<Document>) -> usize {
    let count = Count::default();
    parser.tokenizer.sink.trace_handles(&count);
    count.0.get()
}

#[derive(Default)]
struct Count(Cell<usize>);

impl Tracer for Count {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}
