//! `/elevated`: read and taken out of a text. It has its effect with the tools that ask for approval.

use openclaw_sessions::entry::ElevatedLevel;

use super::directives::{Directive, Reading, not_yet};
use super::levels;
use super::table::{Category, Command, Does, Takes};

pub(super) const NAME: &str = "elevated";
pub(super) const DIRECTIVE: Directive = Directive { take, hint: |_, _| (), settle: not_yet, needs_mention };
pub(super) const COMMAND: Command = Command::new(
    NAME,
    Category::Options,
    Does::Later(DIRECTIVE),
    "Set what commands may do on this machine.",
)
.called(&["elev"])
.taking(Takes::Level, "on|off|ask|full");

fn take(text: &str, reading: Reading, _: &[&str]) -> Option<(String, String)> {
    levels::take(text, &[NAME, "elev"], reading, |word| levels::elevated(word).is_some())
}

/// In a group it counts only where the agent is spoken to, unless it gives something back.
fn needs_mention(argument: &str) -> bool {
    levels::elevated(argument) != Some(ElevatedLevel::Off)
}
