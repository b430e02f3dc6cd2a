//! Lists of the documents that hold a term, as bytes: for each document its distance from the one before and how often
//! the term stands there.

/// Builds the list of one term. Documents come in ascending order.
#[derive(Debug, Default, Clone)]
pub(crate) struct PostingsBuilder {
    bytes: Vec<u8>,
    last: u32,
    /// Number of documents.
    pub(crate) documents: u32,
}

impl PostingsBuilder {
    /// Adds a document that holds the term `times` times.
    pub(crate) fn push(&mut self, document: u32, times: u32) {
        let step = u64::from(document.saturating_sub(self.last));
        // Most terms stand in a document once: the lowest bit says that the number of times is left out.
        if times <= 1 {
            write_varint(&mut self.bytes, step << 1 | 1);
        } else {
            write_varint(&mut self.bytes, step << 1);
            write_varint(&mut self.bytes, u64::from(times));
        }
        self.last = document;
        self.documents += 1;
    }

    /// Returns the bytes of the list.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Calls `found` with each document and how often it holds the term. Bytes that make no sense end the list.
pub(crate) fn for_each_posting(bytes: &[u8], mut found: impl FnMut(u32, u32)) {
    let mut rest = bytes;
    let mut document = 0_u64;
    while let Some(head) = read_varint(&mut rest) {
        document += head >> 1;
        let times = if head & 1 == 1 { Some(1) } else { read_varint(&mut rest) };
        let (Ok(document), Some(Ok(times))) = (u32::try_from(document), times.map(u32::try_from)) else {
            return;
        };
        found(document, times);
    }
}

fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (index, byte) in rest.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            *rest = rest.get(index + 1..)?;
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_comes_back_as_it_was_written(documents in proptest::collection::btree_map(0_u32..3_000_000, 1_u32..500, 0..200)) {
            let mut builder = PostingsBuilder::default();
            documents.iter().for_each(|(document, times)| builder.push(*document, *times));
            let mut read = Vec::new();
            for_each_posting(builder.bytes(), |document, times| read.push((document, times)));
            prop_assert_eq!(read, documents.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn bytes_that_make_no_sense_end_the_list(bytes in any::<Vec<u8>>()) {
            let mut last = None;
            for_each_posting(&bytes, |document, _| {
                assert!(last <= Some(document));
                last = Some(document);
            });
        }
    }
}
