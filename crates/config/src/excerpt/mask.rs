//! Masking secrets in a config text that does not parse. With a character missing, the structure is
//! unknown, so too much is masked rather than too little: everything behind a secret's name,
//! whatever is between them, and each text that looks random.

use crate::redact::is_secret_name;

/// Shorter parts of a word are not taken for random.
const MIN_RANDOM_LENGTH: usize = 12;
/// Runs of digits, or of letters, of which a random word has at least so many.
const MIN_RUNS: usize = 3;
/// The same for words of letters alone: how often a capital follows a small letter. Names of keys have fewer.
const MIN_HUMPS: usize = 4;

/// The text with stars for secrets. It is as long as before and has the same lines, so that places in it stay.
pub(super) fn mask(text: &str) -> String {
    let mut masker = Masker { chars: text.chars().collect(), at: 0 };
    while let Some(c) = masker.peek() {
        if is_of_word(c) { masker.word() } else { masker.at += 1 }
    }
    masker.chars.into_iter().collect()
}

struct Masker {
    chars: Vec<char>,
    at: usize,
}

/// State of a secret whose name was read.
#[derive(Default)]
struct Behind {
    /// Brackets that are open since.
    depth: usize,
    /// True if something was masked that may be all of it.
    is_masked: bool,
}

impl Masker {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// A word outside of secrets.
    fn word(&mut self) {
        let from = self.at;
        let word = self.take_word();
        if !is_secret_name(&word) {
            if looks_random(&word) {
                self.hide(from);
            }
        } else if !self.is_value(from) {
            // The quote that ends the name begins no text.
            if self.peek().is_some_and(is_quote) {
                self.at += 1;
            }
            self.behind_name();
        }
    }

    /// Masks what stands behind the name of a secret, up to where it certainly ends.
    fn behind_name(&mut self) {
        let mut behind = Behind::default();
        while let Some(c) = self.peek() {
            match c {
                '/' if self.is_comment() => {
                    self.comment();
                    continue;
                }
                '{' | '[' => behind.depth += 1,
                '}' | ']' if behind.depth <= 1 => return,
                '}' | ']' => behind.depth -= 1,
                ',' | '\n' if behind.depth == 0 && behind.is_masked => return,
                _ if is_quote(c) => {
                    self.text(&mut behind);
                    continue;
                }
                _ if is_of_word(c) => {
                    self.hide_word(&mut behind);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn is_comment(&self) -> bool {
        matches!(self.chars.get(self.at..), Some(['/', '/' | '*', ..]))
    }

    /// A comment may hold the secret, or stand before it.
    fn comment(&mut self) {
        let from = self.at;
        let rest = self.chars.get(from..).unwrap_or_default();
        let length = if rest.starts_with(&['/', '*']) {
            rest.windows(2).skip(2).position(|pair| matches!(pair, ['*', '/'])).map(|at| at + 4)
        } else {
            rest.iter().position(|c| *c == '\n')
        };
        self.at = from + length.unwrap_or(rest.len());
        self.hide(from);
    }

    /// A text in quotes. A text that is not closed in its line may go on in the next.
    fn text(&mut self, behind: &mut Behind) {
        let (from, quote) = (self.at, self.peek());
        self.at += 1;
        let mut is_escaped = false;
        while let Some(c) = self.peek() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '\n' => {
                    behind.is_masked = false;
                    return self.hide(from);
                }
                _ if Some(c) == quote => {
                    self.at += 1;
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        if behind.depth == 0 || !self.is_before(&[':']) {
            self.hide(from);
            behind.is_masked = true;
        }
    }

    fn hide_word(&mut self, behind: &mut Behind) {
        let from = self.at;
        let word = self.take_word();
        if behind.depth > 0 && self.is_before(&[':']) && !looks_random(&word) {
            return;
        }
        self.hide(from);
        // The value after it is a secret once more.
        behind.is_masked = !is_secret_name(&word);
    }

    fn take_word(&mut self) -> String {
        let from = self.at;
        while self.peek().is_some_and(is_of_word) {
            self.at += 1;
        }
        self.chars.get(from..self.at).unwrap_or_default().iter().collect()
    }

    fn hide(&mut self, from: usize) {
        for c in self.chars.get_mut(from..self.at).unwrap_or_default() {
            if *c != '\n' {
                *c = '*';
            }
        }
    }

    /// True if a word that was just read is a value, as in `mode: "token",`, and so no name.
    fn is_value(&self, from: usize) -> bool {
        let before = self.chars.get(..from).unwrap_or_default();
        let before = before.strip_suffix(&['"']).or_else(|| before.strip_suffix(&['\''])).unwrap_or(before);
        let has_colon = before.iter().rev().find(|c| !c.is_whitespace()) == Some(&':');
        has_colon && self.is_before(&[',', '}', ']'])
    }

    /// True if one of these characters is next, apart from blanks and the quote that closes what
    /// was read.
    fn is_before(&self, expected: &[char]) -> bool {
        let behind = self.chars.get(self.at..).unwrap_or_default();
        let behind = match behind {
            [quote, rest @ ..] if is_quote(*quote) => rest,
            rest => rest,
        };
        behind.iter().find(|c| !c.is_whitespace()).is_some_and(|next| expected.contains(next))
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

fn is_of_word(c: char) -> bool {
    !c.is_whitespace() && !is_quote(c) && !"{}[],:=".contains(c)
}

/// True if part of a word looks like a generated key: letters and digits in turns, or small letters
/// and capitals.
fn looks_random(word: &str) -> bool {
    let parts = word.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|part| part.len() >= MIN_RANDOM_LENGTH).any(|part| {
        let turns = |is_turn: fn(u8, u8) -> bool| {
            part.as_bytes().windows(2).filter(|pair| matches!(pair, [a, b] if is_turn(*a, *b))).count()
        };
        let runs = 1 + turns(|a, b| a.is_ascii_digit() != b.is_ascii_digit());
        let humps = turns(|a, b| a.is_ascii_lowercase() && b.is_ascii_uppercase());
        runs >= MIN_RUNS || humps >= MIN_HUMPS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hunter-two";

    #[test]
    fn a_secret_is_masked_whatever_is_missing_before_it() {
        let rows = [
            r#"{"token": "S", "x": 1}"#,
            r#"{"token" "S"}"#,
            r#"{"botToken""S"}"#,
            r#"{"apiKey", "S"}"#,
            r#"{"apiKey" = "S"}"#,
            "{\"token\"\n  \"S\"}",
            "{\"token\":\n\n  \"S\"}",
            "{\"token\",\n  S}",
            r#"{"token: "S"}"#,
            r#"{token": "S"}"#,
            r#"{token"S"}"#,
            r#"{"token"S"}"#,
            r#"{"token": S"}"#,
            r#"{"token": "S}"#,
            r#"{'token': 'S"}"#,
            r#"{'token" 'S'}"#,
            r#"{"token": S, "x": 1}"#,
            r#"{token S}"#,
            r#"{"token": "a" "S"}"#,
            "{\"token\": \"a\n\"S\"}",
            r#"{"token": ["a", "S"]}"#,
            r#"{"credential" {"a" "S"}}"#,
            r#"{"credential": {"a": "b", "c": {"d": "S"}, "e": S}}"#,
            r#"{"mode": "token", "token" "S"}"#,
            r#"{"mode" "token" "token" "S"}"#,
            r#"{"port": 1", "token": "S"}"#,
            r#"{"x: 1, "token": "S"}"#,
            r#"{"x": "y, "token": "S"}"#,
            r#"{"x": "a token" "S"}"#,
            r#"{"token": /* mine, */ "S"}"#,
            "{token: /* S",
            "{token // S, S\n}",
            "{token: // mine\n S}",
        ];
        for row in rows {
            let masked = mask(&row.replace('S', SECRET));
            assert!(!masked.contains("unter") && !masked.contains("two"), "{row}: {masked}");
            let lines = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
            assert_eq!(lines(&masked), lines(&row.replace('S', SECRET)), "{row}");
        }
    }

    #[test]
    fn what_looks_random_is_masked_anywhere() {
        let random = [
            "9c43ffca158dee78cef40e7f",
            "AAEhBOweik6ad9r_QXMENQjcrbGCr4K-bc",
            "sk-proj-a8Fk20xLq9ZbT3",
            "aBcDeFgHiJkLmN",
        ];
        for text in random {
            for row in ["{\"x\" \"S\"}", "{\"x\": \"S}", "S", "x: S: 1"] {
                let masked = mask(&row.replace('S', text));
                assert_eq!(masked, row.replace('S', &"*".repeat(text.len())), "{row}");
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        let rows = [
            r#"{"gateway": {"auth": {"mode": "token", "allowTailscale": true}}, "port": 18789}"#,
            "{agents: {defaults: {model: 'anthropic/claude-opus-4-20250514'}}}",
            "{session: {mainKey: 'main', dmScope: 'per-account-channel-peer'}}",
            "{dangerouslyDisableDeviceAuth: true, allowFrom: [-1001234567890123]}",
            "{lastTouchedAt: \"2026-11-26T16:15:42.031Z\"}",
        ];
        for row in rows {
            assert_eq!(mask(row), row);
        }
        // Behind a secret all goes on as before.
        let row = r#"{"token": "abc", "port": 1, "b": {"password" "x"}, "c": "d"}"#;
        assert_eq!(mask(row), r#"{"token": *****, "port": 1, "b": {"password" ***}, "c": "d"}"#);
    }
}
