//! `/stop`, and the words that mean the same (spec `messages.md` §5): the session's runs are stopped, those that wait too.

use super::table::{Category, Command, Does};

pub(super) const COMMAND: Command =
    Command::new("stop", Category::Session, Does::Stops, "Stop what is being done, and what waits.");

/// Words that do the same when they are the whole message.
const WORDS: [&str; 6] = ["stop", "esc", "abort", "wait", "exit", "interrupt"];

/// Whether a message is the command: nothing but it, or one of the words.
pub(crate) fn is_stop(text: &str) -> bool {
    let text = text.trim();
    let is_command = text.strip_prefix('/').is_some_and(|name| name.eq_ignore_ascii_case(COMMAND.name));
    is_command || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_stands_alone() {
        for text in ["/stop", " /STOP ", "stop", "Esc", "abort", "wait", "exit", "interrupt\n"] {
            assert!(is_stop(text), "{text:?}");
        }
        for text in ["", "stop it", "/stop now", "stop.", "please wait", "/abort"] {
            assert!(!is_stop(text), "{text:?}");
        }
    }
}
