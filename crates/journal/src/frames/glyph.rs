//! Characters as people see them, for a comparison that no other spelling gets around: small letters, without accents and strokes, the
//! width of East Asian writing, markup and characters that can't be seen; letters and signs that look like a Latin one are that one.
//!
//! A line is read as it is compared, glyph by glyph: nothing of it is copied.

use openclaw_protocol::printable::{is_control, is_shapeless};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Characters of other scripts, each with the one of ASCII that it looks like, in order (`build.rs`): four bytes a row, the lowest of
/// which is the look.
static LOOK_ALIKES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/look_alikes.bin"));
/// Most glyphs that one character is read as; more of them are passed over.
const MOST: usize = 6;
/// Longest HTML tag in characters.
const LONGEST_TAG: usize = 256;
/// Longest character reference of HTML in bytes.
const LONGEST_REFERENCE: usize = 10;
/// Pairs of letters that look like one.
const PAIRS: [(char, [char; 2]); 3] = [('m', ['r', 'n']), ('w', ['v', 'v']), ('d', ['c', 'l'])];

/// Character of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Glyph {
    /// Character that it looks like.
    pub(super) shown: char,
    /// Range of bytes in the text.
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if markup, or something that can't be seen, stands before it.
    pub(super) is_apart: bool,
    /// True if it is a line break, or if one that was passed over stands before it.
    pub(super) is_broken: bool,
}

impl Glyph {
    /// True for a blank or a line break.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.shown, ' ' | '\n')
    }

    /// True if it may stand between two words.
    pub(super) fn parts_words(&self) -> bool {
        self.is_blank() || self.shown == '_'
    }
}

/// The glyphs of a line. Several blanks are one, and characters without a shape none.
#[derive(Debug, Clone)]
pub(super) struct Glyphs<'a> {
    text: &'a str,
    /// Byte behind the last character that was read.
    at: usize,
    end: usize,
    /// Last character that was read.
    last: Glyph,
    /// Glyphs of that character that are left, the next one first.
    left: Looks,
}

impl<'a> Glyphs<'a> {
    /// The glyphs of a part of a text.
    pub(super) fn of(text: &'a str, from: usize, to: usize) -> Self {
        Self { text, at: from, end: to, last: Glyph::default(), left: Looks::default() }
    }

    /// The glyphs from one of them on.
    pub(super) fn from(&self, glyph: &Glyph) -> Self {
        Self::of(self.text, glyph.from, self.end)
    }

    /// Byte behind the last glyph.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns the glyphs behind these words, if the line goes on with them as people see it. Digits may stand for some of the letters.
    pub(super) fn behind(&self, words: &str) -> Option<Self> {
        let mut rest = self.clone();
        let (mut has_digits, mut has_letters) = (false, false);
        for wanted in words.chars() {
            let mut ahead = rest.clone();
            let glyph = ahead.next()?;
            let wanted = wanted.to_ascii_lowercase();
            let is_same = match wanted {
                ' ' => glyph.parts_words(),
                _ if alike(glyph.shown) == alike(wanted) => true,
                _ if stands_for(glyph.shown, wanted) => {
                    has_digits = true;
                    true
                }
                _ => may_be(glyph.shown, wanted) && ahead.closes_pair(wanted),
            };
            if is_same {
                has_letters |= glyph.shown.is_alphabetic();
                rest = ahead;
            } else if wanted != ' ' || !glyph.is_apart {
                // What can't be seen passes for a blank.
                return None;
            }
        }
        // A number is no word.
        (has_letters || !has_digits).then_some(rest)
    }

    /// True if a letter or digit stands before and behind the character that was just read.
    fn is_within_word(&self) -> bool {
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        self.last.shown.is_alphanumeric() && rest.starts_with(char::is_alphanumeric)
    }

    /// Reads the second letter of the pair that looks like `wanted`.
    fn closes_pair(&mut self, wanted: char) -> bool {
        let second = self.next().map(|glyph| glyph.shown);
        PAIRS.iter().any(|(one, [_, closing])| *one == wanted && Some(*closing) == second)
    }
}

impl Iterator for Glyphs<'_> {
    type Item = Glyph;

    fn next(&mut self) -> Option<Glyph> {
        let (mut is_apart, mut is_broken) = (false, false);
        loop {
            if let Some(shown) = self.left.next() {
                self.last.shown = shown;
                return Some(self.last);
            }
            let rest = self.text.get(self.at..self.end)?;
            let c = rest.chars().next()?;
            let (from, tag) = (self.at, tag(rest));
            let (c, length) = reference(rest).unwrap_or((c, c.len_utf8()));
            self.at += if tag > 0 { tag } else { length };
            is_broken |= is_break(c);
            self.left = match tag {
                0 if c == '_' && self.is_within_word() => Looks::of(['_']),
                // The end of the line is no blank.
                0 if rest.starts_with('\n') => Looks::of(['\n']),
                0 if rest.starts_with("\r\n") => Looks::default(),
                0 => look(c),
                _ => Looks::default(),
            };
            is_apart |= self.left.is_empty();
            if self.last.is_blank() && self.left.is_blank() {
                self.left = Looks::default();
            }
            if !self.left.is_empty() {
                self.last = Glyph { shown: ' ', from, to: self.at, is_apart, is_broken };
            }
        }
    }
}

/// Glyphs that one character is read as.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    shown: [char; MOST],
    from: u8,
    to: u8,
}

impl Looks {
    fn of(shown: impl IntoIterator<Item = char>) -> Self {
        let mut looks = Self::default();
        for (place, shown) in looks.shown.iter_mut().zip(shown) {
            *place = shown;
            looks.to += 1;
        }
        looks
    }

    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    fn is_blank(&self) -> bool {
        self.shown.first() == Some(&' ')
    }

    fn next(&mut self) -> Option<char> {
        let shown = *self.shown.get(usize::from(self.from)).filter(|_| !self.is_empty())?;
        self.from += 1;
        Some(shown)
    }
}

/// True if what begins with this glyph may look like this letter.
pub(super) fn may_be(shown: char, wanted: char) -> bool {
    alike(shown) == alike(wanted)
        || stands_for(shown, wanted)
        || PAIRS.iter().any(|(one, [begins, _])| *one == wanted && *begins == shown)
}

/// True for a digit that people write in place of this letter. Those that can hardly be told apart are [`alike`].
fn stands_for(digit: char, letter: char) -> bool {
    matches!(
        (digit, letter),
        ('2', 'z') | ('3', 'e') | ('4', 'a') | ('5', 's') | ('6' | '9', 'g') | ('7', 't') | ('8', 'b')
    )
}

/// The same for letters and digits that can hardly be told apart.
fn alike(c: char) -> char {
    match c {
        'i' | '1' => 'l',
        '0' => 'o',
        _ if c.is_numeric() => look_alike(c).unwrap_or(c),
        _ => c,
    }
}

/// Returns the character of ASCII that another one looks like.
fn look_alike(c: char) -> Option<char> {
    let (rows, _) = LOOK_ALIKES.as_chunks::<4>();
    let at = rows.binary_search_by_key(&u32::from(c), |row| u32::from_le_bytes(*row) >> 8).ok()?;
    rows.get(at).map(|[look, ..]| char::from(*look))
}

/// True for a character that begins a new line wherever text is read.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// True for a character that looks like a blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{1d159}')
}

/// True for an escape, or a mark of emphasis or of code.
fn is_markup(c: char) -> bool {
    matches!(c, '*' | '_' | '~' | '`' | '|' | '\\')
}

/// Returns the length in bytes of the HTML tag or comment at the beginning of a text; 0 if there is none. Words of a frame, or of one
/// that was replaced, are no tag: they are read as they are.
fn tag(text: &str) -> usize {
    let Some(rest) = text.strip_prefix('<') else { return 0 };
    if !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '!')) {
        return 0;
    }
    let (mut has_value, mut left) = (false, LONGEST_TAG);
    let end = rest.find(|c: char| {
        has_value |= c == '=';
        left = left.saturating_sub(1);
        let goes_on = match has_value {
            true => {
                !matches!(c, '<' | '>' | '‹' | '›')
                    && !is_break(c)
                    && matches!(sign(c), None | Some(':' | '#' | '"'))
            }
            false => c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '/' | '!'),
        };
        left == 0 || !goes_on
    });
    end.filter(|end| rest.as_bytes().get(*end) == Some(&b'>')).map_or(0, |end| end + 2)
}

/// Returns the character that a reference of HTML at the beginning of a text stands for, `&#91;` or `&#x5b;`, and the length of that.
fn reference(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("&#")?;
    let (digits, radix) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let number = digits.get(..digits.bytes().take(LONGEST_REFERENCE).position(|digit| digit == b';')?)?;
    let c = char::from_u32(u32::from_str_radix(number, radix).ok()?)?;
    Some((c, text.len() - digits.len() + number.len() + 1))
}

/// Returns the sign that a character looks like, if it is one that frames are made of.
pub(super) fn sign(c: char) -> Option<char> {
    if c.is_ascii() {
        return is_sign(c).then_some(c);
    }
    Some(match c {
        '〔' | '〖' | '〘' | '〚' | '⟬' | '⁅' | '❲' | '﹝' | '︹' | '︻' | '﹇' | '⌈' | '⌊' | '⎡' | '⎢'
        | '⎣' | '⦗' | '⹕' | '⹗' | '⟦' | '⟨' | '˹' | '˻' | '⟅' | '⸢' | '⸤' | '「' | '『' | '｢' | '﹁'
        | '﹃' | '⎴' | '⌜' | '⌞' | '༺' | '᚛' => '[',
        '〕' | '〗' | '〙' | '〛' | '⟭' | '⁆' | '❳' | '﹞' | '︺' | '︼' | '﹈' | '⌉' | '⌋' | '⎤' | '⎥'
        | '⎦' | '⦘' | '⹖' | '⹘' | '⟧' | '⟩' | '˺' | '˼' | '⟆' | '⸣' | '⸥' | '」' | '』' | '｣' | '﹂'
        | '﹄' | '⎵' | '⌝' | '⌟' | '༻' | '᚜' => ']',
        '｟' | '⦅' | '⸨' | '⎛' | '⎜' | '⎝' | '⦇' | '⸦' | '༼' => '(',
        '｠' | '⦆' | '⸩' | '⎞' | '⎟' | '⎠' | '⸧' | '༽' => ')',
        // Letters, as Unicode has it.
        'ː' | 'ꓽ' | 'ः' | 'ঃ' | 'ਃ' | 'ઃ' | 'ః' | 'ಃ' | 'ഃ' | 'ඃ' | 'း' | 'ះ' | 'ៈ' => {
            ':'
        }
        _ if c.is_alphanumeric() => return None,
        _ => return look_alike(c).filter(|look| is_sign(*look)),
    })
}

fn is_sign(c: char) -> bool {
    matches!(c, '[' | ']' | '(' | ')' | ':' | '#' | '"')
}

/// Returns the glyphs that a character looks like: mostly one, several for one such as `ﬁ`, none for markup and for what can't be seen.
fn look(c: char) -> Looks {
    if is_blank(c) || is_break(c) {
        return Looks::of([' ']);
    }
    if is_markup(c) || is_control(c) || is_shapeless(c) {
        return Looks::default();
    }
    if c.is_ascii() {
        return Looks::of([c.to_ascii_lowercase()]);
    }
    if let Some(sign) = sign(c) {
        return Looks::of([sign]);
    }
    match look_alike(c).filter(|_| !is_digit(c)) {
        Some(look) if is_markup(look) => Looks::default(),
        Some(look) if !is_sign(look) => Looks::of([look]),
        // A bracket that is one with its content, as in `⑴`, is none that could be replaced.
        _ => Looks::of(c.nfkd().filter(|part| !is_combining_mark(*part) && sign(*part).is_none()).map(small)),
    }
}

/// True for digits of all scripts, whatever letters some look like.
fn is_digit(c: char) -> bool {
    c.is_numeric() && !c.is_alphabetic()
}

/// Returns the small letter that a part of a character looks like.
fn small(part: char) -> char {
    let look = look_alike(part).filter(|look| look.is_ascii_alphabetic() && !is_digit(part));
    look.unwrap_or_else(|| part.to_lowercase().next().unwrap_or(part))
}
