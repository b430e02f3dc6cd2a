//! Characters that a server cuts between their two UTF-16 halves and sends in two events of a stream: `"\ud83d"` ends a text of one,
//! `"\ude00"` begins that of the next. JSON in Rust refuses such a half, so a character of our own stands in for it until the text of
//! its block goes on ([`join`]).

use std::borrow::Cow;

use openclaw_protocol::mend::mend_with;

/// The first of the stand-ins: one for each surrogate, at the end of what Unicode leaves to private use.
const FIRST: u32 = 0x10_F800;
/// The first surrogate.
const SURROGATES: u32 = 0xD800;
/// Number of surrogates.
const COUNT: u32 = 0x800;

/// JSON that Rust reads.
pub(crate) struct Mended {
    pub(crate) json: String,
    /// True if halves are replaced by stand-ins in `json`.
    pub(crate) has_stand_ins: bool,
}

/// Puts stand-ins in the place of lone halves. If a text contains these characters itself, they
/// would be taken for halves: U+FFFD is then used instead of stand-ins.
pub(crate) fn mended(json: &str) -> Mended {
    // The second way of writing one of them begins so, whatever its case.
    let is_escaped = json.to_ascii_lowercase().contains("\\udbf");
    let has_stand_ins = !is_escaped && !json.chars().any(|c| half_of(c).is_some());
    let instead = |unit: u32| match has_stand_ins {
        true => char::from_u32(FIRST + (unit - SURROGATES)),
        false => Some(char::REPLACEMENT_CHARACTER),
    };
    Mended { json: mend_with(json.as_bytes(), instead), has_stand_ins }
}

/// A piece of a text without stand-ins: halves that meet are the character they are of, and one that stays alone is U+FFFD. A first
/// half at the end is `held` back until the next piece.
pub(crate) fn join<'p>(held: &mut Option<u32>, piece: &'p str, has_stand_ins: bool) -> Cow<'p, str> {
    if held.is_none() && !has_stand_ins {
        return Cow::Borrowed(piece);
    }
    let mut out = String::with_capacity(piece.len() + 4);
    for c in piece.chars() {
        let half = half_of(c).filter(|_| has_stand_ins);
        match (held.take(), half) {
            (Some(high), Some(low)) if low >= 0xDC00 => out.extend(whole(high, low)),
            (before, half) => {
                out.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                match half {
                    Some(high) if high < 0xDC00 => *held = Some(high),
                    Some(_) => out.push(char::REPLACEMENT_CHARACTER),
                    None => out.push(c),
                }
            }
        }
    }
    Cow::Owned(out)
}

/// A text that is not gone on with.
pub(crate) fn end(text: &str) -> String {
    let mut held = None;
    let mut out = join(&mut held, text, true).into_owned();
    out.extend(held.map(|_| char::REPLACEMENT_CHARACTER));
    out
}

/// The surrogate that a character stands in for.
fn half_of(c: char) -> Option<u32> {
    let at = u32::from(c).checked_sub(FIRST).filter(|at| *at < COUNT)?;
    Some(SURROGATES + at)
}

fn whole(high: u32, low: u32) -> Option<char> {
    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of JSON strings as they are heard, and what is left at the end.
    fn heard(pieces: &[&str]) -> (Vec<String>, bool) {
        let mut held = None;
        let told = pieces.iter().map(|piece| {
            let json = format!("\"{piece}\"");
            let Mended { json, has_stand_ins } = mended(&json);
            let text: String = serde_json::from_str(&json).unwrap();
            join(&mut held, &text, has_stand_ins).into_owned()
        });
        let told = told.collect();
        (told, held.is_some())
    }

    #[test]
    fn halves_that_meet_are_a_character_and_others_are_replaced() {
        let rows: &[(&[&str], &[&str], bool)] = &[
            (&[r"a\ud83d", r"\ude00b"], &["a", "😀b"], false),
            (&[r"\ud83d", "", r"\ude00"], &["", "", "😀"], false),
            (&[r"\uD83D", r"\uDE00\ud83d", r"\ude01"], &["", "😀", "😁"], false),
            (&[r"a\ud83d", "b"], &["a", "\u{fffd}b"], false),
            (&[r"a\ud83d"], &["a"], true),
            (&[r"\ude00b"], &["\u{fffd}b"], false),
            (&[r"a\ud83dc"], &["a\u{fffd}c"], false),
            (&[r"\ud83d", r"\ud83d", r"\ude00"], &["", "\u{fffd}", "😀"], false),
            // A character of its own is not taken for a half.
            (&["\u{10f83d}", "\u{10fa00}"], &["\u{10f83d}", "\u{10fa00}"], false),
            (&["\u{10f83d}\\ud83d", r"\ude00"], &["\u{10f83d}\u{fffd}", "\u{fffd}"], false),
            (&[r"\udbfe\udc00\ud83d"], &["\u{10f800}\u{fffd}"], false),
        ];
        for (pieces, told, is_held) in rows {
            let (found, held) = heard(pieces);
            assert_eq!(
                (found, held),
                (told.iter().map(ToString::to_string).collect(), *is_held),
                "{pieces:?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_not_gone_on_with_has_no_halves() {
        assert_eq!(end(&serde_json::from_str::<String>(&mended(r#""x\ud83d""#).json).unwrap()), "x\u{fffd}");
    }
}
