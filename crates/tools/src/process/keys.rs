//! Keys as a terminal sends them (spec `tools.md` §4; the sequences are xterm's).

/// Encoded key presses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) bytes: Vec<u8>,
    /// Warnings for the model about what was not understood.
    pub(super) warnings: Vec<String>,
}

/// Held keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KeyModifiers {
    control: bool,
    alt: bool,
    shift: bool,
}

/// Method of building the sequence of a key.
#[derive(Debug, Clone, Copy)]
enum Sequence {
    /// Sends these bytes, whatever modifier is held.
    Plain(&'static str),
    /// `ESC [ ⟨letter⟩`
    Cursor(char),
    /// `ESC O ⟨letter⟩`, and as [`Sequence::Cursor`] where something is held.
    Function(char),
    /// `ESC [ ⟨number⟩ ~`
    Tilde(u8),
}

const NAMED: &[(&str, Sequence)] = &[
    ("enter", Sequence::Plain("\r")),
    ("return", Sequence::Plain("\r")),
    ("tab", Sequence::Plain("\t")),
    ("escape", Sequence::Plain("\u{1b}")),
    ("esc", Sequence::Plain("\u{1b}")),
    ("space", Sequence::Plain(" ")),
    ("backspace", Sequence::Plain("\u{7f}")),
    ("bspace", Sequence::Plain("\u{7f}")),
    ("up", Sequence::Cursor('A')),
    ("down", Sequence::Cursor('B')),
    ("right", Sequence::Cursor('C')),
    ("left", Sequence::Cursor('D')),
    ("home", Sequence::Cursor('H')),
    ("end", Sequence::Cursor('F')),
    ("insert", Sequence::Tilde(2)),
    ("ic", Sequence::Tilde(2)),
    ("delete", Sequence::Tilde(3)),
    ("dc", Sequence::Tilde(3)),
    ("pageup", Sequence::Tilde(5)),
    ("pgup", Sequence::Tilde(5)),
    ("ppage", Sequence::Tilde(5)),
    ("pagedown", Sequence::Tilde(6)),
    ("pgdn", Sequence::Tilde(6)),
    ("npage", Sequence::Tilde(6)),
    ("f1", Sequence::Function('P')),
    ("f2", Sequence::Function('Q')),
    ("f3", Sequence::Function('R')),
    ("f4", Sequence::Function('S')),
    ("f5", Sequence::Tilde(15)),
    ("f6", Sequence::Tilde(17)),
    ("f7", Sequence::Tilde(18)),
    ("f8", Sequence::Tilde(19)),
    ("f9", Sequence::Tilde(20)),
    ("f10", Sequence::Tilde(21)),
    ("f11", Sequence::Tilde(23)),
    ("f12", Sequence::Tilde(24)),
    ("kp0", Sequence::Function('p')),
    ("kp1", Sequence::Function('q')),
    ("kp2", Sequence::Function('r')),
    ("kp3", Sequence::Function('s')),
    ("kp4", Sequence::Function('t')),
    ("kp5", Sequence::Function('u')),
    ("kp6", Sequence::Function('v')),
    ("kp7", Sequence::Function('w')),
    ("kp8", Sequence::Function('x')),
    ("kp9", Sequence::Function('y')),
    ("kp*", Sequence::Function('j')),
    ("kp+", Sequence::Function('k')),
    ("kp-", Sequence::Function('m')),
    ("kp.", Sequence::Function('n')),
    ("kp/", Sequence::Function('o')),
    ("kpenter", Sequence::Function('M')),
];

/// List of the accepted keys, for the model.
pub(super) const KNOWN: &str = "Keys are single characters, enter, tab, escape, space, backspace, up, down, left, right, home, end, insert, \
                                delete, pageup, pagedown, f1 to f12, kp0 to kp9, kpenter, ^D, and any of them after C-, M- or S-. Text \
                                goes into literal.";

/// Returns true if the text is a key: a single character or a name, with or without modifiers.
pub(super) fn is_known(key: &str) -> bool {
    let token = if key.trim().is_empty() { key } else { key.trim() };
    if token.strip_prefix('^').and_then(single).and_then(control).is_some() {
        return true;
    }
    let (_, name) = held(token);
    single(name).is_some() || NAMED.iter().any(|(known, _)| name.eq_ignore_ascii_case(known))
}

/// Keys by name, then bytes in hex, then text, in the order in which they are sent: text first, as it stands.
pub(super) fn encoded(keys: &[String], hex: &[String], literal: &str) -> Keys {
    let mut out = Keys::default();
    out.bytes.extend_from_slice(literal.as_bytes());
    for byte in hex {
        let digits = byte.trim();
        let bare = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
        let is_hex = (1..=2).contains(&bare.len()) && bare.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u8::from_str_radix(bare, 16).ok().filter(|_| is_hex) {
            Some(byte) => out.bytes.push(byte),
            None => out.warnings.push(format!("Invalid hex byte: {byte}")),
        }
    }
    for key in keys {
        press(key, &mut out);
    }
    out
}

fn press(key: &str, out: &mut Keys) {
    let token = if key.trim().is_empty() { key } else { key.trim() };
    if let Some(control) = token.strip_prefix('^').and_then(single).and_then(control) {
        return out.bytes.push(control);
    }
    let (held, name) = held(token);
    let lower = name.to_ascii_lowercase();
    if let Some((_, sequence)) = NAMED.iter().find(|(known, _)| *known == lower) {
        return out.bytes.extend_from_slice(&pressed(&lower, *sequence, held));
    }
    let Some(letter) = single(name) else {
        if held != KeyModifiers::default() {
            out.warnings.push(format!("Unknown key \"{name}\" for modifiers; sending literal."));
        }
        return out.bytes.extend_from_slice(name.as_bytes());
    };
    if held.alt {
        out.bytes.push(0x1b);
    }
    if let Some(byte) = control(letter).filter(|_| held.control) {
        return out.bytes.push(byte);
    }
    let letter = if held.shift { letter.to_ascii_uppercase() } else { letter };
    out.bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The held keys before a name.
fn held(token: &str) -> (KeyModifiers, &str) {
    let (mut held, mut rest) = (KeyModifiers::default(), token);
    loop {
        let mut chars = rest.chars();
        let (Some(which), Some('-')) = (chars.next(), chars.next()) else { return (held, rest) };
        // The key may be the dash itself.
        if chars.as_str().is_empty() {
            return (held, rest);
        }
        match which {
            'C' | 'c' => held.control = true,
            'M' | 'm' => held.alt = true,
            'S' | 's' => held.shift = true,
            _ => return (held, rest),
        }
        rest = chars.as_str();
    }
}

fn pressed(name: &str, sequence: Sequence, held: KeyModifiers) -> Vec<u8> {
    // xterm counts held keys from 1.
    let modifier = 1 + u8::from(held.shift) + 2 * u8::from(held.alt) + 4 * u8::from(held.control);
    match (sequence, modifier) {
        (Sequence::Plain(_), _) if name == "tab" && held.shift => b"\x1b[Z".to_vec(),
        (Sequence::Plain(text), _) => {
            let alt: &[u8] = if held.alt { b"\x1b" } else { b"" };
            let key: &[u8] = match name {
                "space" if held.control => b"\0",
                "backspace" | "bspace" if held.control => b"\x08",
                _ => text.as_bytes(),
            };
            [alt, key].concat()
        }
        (Sequence::Cursor(letter), 1) => format!("\u{1b}[{letter}").into_bytes(),
        (Sequence::Function(letter), 1) => format!("\u{1b}O{letter}").into_bytes(),
        (Sequence::Cursor(letter) | Sequence::Function(letter), held) => {
            format!("\u{1b}[1;{held}{letter}").into_bytes()
        }
        (Sequence::Tilde(number), 1) => format!("\u{1b}[{number}~").into_bytes(),
        (Sequence::Tilde(number), held) => format!("\u{1b}[{number};{held}~").into_bytes(),
    }
}

/// The byte of a key with control held.
fn control(letter: char) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        '?' => Some(0x7f),
        letter @ '@'..='_' => u8::try_from(letter).ok().map(|byte| byte & 0x1f),
        ' ' => Some(0),
        _ => None,
    }
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of spec `tools.md` §4, and the rest of the table.
    #[test]
    fn keys_are_what_xterm_sends() {
        let rows: [(&str, &[u8]); 32] = [
            ("enter", b"\r"),
            ("C-c", b"\x03"),
            ("^D", b"\x04"),
            ("M-x", b"\x1bx"),
            ("up", b"\x1b[A"),
            ("C-left", b"\x1b[1;5D"),
            ("S-tab", b"\x1b[Z"),
            ("C-M-delete", b"\x1b[3;7~"),
            ("Escape", b"\x1b"),
            ("backspace", b"\x7f"),
            ("C-space", b"\0"),
            ("C-M-x", b"\x1b\x18"),
            ("S-a", b"A"),
            ("C-[", b"\x1b"),
            ("C-?", b"\x7f"),
            ("M-enter", b"\x1b\r"),
            ("home", b"\x1b[H"),
            ("S-home", b"\x1b[1;2H"),
            ("pageup", b"\x1b[5~"),
            ("PgDn", b"\x1b[6~"),
            ("f1", b"\x1bOP"),
            ("C-f1", b"\x1b[1;5P"),
            ("f5", b"\x1b[15~"),
            ("f12", b"\x1b[24~"),
            ("kp5", b"\x1bOu"),
            ("kpenter", b"\x1bOM"),
            ("-", b"-"),
            ("C--", b"-"),
            ("a", b"a"),
            ("\u{e9}", "\u{e9}".as_bytes()),
            ("hello", b"hello"),
            (" ", b" "),
        ];
        for (key, bytes) in rows {
            let keys = encoded(&[key.to_owned()], &[], "");
            assert_eq!((keys.bytes.as_slice(), keys.warnings.len()), (bytes, 0), "{key}");
        }
    }

    #[test]
    fn bytes_and_text_are_sent_as_they_stand_and_what_is_wrong_is_told() {
        let all = encoded(
            &["C-nope".to_owned()],
            &["0x1b".to_owned(), "41".to_owned(), "zz".to_owned(), "1bb".to_owned(), "+1".to_owned()],
            "a\n",
        );
        assert_eq!(all.bytes, b"a\n\x1bAnope");
        assert_eq!(
            all.warnings,
            [
                "Invalid hex byte: zz",
                "Invalid hex byte: 1bb",
                "Invalid hex byte: +1",
                "Unknown key \"nope\" for modifiers; sending literal."
            ]
        );
        assert_eq!(encoded(&[], &[], ""), Keys::default());
    }

    #[test]
    fn a_word_is_no_key() {
        for (key, expect) in [
            ("enter", true),
            ("C-c", true),
            ("^D", true),
            ("S-Tab", true),
            ("C-M-delete", true),
            ("-", true),
            ("\u{e9}", true),
            (" ", true),
            ("ctrl-c", false),
            ("C-nope", false),
            ("hello", false),
            ("entr", false),
            ("", false),
        ] {
            assert_eq!(is_known(key), expect, "{key:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_key_is_sent_as_something(key in "([CMScms]-){0,4}\\PC{0,4}") {
            encoded(&[key], &[], "");
        }
    }
}
