//! Blocks of an answer that a process sent before it ended, so that the next one does not repeat
//! them. The outbox keeps no words of a block that was sent; their length and a digest of them are
//! in the block's name.

use sha2::{Digest as _, Sha256};

use super::pipeline::{compared, is_fence};

/// A block that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SentBlock {
    /// Position among everything that the run has sent.
    place: usize,
    /// Characters that are compared.
    chars: usize,
    digest: String,
}

/// The name of a block: the `place`th that its run sends.
pub fn name_of(place: usize, text: &str) -> String {
    let words: String = compared(text).map(|(_, c)| c).collect();
    format!("b{place}-{}-{}", words.chars().count(), digest(&words))
}

fn digest(words: &str) -> String {
    Sha256::digest(words).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn read(name: &str) -> Option<SentBlock> {
    let (place, rest) = name.strip_prefix('b')?.split_once('-')?;
    let (chars, digest) = rest.split_once('-')?;
    let chars = chars.parse().ok().filter(|chars| *chars > 0)?;
    Some(SentBlock { place: place.parse().ok()?, chars, digest: digest.to_owned() })
}

/// The blocks of one run, in their order.
#[derive(Debug, Default)]
pub struct SentBlocks {
    blocks: Vec<SentBlock>,
    /// Index of the next block that has not been met in an answer.
    next: usize,
}

impl SentBlocks {
    /// Reads the blocks from their names; other names are passed over.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut blocks: Vec<SentBlock> = names.into_iter().filter_map(read).collect();
        blocks.sort_by_key(|block| block.place);
        Self { blocks, next: 0 }
    }

    /// Returns the part of an answer that is still to be said; to be called for answers one after
    /// the other. Code that was cut is opened again.
    pub fn left_of(&mut self, text: &str) -> String {
        let chars: Vec<(usize, char)> = compared(text).collect();
        for from in self.next..self.blocks.len() {
            let (mut said, mut blocks) = (0, from);
            while let Some(block) = self.blocks.get(blocks)
                && chars.get(said..said + block.chars).is_some_and(|chars| is_it(block, chars))
            {
                (said, blocks) = (said + block.chars, blocks + 1);
            }
            if said > 0 {
                self.next = blocks;
                return chars.get(said).map_or_else(String::new, |(at, _)| behind(text, *at));
            }
        }
        text.to_owned()
    }
}

fn is_it(block: &SentBlock, chars: &[(usize, char)]) -> bool {
    let words: String = chars.iter().map(|(_, c)| c).collect();
    digest(&words) == block.digest
}

/// A text from some point on.
fn behind(text: &str, at: usize) -> String {
    let (before, rest) = text.split_at(at);
    let fences: Vec<&str> = before.lines().filter(|line| is_fence(line)).collect();
    match fences.last().filter(|_| fences.len() % 2 == 1) {
        Some(fence) => format!("{fence}\n{rest}"),
        None => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(texts: &[&str]) -> SentBlocks {
        let names: Vec<String> = texts.iter().enumerate().map(|(at, text)| name_of(at + 1, text)).collect();
        SentBlocks::new(names.iter().rev().map(String::as_str))
    }

    #[test]
    fn what_was_sent_is_not_said_again() {
        let code = "See:\n```rust\nlet a = 1;\nlet b = 2;\n```\nDone.";
        let rows: [(&[&str], &[&str], &[&str]); 9] = [
            (&[], &["All of it."], &["All of it."]),
            (&["All of it."], &["All of it."], &[""]),
            (&["One two.", "Three."], &["One two.\n\nThree.\n\nFour."], &["Four."]),
            (&["Working."], &["Working.", "It is done."], &["", "It is done."]),
            (&["Working.", "It is"], &["Working.", "It is done."], &["", "done."]),
            (&["It is"], &["Working.", "It is done."], &["Working.", "done."]),
            // The model has thought of something else.
            (&["One two."], &["Two one."], &["Two one."]),
            (&["See:\n```rust\nlet a = 1;\n```"], &[code], &["```rust\nlet b = 2;\n```\nDone."]),
            (&["Same.", "Same."], &["Same.", "Same.", "Same."], &["", "", "Same."]),
        ];
        for (sent, answers, expect) in rows {
            let mut sent_blocks = blocks(sent);
            let left: Vec<String> = answers.iter().map(|text| sent_blocks.left_of(text)).collect();
            assert_eq!(left, expect, "{sent:?} {answers:?}");
        }
        let mut others = SentBlocks::new(["b1", "b2-x-y", "m1-2-3", "1", "b3-0-e3b0c44298fc1c14"]);
        assert_eq!(others.left_of("text"), "text");
    }

    proptest! {
        #[test]
        fn blocks_and_what_is_left_are_the_answer(words in prop::collection::vec("[a-zé😀]{1,6}", 1..12), cut in 0usize..12) {
            let cut = cut.min(words.len());
            let sent = words[..cut].join(" ");
            let whole = words.join(" ");
            let left = blocks(&[sent.as_str()]).left_of(&whole);
            prop_assert_eq!(left, words[cut..].join(" "));
        }
    }
}
