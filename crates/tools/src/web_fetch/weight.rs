//! An estimate of the time and memory that looking for an article takes in a [`tame`](super::tame) page. The libraries that do it
//! can't be stopped, and some of their steps take time that grows with the square of a page, so that a page that is too heavy is
//! not given to them.

use dom_query::{Document, Element, NodeData};
use memchr::memchr_iter;

use super::stop::StopSignal;
use super::walk::{Side, walk};

/// Heaviest page whose article is looked for: a few seconds of work. A long page of an encyclopedia weighs a tenth of it.
pub(super) const HEAVIEST: u64 = 50_000_000;

/// Weight of a node in bytes of text.
const NODE: u64 = 20;
/// Bytes that are copied in the time of a unit.
const COPIED: u64 = 25;

/// The weight of a page that stands at this address, in bytes of text that are read some dozen times; `None` if it was stopped.
pub(super) fn weight(document: &Document, url: &str, stop: &StopSignal) -> Option<u64> {
    let mut sizes = Sizes { base: size(url), ..Sizes::default() };
    let is_done = walk(document.root(), stop, |node, side, depth| {
        node.query(|node| match &node.data {
            NodeData::Element(element) if side == Side::Begin => sizes.element(element, depth),
            NodeData::Element(element) => sizes.left(element),
            NodeData::Text { contents } if side == Side::Begin => sizes.text(contents, depth),
            _ => {}
        });
        true
    });
    is_done.then(|| sizes.weight())
}

fn size(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn count(items: impl Iterator) -> u64 {
    u64::try_from(items.count()).unwrap_or(u64::MAX)
}

#[derive(Debug, Default)]
struct Sizes {
    /// Bytes and nodes, as often as there are elements around them: each of these is measured with all it holds.
    nested: u64,
    nodes: u64,
    /// Backslashes at the end of what was read, and the most that follow each other: what comes after them may count them.
    backslashes: u64,
    most_backslashes: u64,
    /// Quotes and list items around.
    inside_quotes: u64,
    /// Bytes that are copied because each quote writes each of its lines anew, with a sign before it for each quote inside of it.
    quoted: u64,
    /// Addresses that may be made absolute, and bytes of what they are put behind.
    links: u64,
    base: u64,
    /// Headings, and bytes of what may be a title: each heading is compared with it.
    headings: u64,
    titles: u64,
    /// Elements around that may be a title.
    inside_titles: u64,
}

impl Sizes {
    fn element(&mut self, element: &Element, depth: u64) {
        self.nodes += 1;
        self.nested += NODE * depth;
        let value = |name: &str| element.attrs.iter().find(|attr| &*attr.name.local == name);
        match &*element.name.local {
            "title" => self.inside_titles += 1,
            "h1" => {
                self.inside_titles += 1;
                self.headings += 1;
            }
            "h2" | "h3" | "h4" | "h5" | "h6" => self.headings += 1,
            "blockquote" | "li" => self.inside_quotes += 1,
            "meta" => self.titles += value("content").map_or(0, |attr| size(&attr.value)),
            "base" => self.base += value("href").map_or(0, |attr| size(&attr.value)),
            _ => {}
        }
        for attr in &element.attrs {
            self.links += 1 + count(memchr_iter(b',', attr.value.as_bytes()));
        }
    }

    fn left(&mut self, element: &Element) {
        match &*element.name.local {
            "title" | "h1" => self.inside_titles -= 1,
            "blockquote" | "li" => self.inside_quotes -= 1,
            _ => {}
        }
    }

    fn text(&mut self, text: &str, depth: u64) {
        self.nodes += 1;
        self.nested += (NODE + size(text)) * depth;
        self.backslashes(text);
        if self.inside_titles > 0 {
            self.titles += size(text);
        }
        let lines = count(memchr_iter(b'\n', text.as_bytes()));
        self.quoted += lines * self.inside_quotes * self.inside_quotes;
    }

    fn backslashes(&mut self, text: &str) {
        let mut after = 0;
        for at in memchr_iter(b'\\', text.as_bytes()) {
            self.backslashes = if at == after { self.backslashes + 1 } else { 1 };
            self.most_backslashes = self.most_backslashes.max(self.backslashes);
            after = at + 1;
        }
        if after < text.len() {
            self.backslashes = 0;
        }
    }

    fn weight(&self) -> u64 {
        self.nested
            + self.most_backslashes * self.nodes / 4
            + self.quoted / COPIED
            + self.links * self.base
            + self.headings * self.titles
    }
}

#[cfg(test)]
mod tests;
