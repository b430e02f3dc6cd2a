//! The turns that people see of a branch that is read from its end. The message that opens a turn
//! says whose turn it is, so the later ones are held back until it is reached.

use std::ops::ControlFlow;

/// The last items of a branch, gathered from the newest.
pub(super) struct HistoryTail<T> {
    limit: usize,
    max_bytes: usize,
    /// Newest first.
    settled: Vec<T>,
    bytes: usize,
    /// Items of the turn whose opening message is not reached yet, newest first.
    turn: Vec<T>,
    turn_bytes: usize,
    /// True once something of the turn did not fit: nothing older is shown then.
    is_full: bool,
}

impl<T> HistoryTail<T> {
    /// Collects at most `limit` items of `max_bytes` altogether; one item is shown whatever its
    /// size.
    pub(super) fn new(limit: usize, max_bytes: usize) -> Self {
        Self {
            limit,
            max_bytes,
            settled: Vec::new(),
            bytes: 0,
            turn: Vec::new(),
            turn_bytes: 0,
            is_full: false,
        }
    }

    /// False once nothing older is shown, unless the turn is left.
    fn has_room(&self) -> bool {
        !self.is_full && self.settled.len() + self.turn.len() < self.limit
    }

    /// Takes the next older item of the turn, if there is one and room for it. It is read only where there is room.
    pub(super) fn extend(&mut self, read: impl FnOnce() -> Option<(usize, T)>) {
        if !self.has_room() {
            return;
        }
        let Some((bytes, item)) = read() else { return };
        let is_first = self.settled.is_empty() && self.turn.is_empty();
        if is_first || self.bytes + self.turn_bytes + bytes <= self.max_bytes {
            self.turn.push(item);
            self.turn_bytes += bytes;
        } else {
            self.is_full = true;
        }
    }

    /// The message that opens the turn is reached, and somebody said it.
    pub(super) fn settle_turn(&mut self) {
        self.settled.append(&mut self.turn);
        self.bytes += std::mem::take(&mut self.turn_bytes);
    }

    /// The message that opens the turn is reached, and the gateway said it.
    pub(super) fn leave_turn(&mut self) {
        self.turn.clear();
        self.turn_bytes = 0;
        self.is_full = false;
    }

    /// Breaks once nothing older can be shown.
    pub(super) fn flow(&self) -> ControlFlow<()> {
        match !self.has_room() && self.turn.is_empty() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// All items, oldest first; to be called at the beginning of the transcript. Items that no
    /// message opens are shown, since nobody else said them.
    pub(super) fn oldest_first(mut self) -> Vec<T> {
        self.settle_turn();
        self.settled.reverse();
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u` is said by a person, `g` by the gateway; everything else follows one of them. Newest last.
    fn shown(branch: &str, limit: usize, max_bytes: usize) -> String {
        let mut shown = HistoryTail::new(limit, max_bytes);
        for item in branch.chars().rev() {
            match item {
                'g' => shown.leave_turn(),
                _ => shown.extend(|| Some((1, item))),
            }
            if item == 'u' {
                shown.settle_turn();
            }
            if shown.flow().is_break() {
                break;
            }
        }
        shown.oldest_first().into_iter().collect()
    }

    #[test]
    fn a_turn_of_the_gateway_is_left_out_and_does_not_count() {
        let rows = [
            ("uagbcud", 10, 10, "uaud"),
            ("uagbcud", 3, 10, "aud"),
            ("uagbc", 1, 10, "a"),
            ("gbc", 2, 10, ""),
            ("uagbcd", 10, 2, "ua"),
            ("uabcd", 2, 10, "cd"),
            ("uabcd", 10, 3, "bcd"),
            ("uabcd", 10, 0, "d"),
            ("abc", 10, 10, "abc"),
            ("uauauaga", 2, 10, "ua"),
        ];
        for (branch, limit, max_bytes, expect) in rows {
            assert_eq!(shown(branch, limit, max_bytes), expect, "{branch} {limit} {max_bytes}");
        }
    }
}
