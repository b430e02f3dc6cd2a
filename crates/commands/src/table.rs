//! Search for the row of a text among the commands, and the answers for commands that don't exist.

use openclaw_config::settings::Commands;
use openclaw_journal::caller::Right;
use openclaw_sessions::reset::trigger::slash_command;

use super::command::{BASH, ChatCommand, Does, Offered};
use super::{COMMANDS, CommandContext};

/// True if `/<alias>` means something else already.
pub(crate) fn is_reserved(alias: &str, triggers: &[&str]) -> bool {
    let alias = alias.trim().to_lowercase();
    let is_trigger = |trigger: &&str| trigger.trim().trim_start_matches('/').to_lowercase() == alias;
    is_command(&alias) || triggers.iter().any(is_trigger)
}

/// True if the command of this row name is in the menus of platforms.
pub(crate) fn is_native(name: &str) -> bool {
    COMMANDS.iter().any(|row| row.name == name && row.offered == Offered::Native && row.is_there())
}

/// True if menus of platforms may have a row under these settings.
pub(crate) fn is_in_menu(row: &ChatCommand, settings: &Commands) -> bool {
    row.offered == Offered::Native && row.can_be_given(settings)
}

/// True if `/<name>` is one of these commands.
pub(crate) fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.is_called(name))
}

/// Returns the row of the command that a text begins with.
pub(crate) fn begun(text: &str) -> Option<&'static ChatCommand> {
    let (name, _) = slash_command(text)?;
    let name = name.to_lowercase();
    COMMANDS.iter().find(|command| command.is_called(&name))
}

/// Reads a body that is a command to be answered; returns its name, and the arguments behind it:
/// only those on its first line, unless they may have several lines (spec `messages.md` §3).
pub(crate) fn read(body: &str) -> Option<(&'static str, &str)> {
    if let Some(behind) = body.strip_prefix('!') {
        return bang(behind);
    }
    let command = begun(body)?;
    let counts =
        if command.keeps_lines() { body } else { body.lines().next().unwrap_or_default().trim_end() };
    let (_, arguments) = slash_command(counts)?;
    let is_answered = match command.does {
        Does::Answers(_) | Does::Shows(_) | Does::Compacts | Does::Missing => command.takes.fits(arguments),
        Does::Directive(_) | Does::Resets | Does::Stops => false,
    };
    is_answered.then_some((command.name, arguments))
}

/// Reads `! ls`, `!ls` and `!poll`, which are other ways to write `/bash`. A second `!` is no
/// command: `!!!` is plain text.
fn bang(behind: &str) -> Option<(&'static str, &str)> {
    let word = behind.split_whitespace().next()?;
    let begins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '~' | '_' | '$');
    let is_one = behind.starts_with(' ') || word.starts_with(begins);
    is_one.then(|| (BASH, behind.trim()))
}

/// The command of a row's name.
pub(crate) fn named(name: &str) -> Option<&'static ChatCommand> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Returns the name of the row that a name calls, if it is implemented and is answered among words
/// too.
pub(crate) fn shortcut(name: &str) -> Option<&'static str> {
    let command = COMMANDS.iter().find(|command| command.is_called(name))?;
    (command.inline && command.is_there()).then_some(command.name)
}

/// Answer to a command that this gateway does not have.
pub(crate) fn not_there(name: &str) -> String {
    format!("⚠️ /{name} is not there yet in this version. /commands lists what there is.")
}

/// Returns the refusal if the client that gives the command may not give it.
pub(crate) fn refusal(
    context: &CommandContext<'_>,
    command: &ChatCommand,
    arguments: &str,
) -> Option<String> {
    let caller = context.row.payload.caller();
    let scope = match command.needs {
        Right::Command | Right::Own => return None,
        // Without arguments it shows the guards.
        Right::Approve if arguments.trim().is_empty() => return None,
        Right::Approve => "operator.approvals",
        Right::Administer => "operator.admin",
    };
    let is_allowed = caller.may(command.needs);
    (!is_allowed).then(|| needs_scope(command.name, scope))
}

/// Refusal for a client without the scope that a command needs.
pub fn needs_scope(name: &str, scope: &str) -> String {
    format!("⚠️ /{name} needs a client with the scope {scope}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Takes;

    #[test]
    fn a_command_is_the_whole_message_with_what_it_takes() {
        let rows = [
            ("/help", Some("help")),
            ("/HELP:", Some("help")),
            ("/id", Some("whoami")),
            ("/compact keep the numbers", Some("compact")),
            ("/dock_slack", Some("dock-slack")),
            ("! ls -l", Some("bash")),
            ("!poll", Some("bash")),
            ("!stop abc", Some("bash")),
            ("!ls -l", Some("bash")),
            ("!./x", Some("bash")),
            ("!", None),
            ("!!!", None),
            ("!? no", None),
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
    fn the_first_line_counts_where_words_have_no_lines() {
        let rows = [
            ("/usage full\n\nthanks", Some(("usage", "full"))),
            ("/usage\nfull", Some(("usage", ""))),
            ("/help\nmore", Some(("help", ""))),
            ("/help: \nmore", Some(("help", ""))),
            ("/restart now\nplease", None),
            ("/compact keep [TODO]\nDecisions: all", Some(("compact", "keep [TODO]\nDecisions: all"))),
            ("/compact: keep\n  it", Some(("compact", "keep\n  it"))),
            ("/bash\nls\n  -l", Some(("bash", "ls\n  -l"))),
        ];
        for (text, expect) in rows {
            assert_eq!(read(text), expect, "{text:?}");
        }
    }

    #[test]
    fn names_and_words_about_commands_are_fit_for_menus() {
        let mut names: Vec<&str> =
            COMMANDS.iter().flat_map(|row| row.aliases.iter().chain([&row.name])).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "no name has two meanings");
        for row in COMMANDS {
            assert!(
                (1..=100).contains(&row.about.chars().count()) && row.about.ends_with('.'),
                "{}",
                row.name
            );
            assert_eq!(row.takes == Takes::Nothing, row.arguments.is_empty(), "{}", row.name);
        }
        let inline: Vec<&str> = COMMANDS.iter().filter(|row| row.inline).map(|row| row.name).collect();
        assert_eq!(inline, ["help", "commands", "status", "whoami"]);
    }
}
