//! A styled text, cut so that each piece fits: its words in one limit, what is made of it in another.

use std::ops::Range;

use super::styled::Styled;
use crate::text::{LengthUnit, Limit, TextPart, next_part, ranges};

/// The pieces of a text, as plain text is cut; lines of code keep their indent.
pub fn pieces(styled: &Styled, limit: Limit) -> Vec<Styled> {
    let parts = ranges(&styled.text, limit, &styled.code_blocks());
    parts.into_iter().map(|part| styled.slice(part)).collect()
}

/// The pieces of a text and what is made of each: the longest that fits in both limits. A single
/// character may be longer than that when it is rendered.
pub fn rendered_pieces(
    styled: &Styled,
    limit: Limit,
    rendered_limit: usize,
    render: &impl Fn(&Styled) -> String,
) -> Vec<(Styled, String)> {
    let cutting = Cutting { styled, code: styled.code_blocks(), limit, rendered_limit, render };
    let mut done = Vec::new();
    let mut start = 0;
    while start < styled.text.len() {
        let RenderedPiece { piece, rendered, next } = cutting.longest(start);
        if !piece.text.trim().is_empty() {
            done.push((piece, rendered));
        }
        start = next;
    }
    done
}

/// Maximum number of lengths tried for a piece whose rendered form is too long: enough to find the longest of a few thousand characters.
const TRIES: usize = 12;

/// A piece, what is made of it, and where the next one begins.
struct RenderedPiece {
    piece: Styled,
    rendered: String,
    next: usize,
}

struct Cutting<'a, R> {
    styled: &'a Styled,
    code: Vec<Range<usize>>,
    limit: Limit,
    rendered_limit: usize,
    render: &'a R,
}

impl<R: Fn(&Styled) -> String> Cutting<'_, R> {
    /// The longest piece that begins somewhere and fits.
    fn longest(&self, start: usize) -> RenderedPiece {
        let whole = self.part(start, self.limit);
        let from = whole.range.start;
        // Looks are looked for in so much of the text alone.
        let window = self.styled.slice(whole.range.clone());
        let made = |part: TextPart| {
            let piece = window.slice(part.range.start - from..part.range.end - from);
            let rendered = (self.render)(&piece);
            RenderedPiece { piece, rendered, next: part.next }
        };
        let whole = made(whole);
        let (mut low, mut high) = (1, self.limit.len(&window.text));
        let length = LengthUnit::Utf16.len(&whole.rendered);
        if length <= self.rendered_limit || high <= 1 {
            return whole;
        }
        let mut longest = None;
        let mut units = high * self.rendered_limit / length;
        for _ in 0..TRIES {
            units = units.clamp(low, high - 1);
            let piece = made(self.part(start, self.limit.of_units(units)));
            if LengthUnit::Utf16.len(&piece.rendered) <= self.rendered_limit {
                low = units + 1;
                longest = Some(piece);
            } else {
                high = units;
            }
            if low >= high {
                break;
            }
            units = (low + high) / 2;
        }
        // Not even one grapheme fits: it goes out as it is.
        longest.unwrap_or_else(|| made(self.part(start, self.limit.of_units(1))))
    }

    fn part(&self, start: usize, limit: Limit) -> TextPart {
        next_part(&self.styled.text, start, limit, &self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengthens each letter by its style.
    fn lengthened(styled: &Styled) -> String {
        let is_long = |at: usize| styled.spans.iter().any(|span| span.range.contains(&at));
        let letters = styled.text.char_indices();
        letters.map(|(at, c)| c.to_string().repeat(if is_long(at) { 20 } else { 1 })).collect()
    }

    #[test]
    fn pieces_are_as_long_as_fits_when_they_are_sent() {
        let words = "word ".repeat(400);
        let plain = Styled { text: words.clone(), spans: Vec::new() };
        let mut long = Styled::default();
        long.push_as(&words, crate::markdown::Style::Bold);
        let mut mixed = Styled { text: words.clone(), spans: Vec::new() };
        mixed.push(&long);
        for styled in [&plain, &long, &mixed] {
            let pieces = rendered_pieces(styled, Limit::utf16(1000), 1000, &lengthened);
            let lengths: Vec<usize> = pieces.iter().map(|(_, rendered)| rendered.len()).collect();
            let (last, all_but_last) = lengths.split_last().unwrap();
            assert!(all_but_last.iter().all(|length| (850..=1000).contains(length)), "{lengths:?}");
            assert!(*last <= 1000);
        }
    }
}
