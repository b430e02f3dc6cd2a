//! Characters as people see them, for a comparison that no other spelling gets around: small letters, without accents, the width of East
//! Asian writing and characters that can't be seen; letters and signs that look like a Latin one are that one.

use openclaw_protocol::printable::{is_control, is_shapeless};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Character of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    /// Character that it looks like.
    pub(super) shown: char,
    /// Range of bytes in the line.
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if something that can't be seen stands before it.
    pub(super) is_apart: bool,
    /// Text to insert before it.
    pub(super) before: Option<&'static str>,
    /// Text to write in its place.
    pub(super) instead: Option<&'static str>,
    /// Text to insert behind it.
    pub(super) after: Option<&'static str>,
}

impl Glyph {
    /// True for a blank or a line break.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.shown, ' ' | '\n')
    }

    /// Writes another text in its place, which looks like `shown`.
    pub(super) fn turn_into(&mut self, shown: char, text: &'static str) {
        (self.shown, self.instead) = (shown, Some(text));
    }
}

/// Reads a line. Several blanks are one, and characters without a shape none.
pub(super) fn read(line: &str, glyphs: &mut Vec<Glyph>) {
    glyphs.clear();
    let (mut was_blank, mut is_apart) = (false, false);
    for (from, c) in line.char_indices() {
        let to = from + c.len_utf8();
        let mut push = |shown| {
            let glyph = Glyph { shown, from, to, is_apart, before: None, instead: None, after: None };
            glyphs.push(glyph);
        };
        if c.is_whitespace() {
            let is_break = matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
            if is_break || !was_blank {
                push(if is_break { '\n' } else { ' ' });
            }
            (was_blank, is_apart) = (true, false);
        } else if is_shapeless(c) || is_control(c) {
            is_apart = true;
        } else {
            look(c, push);
            (was_blank, is_apart) = (false, false);
        }
    }
}

/// Returns the sign that a character looks like, if it is one that frames are made of.
pub(super) fn sign(c: char) -> Option<char> {
    if c.is_ascii() {
        return matches!(c, '[' | ']' | '(' | ')' | ':' | '#').then_some(c);
    }
    Some(match c {
        '［' | '【' | '〔' | '〖' | '〘' | '〚' | '⟦' | '⟬' | '⁅' | '❲' | '⦋' | '⦍' | '⦏' | '﹝' | '︹'
        | '︻' | '︗' | '﹇' => '[',
        '］' | '】' | '〕' | '〗' | '〙' | '〛' | '⟧' | '⟭' | '⁆' | '❳' | '⦌' | '⦎' | '⦐' | '﹞' | '︺'
        | '︼' | '︘' | '﹈' => ']',
        '（' | '﹙' | '︵' | '⁽' | '₍' | '❨' | '❪' | '⟮' | '⦅' | '｟' | '⸨' => '(',
        '）' | '﹚' | '︶' | '⁾' | '₎' | '❩' | '❫' | '⟯' | '⦆' | '｠' | '⸩' => ')',
        '：' | '﹕' | '︓' | '︰' | '∶' | '꞉' | 'ː' | '˸' | '։' | '׃' | '⁚' | '܃' | '܄' | '᛬' => {
            ':'
        }
        '＃' | '﹟' | '♯' | '⌗' => '#',
        _ => return None,
    })
}

/// Tells what a character looks like: mostly one character, several for one such as `㏂`.
fn look(c: char, mut push: impl FnMut(char)) {
    if c.is_ascii() {
        return push(c.to_ascii_lowercase());
    }
    if let Some(same) = sign(c).or_else(|| letter(c)) {
        return push(same);
    }
    // Ideographs and syllables of Hangul have no other form that matters.
    if matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}') {
        return push(c);
    }
    for part in c.nfkd().filter(|part| !is_combining_mark(*part)) {
        // A bracket that is one with its content, as in `⑴`, is none that could be replaced.
        if sign(part).is_none() {
            let small = || part.to_lowercase().next().unwrap_or(part);
            push(letter(part).unwrap_or_else(small));
        }
    }
}

/// Returns the Latin letter that a letter of another script, or a dressed one, looks like. Whole alphabets that have a plain form in
/// Unicode (wide, mathematical, circled) need no row.
fn letter(c: char) -> Option<char> {
    let nth = |first: u32| char::from_u32(u32::from('a') + u32::from(c) - first);
    Some(match c {
        '\u{1f130}'..='\u{1f149}' => return nth(0x1_f130),
        '\u{1f150}'..='\u{1f169}' => return nth(0x1_f150),
        '\u{1f170}'..='\u{1f189}' => return nth(0x1_f170),
        '\u{1f1e6}'..='\u{1f1ff}' => return nth(0x1_f1e6),
        'А' | 'а' | 'Α' | 'α' | 'ɑ' | 'ᴀ' | 'Ꭺ' => 'a',
        'В' | 'в' | 'Ь' | 'ь' | 'Β' | 'β' | 'ʙ' | 'Ᏼ' => 'b',
        'С' | 'с' | 'Ϲ' | 'ϲ' | 'ᴄ' | 'Ꮯ' => 'c',
        'Ԁ' | 'ԁ' | 'ᴅ' | 'Ꭰ' => 'd',
        'Е' | 'е' | 'Ё' | 'ё' | 'Є' | 'є' | 'Ε' | 'ε' | 'ᴇ' | 'Ꭼ' => 'e',
        'Ғ' | 'ғ' | 'Ϝ' | 'ꜰ' | 'ƒ' => 'f',
        'Ԍ' | 'ԍ' | 'ɡ' | 'ɢ' | 'ց' | 'Ꮐ' => 'g',
        'Н' | 'н' | 'Һ' | 'һ' | 'Η' | 'ʜ' | 'հ' | 'Ꮋ' => 'h',
        'І' | 'і' | 'Ї' | 'ї' | 'Ι' | 'ι' | 'ı' | 'ɪ' | 'Ꭵ' => 'i',
        'Ј' | 'ј' | 'Ϳ' | 'ϳ' | 'ᴊ' | 'Ꭻ' => 'j',
        'К' | 'к' | 'Κ' | 'κ' | 'ᴋ' | 'Ꮶ' => 'k',
        'Ӏ' | 'ӏ' | 'ʟ' | 'ǀ' | 'Ꮮ' => 'l',
        'М' | 'м' | 'Μ' | 'μ' | 'ᴍ' | 'Ꮇ' => 'm',
        'П' | 'п' | 'Ν' | 'η' | 'ɴ' | 'ո' => 'n',
        'О' | 'о' | 'Ο' | 'ο' | 'σ' | 'ᴏ' | 'օ' => 'o',
        'Р' | 'р' | 'Ρ' | 'ρ' | 'ᴘ' | 'Ꮲ' => 'p',
        'Ԛ' | 'ԛ' | 'զ' => 'q',
        'Г' | 'г' | 'ʀ' | 'Ꭱ' => 'r',
        'Ѕ' | 'ѕ' | 'ꜱ' | 'Ꮪ' => 's',
        'Т' | 'т' | 'Τ' | 'τ' | 'ᴛ' | 'Ꭲ' => 't',
        'υ' | 'ս' | 'ᴜ' => 'u',
        'Ѵ' | 'ѵ' | 'ν' | 'ᴠ' | 'Ꮩ' => 'v',
        'Ԝ' | 'ԝ' | 'ω' | 'ᴡ' | 'Ꮃ' => 'w',
        'Х' | 'х' | 'Χ' | 'χ' => 'x',
        'У' | 'у' | 'Ү' | 'ү' | 'Υ' | 'γ' | 'ʏ' | 'Ꭹ' => 'y',
        'Ζ' | 'ᴢ' | 'Ꮓ' => 'z',
        '⁄' | '∕' | '⧸' => '/',
        '‐' | '‑' | '‒' | '–' | '—' | '−' | '﹣' | '－' => '-',
        _ => return None,
    })
}
