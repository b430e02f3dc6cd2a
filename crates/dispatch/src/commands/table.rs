//! Rows of the table of commands: what a row says, how a text is found to be one, and what is said of those that are not there.

use super::directives::{Directive, Wish, settle};
use super::line::skip_colon;
use super::{Answering, COMMANDS, CommandError, Context};

/// A command.
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) does: Does,
}

/// What may follow a command for the whole message to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// Anything.
    Words,
    /// A level, then options; with more words it is a wish among words for the agent.
    Level,
    /// Options alone, such as `host=node`.
    Options,
}

/// What a command does.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// Something that is answered, in the session's turn or beside its run.
    Answers(for<'a> fn(&'a Context<'a>, &'a str) -> Answering<'a>),
    /// A setting, or a hint where it stands among words: [`super::directives`].
    Directive(Directive),
    /// The same, but all that is done so far is to take it out.
    Later(Directive),
    /// It begins a new conversation, as `session.resetTriggers` has it.
    Resets,
    /// It stops the session's runs, at once.
    Stops,
    /// It stops the run under way, and makes the conversation shorter in its turn.
    Compacts,
    /// Nothing yet.
    Missing,
}

pub(super) const fn missing(name: &'static str, aliases: &'static [&'static str], takes: Takes) -> Command {
    Command { name, aliases, takes, does: Does::Missing }
}

pub(super) const fn resets(name: &'static str) -> Command {
    Command { name, aliases: &[], takes: Takes::Words, does: Does::Resets }
}

impl Command {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl Takes {
    fn fits(self, arguments: &str) -> bool {
        let is_option = |word: &str| word.contains(['=', ':']);
        let mut words = arguments.split_whitespace();
        match self {
            Self::Nothing => words.next().is_none(),
            Self::Words => true,
            Self::Level => words.skip(1).all(is_option),
            Self::Options => words.all(is_option),
        }
    }
}

/// Whether `/<alias>` means something else already.
pub(super) fn is_reserved(alias: &str, triggers: &[&str]) -> bool {
    let alias = alias.trim().to_lowercase();
    let is_trigger = |trigger: &&str| trigger.trim().trim_start_matches('/').to_lowercase() == alias;
    is_command(&alias) || triggers.iter().any(is_trigger)
}

/// Whether `/<name>` is one of these commands.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.is_called(name))
}

/// The command that a text without structural prefixes is, if it is one that is answered, and what follows its name.
pub(super) fn read(text: &str) -> Option<(&'static str, &str)> {
    let behind = text.strip_prefix('/')?;
    let end = behind.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(behind.len());
    let (name, arguments) = behind.split_at_checked(end)?;
    let (name, arguments) = (name.to_lowercase(), skip_colon(arguments));
    let command = COMMANDS.iter().find(|command| command.is_called(&name))?;
    let is_answered = match command.does {
        Does::Answers(_) | Does::Compacts | Does::Missing => command.takes.fits(arguments),
        Does::Directive(_) | Does::Later(_) | Does::Resets | Does::Stops => false,
    };
    is_answered.then_some((command.name, arguments))
}

/// Does a command that is answered. One that a later version has accepted, or that is not there, says so.
pub(super) async fn run(context: &Context<'_>, name: &str, arguments: &str) -> Result<String, CommandError> {
    match does(name) {
        Some(Does::Answers(run)) => run(context, arguments).await,
        Some(Does::Directive(_) | Does::Later(_)) => {
            settle(context, &[Wish { name: name.to_owned(), arguments: arguments.to_owned() }]).await
        }
        Some(Does::Resets | Does::Stops | Does::Compacts | Does::Missing) | None => Ok(not_there(name)),
    }
}

/// What the command of a row's name does.
pub(super) fn does(name: &str) -> Option<Does> {
    COMMANDS.iter().find(|command| command.name == name).map(|command| command.does)
}

/// Commands that are answered at once where they stand among words.
const SHORTCUTS: [&str; 4] = ["help", "commands", "whoami", "status"];

/// The row that a name calls, where it is there and is answered among words too.
pub(super) fn shortcut(name: &str) -> Option<&'static str> {
    let command = COMMANDS.iter().find(|command| command.is_called(name))?;
    let is_there = matches!(command.does, Does::Answers(_));
    (is_there && SHORTCUTS.contains(&command.name)).then_some(command.name)
}

/// What is said of a command that this gateway does not have.
pub(super) fn not_there(name: &str) -> String {
    let has: Vec<String> = COMMANDS
        .iter()
        .filter(|command| !matches!(command.does, Does::Missing | Does::Later(_)))
        .map(|command| format!("/{}", command.name))
        .collect();
    format!(
        "/{name} is not there yet. This gateway has {}. Everything else you write goes to the agent.",
        has.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_whole_message_with_what_it_takes() {
        let rows = [
            ("/help", Some("help")),
            ("/HELP:", Some("help")),
            ("/id", Some("whoami")),
            ("/compact keep the numbers", Some("compact")),
            ("/dock_slack", Some("dock-slack")),
            // Words for the agent.
            ("/help me", None),
            ("/status please", None),
            ("/restart now", None),
            ("/think high and tell me", None),
            ("/exec run ls", None),
            ("/foo bar", None),
            ("/etc/passwd", None),
            ("/help/me", None),
            ("hello /help", None),
            ("/", None),
            ("", None),
            ("/models x", Some("models")),
            // Read elsewhere.
            ("/model", None),
            ("/think high", None),
            ("/new hello", None),
            ("/stop", None),
        ];
        for (text, expect) in rows {
            assert_eq!(read(text).map(|(name, _)| name), expect, "{text:?}");
        }
    }

    #[test]
    fn what_is_said_names_what_there_is() {
        let said = not_there("tts");
        assert!(said.starts_with("/tts is not there yet. This gateway has /"), "{said}");
        assert!(said.contains(" /think") && !said.contains("/elevated"), "{said}");
        assert!(said.ends_with("Everything else you write goes to the agent."), "{said}");
    }
}
