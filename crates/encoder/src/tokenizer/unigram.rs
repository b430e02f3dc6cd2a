//! Unigram: a word is cut into the pieces whose scores have the largest sum.

use super::piece_table::PieceTable;
use super::unigram_text::TextChange;

/// Stands for the blank before a word.
const BLANK: &str = "\u{2581}";
/// Difference between the score of the worst piece and that of an unknown character.
const UNKNOWN_PENALTY: f32 = 10.0;
/// Bytes of a word that are looked at for each token that there is room for: pieces are shorter.
const BYTES_PER_TOKEN: usize = 64;

/// A vocabulary of Unigram and the changes to its text.
#[derive(Debug)]
pub(super) struct Unigram {
    changes: Vec<TextChange>,
    pieces: PieceTable,
    /// Score of each piece by id.
    scores: Vec<f32>,
    unknown: u32,
    unknown_score: f32,
}

/// The best way to cut a word up to a position.
#[derive(Debug, Clone, Copy)]
struct Cut {
    score: f32,
    /// Beginning of the last piece.
    from: usize,
    piece: u32,
}

impl Unigram {
    pub(super) fn new(changes: Vec<TextChange>, pieces: Vec<(String, f32)>, unknown: u32) -> Self {
        let scores: Vec<f32> = pieces.iter().map(|(_, score)| *score).collect();
        let worst = scores.iter().copied().fold(f32::INFINITY, f32::min);
        let numbered = pieces.into_iter().zip(0_u32..);
        // The mark of what is unknown is not a text.
        let pieces = numbered.filter(|(_, id)| *id != unknown).map(|((piece, _), id)| (piece, id));
        Self {
            changes,
            pieces: PieceTable::new(pieces),
            scores,
            unknown,
            unknown_score: worst - UNKNOWN_PENALTY,
        }
    }

    /// Appends the tokens of a text until there are `room` in all.
    pub(super) fn push(&self, text: &str, room: usize, tokens: &mut Vec<u32>) {
        for raw in text.split(char::is_whitespace).filter(|word| !word.is_empty()) {
            let changed = self.changes.iter().fold(raw.to_owned(), |text, change| change.apply(&text));
            for word in changed.split(char::is_whitespace).filter(|word| !word.is_empty()) {
                if tokens.len() >= room {
                    return;
                }
                let most = (room - tokens.len()).saturating_mul(BYTES_PER_TOKEN);
                self.push_word(&format!("{BLANK}{}", cut_to(word, most)), tokens);
            }
        }
    }

    fn push_word(&self, word: &str, tokens: &mut Vec<u32>) {
        let mut cuts: Vec<Option<Cut>> = vec![None; word.len() + 1];
        let consider = |cuts: &mut Vec<Option<Cut>>, at: usize, cut: Cut| {
            if let Some(known) = cuts.get_mut(at)
                && known.is_none_or(|known| known.score < cut.score)
            {
                *known = Some(cut);
            }
        };
        for (from, c) in word.char_indices() {
            let so_far = match (from, cuts.get(from)) {
                (0, _) => 0.0,
                (_, Some(Some(cut))) => cut.score,
                (_, Some(None) | None) => continue,
            };
            let whole_character = c.len_utf8();
            let mut covers_character = false;
            let rest = word.as_bytes().get(from..).unwrap_or_default();
            self.pieces.prefixes(rest, |length, piece| {
                let score = usize::try_from(piece).ok().and_then(|id| self.scores.get(id)).copied();
                let score = so_far + score.unwrap_or(self.unknown_score);
                covers_character |= length == whole_character;
                consider(&mut cuts, from + length, Cut { score, from, piece });
            });
            if !covers_character {
                let cut = Cut { score: so_far + self.unknown_score, from, piece: self.unknown };
                consider(&mut cuts, from + whole_character, cut);
            }
        }
        self.push_best(&cuts, tokens);
    }

    /// Appends the pieces of the best cut; unknown characters side by side are one token.
    fn push_best(&self, cuts: &[Option<Cut>], tokens: &mut Vec<u32>) {
        let mut backwards: Vec<u32> = Vec::new();
        let mut at = cuts.len().saturating_sub(1);
        while at > 0
            && let Some(Some(cut)) = cuts.get(at)
        {
            if cut.piece != self.unknown || backwards.last() != Some(&self.unknown) {
                backwards.push(cut.piece);
            }
            at = cut.from;
        }
        tokens.extend(backwards.into_iter().rev());
    }
}

/// The beginning of a text, no longer than that many bytes.
fn cut_to(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECES: [(&str, f32); 12] = [
        ("<s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -3.0),
        ("▁he", -4.0),
        ("llo", -5.0),
        ("▁hell", -6.0),
        ("o", -4.5),
        ("h", -7.0),
        ("e", -7.0),
        ("l", -7.0),
        ("会议", -6.0),
        ("é", -8.0),
    ];

    fn unigram(changes: Vec<TextChange>) -> Unigram {
        let pieces = PIECES.iter().map(|(piece, score)| ((*piece).to_owned(), *score)).collect();
        Unigram::new(changes, pieces, 1)
    }

    fn pieces(text: &str) -> Vec<&'static str> {
        let mut tokens = Vec::new();
        unigram(vec![TextChange::Nfkc]).push(text, 1000, &mut tokens);
        tokens.iter().map(|token| PIECES[*token as usize].0).collect()
    }

    #[test]
    fn words_are_cut_where_the_scores_are_best() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" \n ", &[]),
            // -4 and -5 against -6 and -4.5.
            ("hello", &["▁he", "llo"]),
            ("hell o", &["▁hell", "▁", "o"]),
            ("会议", &["▁", "会议"]),
            ("e\u{301}", &["▁", "é"]),
            ("xyz o", &["▁", "<unk>", "▁", "o"]),
            ("oxo", &["▁", "o", "<unk>", "o"]),
        ];
        for (text, expect) in rows {
            assert_eq!(pieces(text), expect, "{text:?}");
        }
    }

    #[test]
    fn a_text_that_names_marks_has_none_of_them() {
        assert_eq!(pieces("<unk>"), ["▁", "<unk>"], "characters that are not known, not the mark");
    }

    proptest! {
        #[test]
        fn tokens_of_known_characters_spell_the_text(words in prop::collection::vec("[helo\u{e9}]{1,9}", 0..6)) {
            let text = words.join(" ");
            let spelled: String = pieces(&text).concat().replace('▁', " ");
            prop_assert_eq!(spelled.trim_start(), text);
        }

        #[test]
        fn any_text_has_tokens_of_the_vocabulary(text in "\\PC{0,80}", room in 1_usize..20) {
            let mut tokens = Vec::new();
            unigram(vec![TextChange::Nfkc, TextChange::Lowercase]).push(&text, room, &mut tokens);
            prop_assert!(tokens.iter().all(|token| (*token as usize) < PIECES.len()));
        }
    }
}
