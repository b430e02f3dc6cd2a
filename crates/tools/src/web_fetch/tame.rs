//! Removes the parts of a page for which the libraries take time that grows with the square of them.
//!
//! html5ever writes a text anew for `&` and for bytes `0xc2`: for each of them it searches all of the rest of the text for `<` and
//! `>` (`write_escaped`). Short pieces of text are written in time that grows with their number alone.

use dom_query::{Document, Element, NodeData, NodeRef};
use html5ever::tendril::StrTendril;
use memchr::memchr2;

use super::stop::StopSignal;
use super::walk::{Side, walk};

/// Embedded programs and styles are in no article. Templates are not weighed, and what is embedded is written anew for each element
/// around it.
const REMOVED: &str = "script, style, template, object, embed, iframe";
/// Bytes of a piece of text.
const PIECE: usize = 4 * 1024;
/// Attributes of an element. They are compared with each other.
const MAX_ATTRIBUTES: usize = 32;
/// Bytes of an attribute: no address of a page or an image is longer, if it is no image itself.
const MAX_ATTRIBUTE: usize = 8 * 1024;

/// Removes all of this from the page. Ends early if it is stopped; later steps look at the same stop.
pub(super) fn tame(document: &Document, stop: &StopSignal) {
    document.select(REMOVED).remove();
    walk(document.root(), stop, |node, side, _| {
        if side == Side::Begin {
            let is_long = node.query_or(false, |node| match &node.data {
                NodeData::Text { contents } => is_slow(contents),
                _ => false,
            });
            if is_long {
                split(&node);
            }
            node.update(|node| {
                if let NodeData::Element(element) = &mut node.data {
                    lessen(element);
                }
            });
        }
        true
    });
}

fn is_slow(text: &str) -> bool {
    text.len() > PIECE && memchr2(b'&', 0xc2, text.as_bytes()).is_some()
}

/// Parts a text into pieces that follow each other, of which the node is the last.
fn split(node: &NodeRef<'_>) {
    let text = node.text();
    let mut rest = &*text;
    while rest.len() > PIECE {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        node.insert_before(&node.tree.new_text(piece));
        rest = after;
    }
    node.set_text(StrTendril::from(rest));
}

fn lessen(element: &mut Element) {
    element.attrs.retain(|attr| attr.value.len() <= MAX_ATTRIBUTE);
    element.attrs.truncate(MAX_ATTRIBUTES);
}

#[cfg(test)]
mod tests;
