//! A table with one vector for each token, in place of a network (Model2Vec's method): the vector of
//! a text is the mean of those of its tokens. Less good than the model it is made from, and some
//! thousand times faster.
//!
//! `examples/static_table.rs` makes such a table.

use crate::error::EncodeError;
use crate::math::normalize;
use crate::tokenizer::{Tokenizer, uncased_vocabulary};

/// First bytes of a table.
const MAGIC: &[u8; 8] = b"OCTABLE1";
/// Longest text in tokens.
const MAX_TOKENS: usize = 4_096;
/// Bytes before the vocabulary: magic, dimensions, rows, length of the vocabulary.
const HEAD: usize = 20;

/// A table in memory: eight bits for each number.
#[derive(Debug)]
pub struct StaticTable {
    tokenizer: Tokenizer,
    dimensions: usize,
    scales: Vec<f32>,
    rows: Vec<i8>,
}

impl StaticTable {
    /// Reads a table as [`StaticTable::write`] writes it.
    ///
    /// # Errors
    /// Describes what is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let broken = || "the table is damaged".to_owned();
        let number = |at: usize| {
            let four = bytes.get(at..)?.first_chunk::<4>()?;
            usize::try_from(u32::from_le_bytes(*four)).ok()
        };
        let head = (number(8), number(12), number(16));
        let (Some(dimensions), Some(rows), Some(words)) = head else { return Err(broken()) };
        if !bytes.starts_with(MAGIC) || dimensions == 0 {
            return Err(broken());
        }
        let rest = bytes.get(HEAD..).unwrap_or_default();
        let (vocabulary, rest) = rest.split_at_checked(words).ok_or_else(broken)?;
        let scales_size = rows.checked_mul(4).ok_or_else(broken)?;
        let (scales, numbers) = rest.split_at_checked(scales_size).ok_or_else(broken)?;
        if Some(numbers.len()) != rows.checked_mul(dimensions) {
            return Err(broken());
        }
        let (scales, _) = scales.as_chunks::<4>();
        Ok(Self {
            tokenizer: uncased_vocabulary(vocabulary)?,
            dimensions,
            scales: scales.iter().map(|four| f32::from_le_bytes(*four)).collect(),
            rows: numbers.iter().map(|byte| byte.cast_signed()).collect(),
        })
    }

    /// Writes a table of these vectors, one for each line of a vocabulary of uncased WordPiece.
    pub fn write(vocabulary: &str, vectors: &[Vec<f32>]) -> Vec<u8> {
        let dimensions = vectors.first().map_or(0, Vec::len);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let mut out = MAGIC.to_vec();
        for number in [dimensions, vectors.len(), vocabulary.len()] {
            out.extend(count(number));
        }
        out.extend(vocabulary.as_bytes());
        let scales: Vec<f32> = vectors.iter().map(|vector| largest(vector) / 127.0).collect();
        out.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
        for (vector, scale) in vectors.iter().zip(&scales) {
            let scale = if *scale > 0.0 { *scale } else { 1.0 };
            #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
            out.extend(vector.iter().map(|number| ((number / scale).round() as i8).cast_unsigned()));
        }
        out
    }

    /// Length of a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the vector of a text, of length 1.
    ///
    /// # Errors
    /// When the text holds nothing that the table has.
    pub fn encode(&self, text: &str) -> Result<Vec<f32>, EncodeError> {
        let tokens = self.tokenizer.tokens(&[text], MAX_TOKENS);
        let mut sum = vec![0.0_f32; self.dimensions];
        // The marks at both ends say nothing.
        for token in tokens.iter().skip(1).take(tokens.len().saturating_sub(2)) {
            let at = usize::try_from(*token).unwrap_or(usize::MAX);
            let row = at.checked_mul(self.dimensions).and_then(|from| self.rows.get(from..));
            if let (Some(row), Some(scale)) = (row, self.scales.get(at)) {
                sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += f32::from(*number) * scale);
            }
        }
        let what = || EncodeError::Unusable { text: 0, what: "it holds no known word".to_owned() };
        if normalize(&mut sum) { Ok(sum) } else { Err(what()) }
    }
}

fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |largest: f32, number| largest.max(number.abs()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table() -> Vec<u8> {
        let vectors = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [-1.0, 1.0]];
        let vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.to_vec()).collect();
        StaticTable::write("[UNK]\n[CLS]\n[SEP]\nred\nblue\n##ish", &vectors)
    }

    #[test]
    fn the_vector_of_a_text_is_the_mean_of_its_words() {
        let table = StaticTable::read(&table()).unwrap();
        assert_eq!(table.dimensions(), 2);
        let rows = [
            ("red", Some([1.0, 0.0])),
            ("Red, red", Some([1.0, 0.0])),
            ("blue", Some([0.0, 1.0])),
            ("redish", Some([0.5_f32.sqrt(), 0.5_f32.sqrt()])),
            ("green", None),
            ("", None),
        ];
        for (text, expect) in rows {
            match (table.encode(text), expect) {
                (Ok(found), Some(expect)) => {
                    assert!(found.iter().zip(expect).all(|(a, b)| (a - b).abs() < 0.01), "{text}: {found:?}");
                }
                (found, expect) => assert!(found.is_err() && expect.is_none(), "{text}: {found:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_tables_are_refused_or_harmless(at in 0_usize..200, byte in any::<u8>(), cut in 0_usize..200) {
            let mut bytes = table();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut % bytes.len());
            if let Ok(table) = StaticTable::read(&bytes) {
                let _ = table.encode("redish blue");
            }
        }
    }
}
