//! A styled text, cut so that each piece fits: its words in one limit, what is made of it in another.

use super::styled::Styled;
use crate::text::{LengthUnit, Limit, ranges};

/// The pieces of a text, as plain text is cut; lines of code keep their indent.
pub fn pieces(styled: &Styled, limit: Limit) -> Vec<Styled> {
    let parts = ranges(&styled.text, limit, &styled.code_blocks());
    parts.into_iter().map(|part| styled.slice(part)).collect()
}

/// The pieces of a text and what is made of each. One that is too long when it is rendered is cut again, unless it is one character already.
pub fn rendered_pieces(
    styled: &Styled,
    limit: Limit,
    rendered_limit: usize,
    render: &impl Fn(&Styled) -> String,
) -> Vec<(Styled, String)> {
    let mut done = Vec::new();
    let mut waiting = pieces(styled, limit);
    waiting.reverse();
    while let Some(piece) = waiting.pop() {
        let rendered = render(&piece);
        let (visible, long) = (limit.len(&piece.text), LengthUnit::Utf16.len(&rendered));
        if long <= rendered_limit || visible <= 1 {
            done.push((piece, rendered));
            continue;
        }
        let shorter = (visible * rendered_limit / long).clamp(1, visible - 1);
        let smaller = pieces(&piece, limit.of_units(shorter));
        if smaller.iter().any(|smaller| smaller.text.len() == piece.text.len()) {
            // One grapheme of several units: it goes out as it is.
            done.push((piece, rendered));
        } else {
            waiting.extend(smaller.into_iter().rev());
        }
    }
    done
}
