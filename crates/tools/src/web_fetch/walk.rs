//! Reading a page in one pass that ends when it is told to.

use dom_query::NodeRef;

use super::stop::StopSignal;

/// Where a walk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Begin,
    End,
}

/// Visits all nodes from this one on in the order of the page, each at its beginning and its end, with its depth. At the beginning
/// `visit` says whether the nodes inside are visited too. Returns whether the walk came to its end.
pub(super) fn walk<'a>(
    root: NodeRef<'a>,
    stop: &StopSignal,
    mut visit: impl FnMut(NodeRef<'a>, Side, u64) -> bool,
) -> bool {
    let mut at = root;
    let mut depth = 1;
    while !stop.is_over() {
        let inside = visit(at, Side::Begin, depth);
        if let Some(child) = at.first_child().filter(|_| inside) {
            at = child;
            depth += 1;
            continue;
        }
        loop {
            visit(at, Side::End, depth);
            if at.id == root.id {
                return true;
            }
            if let Some(next) = at.next_sibling() {
                at = next;
                break;
            }
            let Some(parent) = at.parent() else { return true };
            at = parent;
            depth -= 1;
        }
    }
    false
}
