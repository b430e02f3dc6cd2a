//! The table by which SentencePiece normalises characters: a double-array trie of what is
//! replaced, and the texts it is replaced by.

/// Largest table that is read; those of real models have a quarter of a megabyte.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A table of replacements.
#[derive(Debug, Default)]
pub(super) struct Charsmap {
    units: Vec<u32>,
    /// Replacements, each ended by a zero byte.
    texts: Vec<u8>,
}

impl Charsmap {
    /// Reads a table as a model's file has it. An empty one replaces nothing.
    ///
    /// # Errors
    /// Describes what is wrong with it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let broken = || "its precompiled_charsmap is damaged".to_owned();
        if bytes.len() > MAX_BYTES {
            return Err(broken());
        }
        let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(broken)?;
        let size = usize::try_from(u32::from_le_bytes(*size)).map_err(|_| broken())?;
        let (trie, texts) = rest.split_at_checked(size).ok_or_else(broken)?;
        let (units, odd) = trie.as_chunks::<4>();
        if !odd.is_empty() {
            return Err(broken());
        }
        let units = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        Ok(Self { units, texts: texts.to_vec() })
    }

    /// Replaces, from the left, the longest parts that the table has; all else stays.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = match self.longest(rest.as_bytes()) {
                Some((length, replacement)) if rest.is_char_boundary(length) => {
                    out.push_str(replacement);
                    length
                }
                Some(_) | None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        out
    }

    /// Length and replacement of the longest part at the beginning of a text.
    fn longest(&self, text: &[u8]) -> Option<(usize, &str)> {
        let mut longest = None;
        let mut node = offset(self.unit(0)?);
        for (byte, length) in text.iter().zip(1..) {
            if *byte == 0 {
                break;
            }
            node ^= usize::from(*byte);
            let Some(unit) = self.unit(node) else { break };
            if label(unit) != u32::from(*byte) {
                break;
            }
            node ^= offset(unit);
            if has_value(unit)
                && let Some(leaf) = self.unit(node)
                && let Some(text) = self.text(leaf)
            {
                longest = Some((length, text));
            }
        }
        longest
    }

    fn unit(&self, at: usize) -> Option<u32> {
        self.units.get(at).copied()
    }

    fn text(&self, leaf: u32) -> Option<&str> {
        let from = self.texts.get((leaf & 0x7fff_ffff) as usize..)?;
        let end = from.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(from.get(..end)?).ok()
    }
}

/// True if a node ends a part that is replaced: the node at its offset holds the value.
fn has_value(unit: u32) -> bool {
    unit >> 8 & 1 == 1
}

/// Byte that leads to a node. Nodes that hold values have none.
fn label(unit: u32) -> u32 {
    unit & (1 << 31 | 0xff)
}

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds the bytes of a table that replaces these parts, in the format of SentencePiece. Each
    /// node has 256 places of its own, which is wasteful and simple.
    pub(crate) fn table(rows: &[(&str, &str)]) -> Vec<u8> {
        let mut texts = Vec::new();
        let mut nodes: Vec<(Vec<u8>, Option<usize>)> = vec![(Vec::new(), None)];
        for (part, replacement) in rows {
            for length in 1..=part.len() {
                let prefix = part.as_bytes()[..length].to_vec();
                if !nodes.iter().any(|(known, _)| *known == prefix) {
                    nodes.push((prefix, None));
                }
            }
            let node = nodes.iter_mut().find(|(known, _)| known == part.as_bytes()).unwrap();
            node.1 = Some(texts.len());
            texts.extend_from_slice(replacement.as_bytes());
            texts.push(0);
        }
        // Block n holds the children of node n; place 0 of a block is its value.
        let place = |node: &[u8]| -> usize {
            let Some((last, parent)) = node.split_last() else { return 0 };
            let parent = nodes.iter().position(|(known, _)| known == parent).unwrap();
            (parent + 1) * 256 + usize::from(*last)
        };
        let mut units = vec![0xff_u32; (nodes.len() + 1) * 256];
        for (at, (node, value)) in nodes.iter().enumerate() {
            let block = (at + 1) * 256;
            let from = place(node);
            let jump = u32::try_from(from ^ usize::from(*node.last().unwrap_or(&0)) ^ block).unwrap();
            let jump = if node.is_empty() { u32::try_from(block).unwrap() } else { jump };
            // The label is taken off by the exclusive or with the byte of the child.
            let own = u32::from(*node.last().unwrap_or(&0));
            let target = if node.is_empty() { jump } else { u32::try_from(from ^ block).unwrap() };
            assert!(target < 1 << 21);
            units[from] = target << 10 | own | u32::from(value.is_some()) << 8;
            if let Some(value) = value {
                units[block] = u32::try_from(*value).unwrap() | 1 << 31;
            }
        }
        let mut bytes = u32::try_from(units.len() * 4).unwrap().to_le_bytes().to_vec();
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn the_longest_parts_are_replaced() {
        let rows = [
            ("\u{ff21}", "A"),
            ("\u{200b}", " "),
            ("e\u{301}", "é"),
            ("ab", "x"),
            ("abc", "yz"),
            ("\u{1}", ""),
        ];
        let map = Charsmap::read(&table(&rows)).unwrap();
        let rows = [
            ("", ""),
            ("plain", "plain"),
            ("\u{ff21}\u{ff22}", "A\u{ff22}"),
            ("e\u{301}e", "ée"),
            ("abd abcd", "xd yzd"),
            ("a\u{1}b\u{200b}\u{0}c", "ab \u{0}c"),
        ];
        for (text, expect) in rows {
            assert_eq!(map.apply(text), expect, "{text:?}");
        }
        assert_eq!(Charsmap::read(&[]).unwrap().apply("\u{ff21}"), "\u{ff21}");
    }

    proptest! {
        #[test]
        fn damaged_tables_are_refused_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,20}") {
            if let Ok(map) = Charsmap::read(&bytes) {
                map.apply(&text);
            }
        }

        #[test]
        fn a_table_with_flipped_bytes_is_harmless(at in 0_usize..2000, byte in any::<u8>(), text in "[abc\u{ff21}e\u{301}]{0,20}") {
            let mut bytes = table(&[("\u{ff21}", "A"), ("ab", "x"), ("abc", "yz")]);
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(map) = Charsmap::read(&bytes) {
                map.apply(&text);
            }
        }
    }
}
