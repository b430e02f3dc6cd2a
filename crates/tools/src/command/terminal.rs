//! Terminal queries of a program, and the replies.

/// Reply with the cursor position: first row and column.
pub(super) const CURSOR: &str = "\u{1b}[1;1R";
/// Queries for the cursor position.
const ASKED: [&[u8]; 2] = [b"\x1b[6n", b"\x1b[?6n"];

/// Takes questions out of what a program prints, wherever that is cut.
#[derive(Debug, Default)]
pub(super) struct Queries {
    /// The beginning of what may become a question.
    held: Vec<u8>,
}

impl Queries {
    /// Returns the bytes to show, and the number of queries among them.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, usize) {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (mut shown, mut asked) = (Vec::with_capacity(all.len()), 0);
        let mut rest = all.as_slice();
        while let Some((first, after)) = rest.split_first() {
            if let Some(left) = ASKED.iter().find_map(|question| rest.strip_prefix(*question)) {
                asked += 1;
                rest = left;
            } else if !bytes.is_empty() && ASKED.iter().any(|question| question.starts_with(rest)) {
                self.held = rest.to_vec();
                break;
            } else {
                shown.push(*first);
                rest = after;
            }
        }
        (shown, asked)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(chunks: &[&[u8]]) -> (Vec<u8>, usize) {
        let mut queries = Queries::default();
        let mut out = (Vec::new(), 0);
        // The end is told by nothing more.
        for chunk in chunks.iter().copied().chain([&b""[..]]) {
            let (shown, asked) = queries.take(chunk);
            out.0.extend(shown);
            out.1 += asked;
        }
        out
    }

    #[test]
    fn questions_are_taken_out() {
        type Row = (&'static [&'static [u8]], &'static [u8], usize);
        let rows: [Row; 5] = [
            (&[b"a\x1b[6nb"], b"ab", 1),
            (&[b"a\x1b[", b"?6", b"n\x1b[6n"], b"a", 2),
            (&[b"\x1b[31mred"], b"\x1b[31mred", 0),
            (&[b"a\x1b"], b"a\x1b", 0),
            (&[b"\x1b\x1b[6n"], b"\x1b", 1),
        ];
        for (chunks, shown, asked) in rows {
            assert_eq!(all(chunks), (shown.to_vec(), asked), "{chunks:?}");
        }
    }

    proptest! {
        #[test]
        fn where_it_is_cut_does_not_matter(
            pieces in prop::collection::vec(prop_oneof![Just("\u{1b}[6n"), Just("\u{1b}[?6n"), Just("\u{1b}["), Just("x")], 0..8),
            at in any::<prop::sample::Index>(),
        ) {
            let text = pieces.concat();
            let (a, b) = text.as_bytes().split_at(at.index(text.len() + 1));
            prop_assert_eq!(all(&[a, b]), all(&[text.as_bytes()]));
        }
    }
}
