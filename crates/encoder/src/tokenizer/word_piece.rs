//! WordPiece: a word is cut into the longest pieces of the vocabulary, from its beginning on.

use super::bert_text::BertText;
use super::piece_table::PieceTable;

/// A vocabulary of WordPiece and the rules for its text.
#[derive(Debug)]
pub(super) struct WordPiece {
    text: BertText,
    /// Pieces that begin a word.
    first: PieceTable,
    /// Pieces that continue one, without their mark.
    further: PieceTable,
    unknown: u32,
    /// Words of more characters are unknown.
    longest_word: usize,
}

impl WordPiece {
    pub(super) fn new(
        text: BertText,
        pieces: Vec<(String, u32)>,
        continues: &str,
        unknown: u32,
        longest_word: usize,
    ) -> Self {
        let (mut first, mut further) = (Vec::new(), Vec::new());
        for (piece, id) in pieces {
            match piece.strip_prefix(continues).filter(|rest| !continues.is_empty() && !rest.is_empty()) {
                Some(rest) => further.push((rest.to_owned(), id)),
                None => first.push((piece, id)),
            }
        }
        Self { text, first: PieceTable::new(first), further: PieceTable::new(further), unknown, longest_word }
    }

    /// Appends the tokens of a text until there are `room` in all.
    pub(super) fn push(&self, text: &str, room: usize, tokens: &mut Vec<u32>) {
        self.text.words(text, |word| {
            self.push_word(word, tokens);
            tokens.len() < room
        });
    }

    fn push_word(&self, word: &str, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let known = word.chars().count() <= self.longest_word && self.cut(word.as_bytes(), tokens);
        if !known {
            tokens.truncate(before);
            tokens.push(self.unknown);
        }
    }

    /// Returns false if a part of the word is not in the vocabulary.
    fn cut(&self, mut rest: &[u8], tokens: &mut Vec<u32>) -> bool {
        let mut table = &self.first;
        while !rest.is_empty() {
            let mut longest = None;
            table.prefixes(rest, |length, id| longest = Some((length, id)));
            let Some((length, id)) = longest else { return false };
            tokens.push(id);
            rest = rest.get(length..).unwrap_or_default();
            table = &self.further;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokenizer(longest_word: usize) -> WordPiece {
        let pieces = ["[UNK]", "un", "##aff", "##able", "aff", "a", "##b", ",", "会", "##", "u"];
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).zip(0..).collect();
        let text = BertText { lowercase: true, strip_accents: true, clean: true, part_chinese: true };
        WordPiece::new(text, pieces, "##", 0, longest_word)
    }

    fn tokens(text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        tokenizer(10).push(text, 1000, &mut tokens);
        tokens
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        let rows: [(&str, &[u32]); 7] = [
            ("unaffable", &[1, 2, 3]),
            ("aff", &[4]),
            ("ab", &[5, 6]),
            ("ac", &[0]),
            ("Un,会", &[1, 7, 8]),
            ("abbbbbbbbbb", &[0]),
            ("u [UNK]", &[10, 0, 0, 0]),
        ];
        for (text, expect) in rows {
            assert_eq!(tokens(text), expect, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_tokens_of_the_vocabulary_and_no_more_than_asked_for(text in "\\PC{0,60}", room in 1_usize..20) {
            let mut found = Vec::new();
            tokenizer(10).push(&text, room, &mut found);
            prop_assert!(found.iter().all(|token| *token < 11));
            // The last word may run over by its own pieces.
            prop_assert!(found.len() < room + 10);
        }
    }
}
