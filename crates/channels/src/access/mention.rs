//! Detects if a text names the agent (spec `channels.md` §2.6, `messages.md` §2.1).

use openclaw_config::mention_pattern;
use regex::Regex;

/// The ways in which an agent is named.
#[derive(Debug, Clone, Default)]
pub struct Mentioned {
    patterns: Vec<Regex>,
}

impl Mentioned {
    /// Matches by these regular expressions; invalid ones are left out and returned, to be warned
    /// of.
    pub fn by(patterns: &[String]) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut found = Vec::new();
        for written in patterns {
            match mention_pattern(written) {
                Ok(pattern) => found.push(pattern),
                Err(_) => wrong.push(written.clone()),
            }
        }
        (Self { patterns: found }, wrong)
    }

    /// Matches by the name and the emoji of an agent.
    pub fn by_identity(name: Option<&str>, emoji: Option<&str>) -> Self {
        let name = name.map(|name| {
            let words: Vec<String> = name.split_whitespace().map(regex::escape).collect();
            words.join(r"\s+")
        });
        let name = name.filter(|name| !name.is_empty()).map(|name| format!(r"\b@?{name}\b"));
        let emoji = emoji.map(str::trim).filter(|emoji| !emoji.is_empty()).map(regex::escape);
        let patterns: Vec<String> = name.into_iter().chain(emoji).collect();
        Self::by(&patterns).0
    }

    /// Returns true if there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns true if a text matches one of the patterns.
    pub fn is_in(&self, text: &str) -> bool {
        let text = cleaned(text);
        self.patterns.iter().any(|pattern| pattern.is_match(&text))
    }

    /// Returns the text after a name at the beginning and the comma or colon after it; `None` if
    /// the text does not begin with a name.
    pub fn behind<'a>(&self, text: &'a str) -> Option<&'a str> {
        let text = text.trim_start();
        let bare = text.strip_prefix('@').unwrap_or(text);
        let behind = |pattern: &Regex, text: &'a str| {
            let found = pattern.find(text).filter(|found| found.start() == 0 && !found.is_empty())?;
            let behind = text.get(found.end()..)?;
            let ends_there = |next: char| next.is_whitespace() || matches!(next, ',' | ':' | '/');
            behind.chars().next().is_none_or(ends_there).then_some(behind)
        };
        let found =
            self.patterns.iter().find_map(|pattern| behind(pattern, text).or_else(|| behind(pattern, bare)));
        found.map(|behind| behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':')))
    }

    /// The text with blanks in their place, runs of blanks as one.
    pub fn without(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for pattern in &self.patterns {
            out = pattern.replace_all(&out, " ").into_owned();
        }
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Removes invisible characters and converts to lower case.
fn cleaned(text: &str) -> String {
    let is_unseen =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    text.chars().filter(|c| !is_unseen(*c)).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of spec `messages.md` §2.1.
    #[test]
    fn an_agent_is_named_by_patterns_or_by_its_identity() {
        let (by_pattern, wrong) = Mentioned::by(&["\\bopenclaw\\b".to_owned(), "(".to_owned()]);
        assert_eq!(wrong, ["("]);
        for (text, expect) in [("open\u{200b}claw hi", true), ("OPENCLAW!", true), ("openclawd", false)] {
            assert_eq!(by_pattern.is_in(text), expect, "{text}");
        }
        let repaired = Mentioned::by(&["\u{8}bot\u{8}".to_owned()]).0;
        assert!(repaired.is_in("the BOT.") && !repaired.is_in("robot"));
        let by_name = Mentioned::by_identity(Some("Clawd Bot"), Some("🦞"));
        assert!(by_name.is_in("@clawd   bot yo") && by_name.is_in("hey 🦞") && !by_name.is_in("clawd yo"));
        assert!(Mentioned::by_identity(None, Some(" ")).is_empty());
        assert_eq!(by_name.without("hey @Clawd bot  /status"), "hey @ /status");
    }

    #[test]
    fn what_follows_a_name_at_the_beginning_keeps_its_lines() {
        let (names, _) = Mentioned::by(&["\\b@?clawd\\b".to_owned(), "🦞".to_owned()]);
        let rows = [
            ("Clawd, stop", Some("stop")),
            (" @clawd: /new a\n  b", Some("/new a\n  b")),
            ("🦞 /status", Some("/status")),
            ("🦞/status", Some("/status")),
            ("clawd", Some("")),
            ("clawd's stop", None),
            ("clawdia stop", None),
            ("hey clawd /status", None),
            ("", None),
        ];
        for (text, expect) in rows {
            assert_eq!(names.behind(text), expect, "{text}");
        }
    }
}
