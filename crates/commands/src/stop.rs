//! `/stop`, and the words that mean the same (spec `messages.md` §5): the session's runs are stopped, those that wait too.

use openclaw_sessions::reset::trigger::{command_body, slash_command};

use super::command::{Category, ChatCommand, Does};

pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new("stop", Category::Session, Does::Stops, "Stop what is being done, and what waits.");

/// Words that stop runs too if they are the whole message.
const WORDS: [&str; 6] = ["stop", "esc", "abort", "wait", "exit", "interrupt"];

/// True if a message is the command, of which the first line counts, or nothing but one of the
/// words.
pub fn is_stop(text: &str) -> bool {
    let body = command_body(text);
    let first = body.lines().next().unwrap_or_default();
    let is_command = slash_command(first)
        .is_some_and(|(name, behind)| name.eq_ignore_ascii_case(COMMAND.name) && behind.trim().is_empty());
    is_command || WORDS.iter().any(|word| body.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_stands_alone() {
        for text in [
            "/stop",
            " /STOP ",
            "stop",
            "Esc",
            "abort",
            "wait",
            "exit",
            "interrupt\n",
            "/stop:",
            "/stop\nnow",
            "[Chat Bob] Bob: stop",
        ] {
            assert!(is_stop(text), "{text:?}");
        }
        for text in [
            "",
            "stop it",
            "/stop now",
            "stop.",
            "please wait",
            "/abort",
            "/stop: now",
            "stop\nnow",
            "/stopped",
        ] {
            assert!(!is_stop(text), "{text:?}");
        }
    }
}
