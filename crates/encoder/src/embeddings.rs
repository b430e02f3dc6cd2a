//! Turns token ids into the first rows of the network.
//!
//! The rows of words stay on disk: a multilingual model has 380 MB of them, a text needs a few
//! hundred rows, and the operating system keeps those that are used often.

use ndarray::{Array2, ArrayViewMut2};

use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::math::LayerNorm;
use crate::weights::{TensorPlace, Weights};

#[derive(Debug)]
pub(crate) struct Embeddings {
    weights: Weights,
    words: TensorPlace,
    vocabulary: usize,
    /// Row of each position, from that of the first token; the row of the token type is added already.
    positions: Array2<f32>,
    norm: LayerNorm,
    hidden: usize,
}

impl Embeddings {
    pub(crate) fn read(weights: Weights, config: &ModelConfig) -> Result<Self, ModelError> {
        let hidden = config.hidden;
        let words = weights.matrix_place("embeddings.word_embeddings.weight", config.vocabulary, hidden)?;
        let all = weights.matrix("embeddings.position_embeddings.weight", config.positions, hidden)?;
        let kept = all.rows().into_iter().skip(config.first_position).take(config.max_tokens);
        let mut positions = Array2::zeros((config.max_tokens, hidden));
        positions.rows_mut().into_iter().zip(kept).for_each(|(mut row, of)| row.assign(&of));
        if config.token_types > 0 {
            let types =
                weights.matrix("embeddings.token_type_embeddings.weight", config.token_types, hidden)?;
            // All of a text is of the first type.
            if let Some(first) = types.rows().into_iter().next() {
                positions.rows_mut().into_iter().for_each(|mut row| row += &first);
            }
        }
        let norm = norm(&weights, "embeddings.LayerNorm", config)?;
        Ok(Self { words, vocabulary: config.vocabulary, positions, norm, hidden, weights })
    }

    /// Writes one row for each token.
    ///
    /// # Errors
    /// When the file can't be read any more, or has no row for a token.
    pub(crate) fn rows(&self, tokens: &[u32], rows: &mut ArrayViewMut2<'_, f32>) -> Result<(), String> {
        let size = self.hidden * self.words.dtype.bytes();
        let mut bytes = vec![0_u8; size];
        let mut word = Vec::with_capacity(self.hidden);
        let positions = self.positions.rows();
        for ((token, position), mut row) in tokens.iter().zip(positions).zip(rows.rows_mut()) {
            let token = usize::try_from(*token).ok().filter(|token| *token < self.vocabulary);
            let token = token.ok_or("the tokenizer has more tokens than the model")?;
            let place = self.words.start + (token * size) as u64;
            self.weights.read(place, &mut bytes).map_err(|error| error.to_string())?;
            word.clear();
            self.words.dtype.decode(&bytes, &mut word);
            row.iter_mut().zip(&word).zip(position).for_each(|((x, word), position)| *x = word + position);
            if let Some(row) = row.as_slice_mut() {
                self.norm.apply(row);
            }
        }
        Ok(())
    }
}

/// Reads a normalisation. Older files have `gamma` and `beta` in place of `weight` and `bias`.
pub(crate) fn norm(weights: &Weights, name: &str, config: &ModelConfig) -> Result<LayerNorm, ModelError> {
    let read = |new: &str, old: &str| {
        weights.vector(&[&format!("{name}.{new}"), &format!("{name}.{old}")], config.hidden)
    };
    Ok(LayerNorm { weight: read("weight", "gamma")?, bias: read("bias", "beta")?, epsilon: config.epsilon })
}
