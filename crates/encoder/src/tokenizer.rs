//! Turns text into the token ids of a model.
//!
//! Two kinds are known: WordPiece, of English and older multilingual models, and Unigram, of
//! models that were trained with SentencePiece. Words that look like marks of the tokenizer, such
//! as `[SEP]`, are plain text here.

mod bert_text;
mod charsmap;
mod piece_table;
mod read;
mod unigram;
mod unigram_text;
mod word_piece;

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::ModelError;
use unigram::Unigram;
use word_piece::WordPiece;

/// The tokenizer of a model.
#[derive(Debug)]
pub struct Tokenizer {
    begin: u32,
    end: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    WordPiece(WordPiece),
    Unigram(Unigram),
}

impl Tokenizer {
    /// Reads the tokenizer of a model directory. Returns it with a hash of its file.
    ///
    /// # Errors
    /// [`ModelError`] if there is none, or one of another kind.
    pub(crate) fn read(dir: &Path) -> Result<(Self, Vec<u8>), ModelError> {
        let (tokenizer, bytes) = read::read(dir)?;
        Ok((tokenizer, Sha256::digest(bytes).to_vec()))
    }

    /// Returns the tokens of a text in several parts, between the two marks, and no more than
    /// `most`. A part does not run over into the next one.
    pub(crate) fn tokens(&self, parts: &[&str], most: usize) -> Vec<u32> {
        let room = most.saturating_sub(1);
        let mut tokens = vec![self.begin];
        for part in parts {
            match &self.kind {
                Kind::WordPiece(words) => words.push(part, room, &mut tokens),
                Kind::Unigram(pieces) => pieces.push(part, room, &mut tokens),
            }
        }
        tokens.truncate(room.max(1));
        tokens.push(self.end);
        tokens
    }
}
