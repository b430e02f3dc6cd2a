//! A vocabulary in little memory: all pieces in one sorted text.

/// Pieces with their ids, found by what a text begins with.
#[derive(Debug, Default)]
pub(super) struct PieceTable {
    /// All pieces, sorted, one behind the other.
    bytes: Vec<u8>,
    /// End of each piece in `bytes`.
    ends: Vec<u32>,
    ids: Vec<u32>,
    /// For each first byte, the range of its pieces.
    by_first: Vec<(u32, u32)>,
    /// Length of the longest piece in bytes.
    longest: usize,
}

impl PieceTable {
    /// Sorts a vocabulary. Of pieces that are there twice, the first one counts; empty ones are left out.
    pub(super) fn new(pieces: impl IntoIterator<Item = (String, u32)>) -> Self {
        let mut pieces: Vec<(String, u32)> =
            pieces.into_iter().filter(|(piece, _)| !piece.is_empty()).collect();
        pieces.sort_by(|one, other| one.0.cmp(&other.0));
        pieces.dedup_by(|later, earlier| later.0 == earlier.0);
        let mut table = Self { by_first: vec![(0, 0); 256], ..Self::default() };
        for (piece, id) in pieces {
            let index = count(table.ids.len());
            let first = piece.as_bytes().first().copied().unwrap_or_default();
            if let Some(range) = table.by_first.get_mut(usize::from(first)) {
                *range = if range.0 == range.1 { (index, index + 1) } else { (range.0, index + 1) };
            }
            table.bytes.extend_from_slice(piece.as_bytes());
            table.ends.push(count(table.bytes.len()));
            table.ids.push(id);
            table.longest = table.longest.max(piece.len());
        }
        table.bytes.shrink_to_fit();
        table
    }

    /// Calls `found` with length and id of each piece that the text begins with, the shortest first.
    pub(super) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32)) {
        let Some(first) = text.first() else { return };
        let Some((from, to)) = self.by_first.get(usize::from(*first)).copied() else { return };
        let mut range = (from as usize, to as usize);
        for depth in 1..=text.len().min(self.longest) {
            if range.0 >= range.1 {
                return;
            }
            // Sorted: a piece that ends here is the first of its range.
            if self.piece(range.0).len() == depth
                && let Some(id) = self.ids.get(range.0)
            {
                found(depth, *id);
            }
            let Some(next) = text.get(depth) else { return };
            range = self.narrowed(range, depth, *next);
        }
    }

    /// The pieces of a range that have this byte at this position.
    fn narrowed(&self, (from, to): (usize, usize), depth: usize, byte: u8) -> (usize, usize) {
        // A piece that ends before sorts before all others of the range.
        let at = |index: usize| self.piece(index).get(depth).map_or(-1, |byte| i16::from(*byte));
        let byte = i16::from(byte);
        let begin = partition(from, to, |index| at(index) < byte);
        (begin, partition(begin, to, |index| at(index) <= byte))
    }

    fn piece(&self, index: usize) -> &[u8] {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(index)).unwrap_or_default()
    }
}

/// The first index of a range for which a condition that holds for its beginning does not.
fn partition(mut from: usize, mut to: usize, holds: impl Fn(usize) -> bool) -> usize {
    while from < to {
        let middle = from.midpoint(to);
        if holds(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Vocabularies are bounded far below four gigabytes when they are read.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn prefixes(table: &PieceTable, text: &str) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        table.prefixes(text.as_bytes(), |length, id| all.push((length, id)));
        all
    }

    #[test]
    fn prefixes_of_a_text_are_found_from_the_shortest_on() {
        let words = ["a", "ab", "abc", "b", "abd", "é", "", "ab"];
        let table = PieceTable::new(words.iter().map(|word| (*word).to_owned()).zip(0..));
        assert_eq!(prefixes(&table, "abcd"), [(1, 0), (2, 1), (3, 2)]);
        assert_eq!(prefixes(&table, "abx"), [(1, 0), (2, 1)]);
        assert_eq!(prefixes(&table, "éa"), [(2, 5)]);
        assert_eq!(prefixes(&table, "x"), []);
        assert_eq!(prefixes(&table, ""), []);
    }

    proptest! {
        #[test]
        fn every_piece_that_begins_a_text_is_found(
            words in prop::collection::vec("[ab\u{e9}\u{4e00}]{0,5}", 0..40),
            text in "[ab\u{e9}\u{4e00}c]{0,8}",
        ) {
            let table = PieceTable::new(words.iter().cloned().zip(0..));
            let mut expect = BTreeMap::new();
            for (word, id) in words.iter().zip(0_u32..) {
                if !word.is_empty() && text.starts_with(word.as_str()) {
                    expect.entry(word.len()).or_insert(id);
                }
            }
            prop_assert_eq!(prefixes(&table, &text), expect.into_iter().collect::<Vec<_>>());
        }
    }
}
