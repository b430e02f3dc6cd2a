//! Inline shortcuts: commands such as `/status` that are answered at once if they stand among words
//! of a sender who may give commands; the words go to the agent without them (spec `messages.md`
//! §4).

use super::line::{Hit, cut_all, ends_name, slashes};
use super::table;

/// Takes the shortcuts out of a text; returns them, each once and in their order, and the rest of
/// the text.
pub(crate) fn take(text: &str) -> Option<(Vec<String>, String)> {
    take_of(text, table::shortcut)
}

fn take_of(text: &str, named: impl Fn(&str) -> Option<&'static str>) -> Option<(Vec<String>, String)> {
    let find = |line: &str| {
        slashes(line).find_map(|(from, behind)| {
            let end =
                behind.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(behind.len());
            let (name, rest) = behind.split_at_checked(end).filter(|(_, rest)| ends_name(rest))?;
            let name = named(&name.to_lowercase())?;
            let rest = rest.strip_prefix(':').unwrap_or(rest);
            Some(Hit { from, to: line.len() - rest.len(), value: name })
        })
    };
    let (found, rest) = cut_all(text, find)?;
    let mut names: Vec<String> = Vec::new();
    for name in found {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Some((names, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shortcut_is_taken_once_and_its_words_go() {
        let named = |name: &str| match name {
            "status" => Some("status"),
            "whoami" | "id" => Some("whoami"),
            _ => None,
        };
        let rows = [
            ("a /status b /status", &["status"][..], "a b"),
            ("hey /id and /STATUS: what is up", &["whoami", "status"], "hey and what is up"),
            ("/status please", &["status"], "please"),
            ("first\n/status\n  last", &["status"], "first\n  last"),
        ];
        for (text, names, rest) in rows {
            let expect = (names.iter().map(|name| (*name).to_owned()).collect(), rest.to_owned());
            assert_eq!(take_of(text, named), Some(expect), "{text}");
        }
        for text in ["/statuses", "a/status", "/status/x", "/help me", ""] {
            assert_eq!(take_of(text, named), None, "{text}");
        }
    }
}
