//! Masking secrets in log lines (spec `operations.md` §4.3).

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Regex};

/// Texts shorter than this are masked whole.
const SHORT: usize = 18;
const KEPT_START: usize = 6;
const KEPT_END: usize = 4;

/// Patterns that are masked without settings.
static BUILT_IN: [BuiltIn; 16] = [
    BuiltIn::new(
        &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"],
        r#"\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)\b\s*[=:]\s*["']?([^\s"'\\]+)"#,
    ),
    BuiltIn::new(
        &["Key\"", "oken\"", "secret\"", "password\"", "passwd\""],
        r#""(?:apiKey|token|secret|password|passwd|accessToken|refreshToken)"\s*:\s*"([^"]+)""#,
    ),
    BuiltIn::new(
        &["--api", "--token", "--secret", "--password", "--passwd"],
        r#"--(?:api-?key|token|secret|password|passwd)\s+["']?([^\s"']+)"#,
    ),
    BuiltIn::new(&["Bearer"], r"Authorization\s*[:=]\s*Bearer\s+([A-Za-z0-9._\-+=…]+)"),
    BuiltIn::new(&["Bearer"], r"\bBearer\s+([A-Za-z0-9._\-+=…]{18,})"),
    BuiltIn::new(
        &["-----BEGIN"],
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----",
    ),
    BuiltIn::new(&["sk-"], r"\b(sk-[A-Za-z0-9_-]{8,})\b"),
    BuiltIn::new(&["ghp_"], r"\b(ghp_[A-Za-z0-9]{20,})\b"),
    BuiltIn::new(&["github_pat_"], r"\b(github_pat_[A-Za-z0-9_]{20,})\b"),
    BuiltIn::new(&["xox"], r"\b(xox[baprs]-[A-Za-z0-9-]{10,})\b"),
    BuiltIn::new(&["xapp-"], r"\b(xapp-[A-Za-z0-9-]{10,})\b"),
    BuiltIn::new(&["gsk_"], r"\b(gsk_[A-Za-z0-9_-]{10,})\b"),
    BuiltIn::new(&["AIza"], r"\b(AIza[0-9A-Za-z_-]{20,})\b"),
    BuiltIn::new(&["pplx-"], r"\b(pplx-[A-Za-z0-9_-]{10,})\b"),
    BuiltIn::new(&["npm_"], r"\b(npm_[A-Za-z0-9]{10,})\b"),
    BuiltIn::new(&[":"], r"\b([0-9]{6,}:[A-Za-z0-9_-]{20,})\b"),
];

/// Field names whose values are secrets whatever they look like.
const SECRET_FIELDS: &[&str] = &["token", "password", "secret", "apikey", "api_key", "authorization"];

/// A pattern for texts that have one of a few words. The last group is masked, or all of the match
/// without groups.
struct BuiltIn {
    /// Words of which every match contains one. Most texts have none, and most patterns are never
    /// compiled.
    words: &'static [&'static str],
    pattern: &'static str,
    regex: OnceLock<Option<Regex>>,
}

impl BuiltIn {
    const fn new(words: &'static [&'static str], pattern: &'static str) -> Self {
        Self { words, pattern, regex: OnceLock::new() }
    }

    /// The pattern, if it may match.
    fn for_text(&self, text: &str) -> Option<&Regex> {
        let may_match = self.words.iter().any(|word| text.contains(word));
        may_match.then(|| self.regex.get_or_init(|| Regex::new(self.pattern).ok())).and_then(Option::as_ref)
    }
}

/// Masks secrets in texts.
#[derive(Debug)]
pub struct Redactor {
    is_on: bool,
    own: Vec<Regex>,
}

impl Redactor {
    /// Masks what the built-in patterns find; with own patterns, what those find instead. `/…/flags` and plain patterns
    /// are understood, unusable ones ignored.
    pub fn new(patterns: &[String]) -> Self {
        let own = patterns.iter().map(|pattern| plain_pattern(pattern));
        Self { is_on: true, own: compile(own.collect::<Vec<_>>().iter().map(String::as_str)) }
    }

    /// Masks what the built-in patterns find in any case, as OpenClaw 2026.2.9 does, so in `password: x` too; with own
    /// patterns, what those find instead. For what was said: in log lines much would be masked that is no secret.
    pub fn in_any_case(patterns: &[String]) -> Self {
        if !patterns.is_empty() {
            return Self::new(patterns);
        }
        let any_case: Vec<String> = BUILT_IN.iter().map(|row| format!("(?i){}", row.pattern)).collect();
        Self { is_on: true, own: compile(any_case.iter().map(String::as_str)) }
    }

    /// Masks nothing.
    pub fn off() -> Self {
        Self { is_on: false, own: Vec::new() }
    }

    /// The text without secrets.
    pub fn mask(&self, text: &str) -> String {
        if !self.is_on {
            return text.to_owned();
        }
        let mut masked = Cow::Borrowed(text);
        if self.own.is_empty() {
            for built_in in &BUILT_IN {
                if let Some(pattern) = built_in.for_text(&masked) {
                    mask_matches(pattern, &mut masked);
                }
            }
        } else {
            self.own.iter().for_each(|pattern| mask_matches(pattern, &mut masked));
        }
        masked.into_owned()
    }

    /// The value of a named field without secrets.
    pub(super) fn mask_field(&self, name: &str, value: &str) -> String {
        let is_secret = SECRET_FIELDS.contains(&name.to_lowercase().as_str());
        if self.is_on && is_secret { mask_token(value) } else { self.mask(value) }
    }
}

/// `/pattern/i` in the syntax of the `regex` crate.
fn plain_pattern(text: &str) -> String {
    let quoted = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    match quoted {
        Some((pattern, flags)) => {
            let flags: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
            if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") }
        }
        None => text.to_owned(),
    }
}

fn compile<'a>(patterns: impl Iterator<Item = &'a str>) -> Vec<Regex> {
    patterns.filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

fn mask_matches(pattern: &Regex, text: &mut Cow<'_, str>) {
    if let Cow::Owned(changed) = pattern.replace_all(text, replacement) {
        *text = Cow::Owned(changed);
    }
}

fn replacement(found: &Captures<'_>) -> String {
    let all = found.get(0).map_or("", |whole| whole.as_str());
    if all.starts_with("-----BEGIN") {
        let mut lines = all.lines();
        let first = lines.next().unwrap_or_default();
        return format!("{first}\n…redacted…\n{}", lines.next_back().unwrap_or_default());
    }
    let secret = found.iter().skip(1).flatten().last().map_or(all, |group| group.as_str());
    all.replace(secret, &mask_token(secret))
}

fn mask_token(secret: &str) -> String {
    let chars: Vec<char> = secret.chars().collect();
    if chars.len() < SHORT || secret.contains('…') {
        return if secret.contains('…') { secret.to_owned() } else { "***".to_owned() };
    }
    let start: String = chars.iter().take(KEPT_START).collect();
    let end: String = chars.iter().skip(chars.len() - KEPT_END).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `operations.md` §4.3 and §15.3.
    /// `redaction` of `spec/golden/memory-text.json`.
    #[test]
    fn what_was_said_is_masked_in_any_case() {
        let redactor = Redactor::in_any_case(&[]);
        let rows = [
            ("password: hunter2", "password: ***"),
            ("API_KEY=abcd1234", "API_KEY=***"),
            ("API_KEY=abcdefghijklmnopqrstuvwxyz", "API_KEY=abcdef…wxyz"),
            (
                "token=hunter2BB and api_key: \"hunter2CC\" and secret: hunter2EE",
                "token=*** and api_key: \"***\" and secret: ***",
            ),
            ("Authorization: Bearer abcdefghijklmnopqrstuv", "Authorization: Bearer abcdef…stuv"),
            ("sk-short12", "sk-short12"),
            ("nothing here", "nothing here"),
        ];
        for (text, expect) in rows {
            assert_eq!(redactor.mask(text), expect, "{text}");
        }
    }

    #[test]
    fn secrets_are_masked_and_other_text_is_left() {
        let rows = [
            ("OPENAI_API_KEY=sk-1234567890abcdef", "OPENAI_API_KEY=sk-123…cdef"),
            ("Authorization: Bearer abcdef1234567890ghij", "Authorization: Bearer abcdef…ghij"),
            ("TELEGRAM_BOT_TOKEN=123456:ABCDEFGHIJKLMNOPQRSTUVWXYZ", "TELEGRAM_BOT_TOKEN=123456…WXYZ"),
            (r#"{"token":"abc"}"#, r#"{"token":"***"}"#),
            ("curl --token abcdef1234567890ghij https://x", "curl --token abcdef…ghij https://x"),
            ("TOKEN=shortvalue", "TOKEN=***"),
            ("123456:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef", "123456…cdef"),
            (
                "-----BEGIN PRIVATE KEY-----\nABC\nDEF\n-----END PRIVATE KEY-----",
                "-----BEGIN PRIVATE KEY-----\n…redacted…\n-----END PRIVATE KEY-----",
            ),
            (r#"{"refreshToken" : "abcdef1234567890ghij"}"#, r#"{"refreshToken" : "abcdef…ghij"}"#),
            ("openclaw --api-key abcdef1234567890ghij", "openclaw --api-key abcdef…ghij"),
            ("sent Bearer abcdef1234567890ghij", "sent Bearer abcdef…ghij"),
            ("sk-abcdefghijklmnopqrst", "sk-abc…qrst"),
            ("ghp_abcdefghijklmnopqrst", "ghp_ab…qrst"),
            ("github_pat_abcdefghijklmnopqrst", "github…qrst"),
            ("xoxb-abcdefghijklmnopqrst", "xoxb-a…qrst"),
            ("xapp-abcdefghijklmnopqrst", "xapp-a…qrst"),
            ("gsk_abcdefghijklmnopqrst", "gsk_ab…qrst"),
            ("AIzaabcdefghijklmnopqrst", "AIzaab…qrst"),
            ("pplx-abcdefghijklmnopqrst", "pplx-a…qrst"),
            ("npm_abcdefghijklmnopqrst", "npm_ab…qrst"),
            ("listening on ws://127.0.0.1:18789 (PID 4711)", "listening on ws://127.0.0.1:18789 (PID 4711)"),
        ];
        let redactor = Redactor::new(&[]);
        for (text, expect) in rows {
            assert_eq!(redactor.mask(text), expect);
            assert_eq!(redactor.mask(expect), expect, "masking twice changes nothing");
        }
    }

    #[test]
    fn own_patterns_replace_the_built_in_ones() {
        let text = "token=abcdef1234567890ghij";
        let own = |pattern: &str| Redactor::new(&[pattern.to_owned()]);
        assert_eq!(own("/token=([A-Za-z0-9]+)/i").mask(text), "token=abcdef…ghij");
        assert_eq!(own("token=([a-z").mask("TOKEN=x"), "TOKEN=***");
        assert_eq!(Redactor::off().mask(text), text);
    }

    #[test]
    fn fields_named_for_secrets_are_masked_whatever_they_hold() {
        let redactor = Redactor::new(&[]);
        assert_eq!(redactor.mask_field("token", "plain"), "***");
        assert_eq!(redactor.mask_field("conn", "plain"), "plain");
    }
}
