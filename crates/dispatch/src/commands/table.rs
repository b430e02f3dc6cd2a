//! Rows of the table of commands: their fields, the search for the row of a text, and the answers
//! for commands that don't exist.

use openclaw_config::settings::Commands;
use openclaw_journal::intent::Wish;
use openclaw_sessions::reset::trigger::slash_command;

use super::argument_menu::ArgumentMenu;
use super::directives::{Directive, settle};
use super::response::{Response, Showing};
use super::{Answering, COMMANDS, CommandError, Context};

/// A command.
#[derive(Clone, Copy)]
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) does: Does,
    /// Category in which lists show it.
    pub(super) category: Category,
    /// Description in a few words.
    pub(super) about: &'static str,
    /// Syntax of the arguments, as shown to people.
    pub(super) arguments: &'static str,
    /// Places that offer it.
    pub(super) offered: Offered,
    /// True if it also works in the middle of other words.
    pub(super) inline: bool,
    /// Senders who may give it.
    pub(super) by: By,
    /// Right that a client of the gateway needs for it, the same as for the method that does the
    /// same.
    pub(super) needs: Needs,
    /// Buttons shown if it is called without arguments.
    pub(super) argument_menu: ArgumentMenu,
    /// Returns true if the configuration has it.
    pub(super) is_on: fn(&Commands) -> bool,
    /// Setting that has to be true for changes, if the command also shows things without.
    pub(super) edits_need: Option<&'static str>,
    /// Platform without which the command is of no use.
    pub(super) platform: Option<&'static str>,
}

/// Facts that decide which commands are shown in lists and menus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MenuFacts<'a> {
    /// Settings of commands.
    pub(crate) settings: &'a Commands,
    /// Ids of the platforms that have a usable account.
    pub(crate) platforms: &'a [&'static str],
}

/// Category of a command, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    Session,
    Options,
    Status,
    Management,
    Media,
    Tools,
    Docks,
}

/// Places that offer a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    /// Offered in the menus of platforms that have them, and as text.
    Native,
    /// Offered as text alone.
    Text,
}

/// Right that a client of the gateway needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Right to write.
    Writing,
    /// Right to decide on commands; needed if the command changes something.
    Approvals,
    /// Right to change the gateway.
    Admin,
}

/// Senders who may give a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Any sender who may give commands.
    Authorised,
    /// The owners alone.
    Owner,
}

/// Arguments with which the whole message counts as the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// No arguments.
    Nothing,
    /// Any words.
    Words,
    /// A level, then options; with more words it is a wish among words for the agent.
    Level,
    /// Options alone, such as `host=node`.
    Options,
}

/// Action of a command.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// Returns an answer, in the session's turn or beside its run.
    Answers(for<'a> fn(&'a Context<'a>, &'a str) -> Answering<'a>),
    /// Returns an answer with more than words, in the session's turn or beside its run.
    Shows(for<'a> fn(&'a Context<'a>, &'a str) -> Showing<'a>),
    /// Changes a setting, or gives a hint if it stands among words: [`super::directives`].
    Directive(Directive),
    /// Begins a new conversation, as `session.resetTriggers` has it.
    Resets,
    /// Stops the session's runs, at once.
    Stops,
    /// Stops the run under way, and compacts the conversation in its turn.
    Compacts,
    /// Not implemented yet.
    Missing,
}

impl Category {
    /// All categories, in order.
    pub(super) const ALL: [Self; 7] =
        [Self::Session, Self::Options, Self::Status, Self::Management, Self::Media, Self::Tools, Self::Docks];

    /// Heading of the category.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Session => "Session",
            Self::Options => "Options",
            Self::Status => "Status",
            Self::Management => "Management",
            Self::Media => "Media",
            Self::Tools => "Tools",
            Self::Docks => "Docks",
        }
    }
}

impl Command {
    /// A row to be filled in: `Command { takes: …, ..Command::new(…) }`.
    pub(super) const fn new(name: &'static str, category: Category, does: Does, about: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            takes: Takes::Nothing,
            does,
            category,
            about,
            arguments: "",
            offered: Offered::Native,
            inline: false,
            by: By::Authorised,
            needs: Needs::Writing,
            argument_menu: ArgumentMenu::None,
            is_on: |_| true,
            edits_need: None,
            platform: None,
        }
    }

    /// Sets the right that a client needs.
    pub(super) const fn needing(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    pub(super) const fn taking(self, takes: Takes, arguments: &'static str) -> Self {
        Self { takes, arguments, ..self }
    }

    /// Sets the choices that can be pressed.
    pub(super) const fn offering(self, argument_menu: ArgumentMenu) -> Self {
        Self { argument_menu, ..self }
    }

    /// Sets the setting that changes need.
    pub(super) const fn editing_with(self, setting: &'static str) -> Self {
        Self { edits_need: Some(setting), ..self }
    }

    /// Sets other names.
    pub(super) const fn called(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// True if it is implemented.
    pub(super) fn is_there(&self) -> bool {
        !matches!(self.does, Does::Missing)
    }

    /// True if it is implemented and the configuration has it.
    pub(super) fn can_be_given(&self, settings: &Commands) -> bool {
        self.is_there() && (self.is_on)(settings)
    }

    /// True if it is shown in lists and menus.
    pub(super) fn is_listed(&self, facts: MenuFacts<'_>) -> bool {
        let has_platform = self.platform.is_none_or(|platform| facts.platforms.contains(&platform));
        has_platform && self.can_be_given(facts.settings)
    }
}

impl Command {
    /// True if its arguments may have several lines. They are taken as they were written.
    pub(super) fn keeps_lines(&self) -> bool {
        const KEEP: [&str; 6] = [
            BASH,
            super::compact::NAME,
            super::config::COMMAND.name,
            super::debug::COMMAND.name,
            super::skill::COMMAND.name,
            super::subagents::COMMAND.name,
        ];
        KEEP.contains(&self.name) || matches!(self.does, Does::Resets)
    }

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

/// True if `/<alias>` means something else already.
pub(super) fn is_reserved(alias: &str, triggers: &[&str]) -> bool {
    let alias = alias.trim().to_lowercase();
    let is_trigger = |trigger: &&str| trigger.trim().trim_start_matches('/').to_lowercase() == alias;
    is_command(&alias) || triggers.iter().any(is_trigger)
}

/// True if the command of this row name is in the menus of platforms.
pub(super) fn is_native(name: &str) -> bool {
    COMMANDS.iter().any(|row| row.name == name && row.offered == Offered::Native && row.is_there())
}

/// True if menus of platforms may have a row under these settings.
pub(super) fn is_in_menu(row: &Command, settings: &Commands) -> bool {
    row.offered == Offered::Native && row.can_be_given(settings)
}

/// True if `/<name>` is one of these commands.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.is_called(name))
}

/// Returns the row of the command that a text begins with.
pub(super) fn begun(text: &str) -> Option<&'static Command> {
    let (name, _) = slash_command(text)?;
    let name = name.to_lowercase();
    COMMANDS.iter().find(|command| command.is_called(&name))
}

/// Reads a body that is a command to be answered; returns its name, and the arguments behind it:
/// only those on its first line, unless they may have several lines (spec `messages.md` §3).
pub(super) fn read(body: &str) -> Option<(&'static str, &str)> {
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

/// Runs a command and returns its answer. For a command that a later version has accepted, or that
/// is not implemented, the answer says so.
pub(super) async fn run(
    context: &Context<'_>,
    name: &str,
    arguments: &str,
) -> Result<Response, CommandError> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Ok(not_there(name).into());
    };
    if command.by == By::Owner && !context.is_owner() {
        return Ok(for_owners(name).into());
    }
    if let Some(refusal) = refusal(context, command, arguments) {
        return Ok(refusal.into());
    }
    if let Some(own) = command.own_answer(context, arguments) {
        return own.await;
    }
    let buttons = command.choices_shown(context, arguments).await;
    match command.does {
        Does::Answers(_) if !buttons.is_empty() => Ok(command.question(buttons)),
        Does::Answers(run) => run(context, arguments).await.map(Response::from),
        Does::Shows(run) => run(context, arguments).await,
        Does::Directive(_) => {
            let wish = Wish { name: name.to_owned(), arguments: arguments.to_owned() };
            let text = settle(context, &[wish]).await?;
            Ok(Response { text, buttons, then: None })
        }
        Does::Resets | Does::Stops | Does::Compacts | Does::Missing => Ok(not_there(name).into()),
    }
}

/// The command of a row's name.
pub(super) fn named(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Returns the name of the row that a name calls, if it is implemented and is answered among words
/// too.
pub(super) fn shortcut(name: &str) -> Option<&'static str> {
    let command = COMMANDS.iter().find(|command| command.is_called(name))?;
    (command.inline && command.is_there()).then_some(command.name)
}

/// Answer to a command that this gateway does not have.
pub(super) fn not_there(name: &str) -> String {
    format!("⚠️ /{name} is not there yet in this version. /commands lists what there is.")
}

/// Returns the refusal if the client that gives the command may not give it.
pub(super) fn refusal(context: &Context<'_>, command: &Command, arguments: &str) -> Option<String> {
    let request = &context.row.payload;
    let (is_allowed, scope) = match command.needs {
        Needs::Writing => return None,
        Needs::Approvals => (arguments.trim().is_empty() || request.may_set_guards(), "operator.approvals"),
        Needs::Admin => {
            (request.source.origin().is_some() || request.source.may_administer(), "operator.admin")
        }
    };
    (!is_allowed).then(|| needs_scope(command.name, scope))
}

/// Refusal for a client without the scope that a command needs.
pub(crate) fn needs_scope(name: &str, scope: &str) -> String {
    format!("⚠️ /{name} needs a client with the scope {scope}.")
}

fn for_owners(name: &str) -> String {
    format!(
        "⚠️ /{name} is for the owner: name them in commands.ownerAllowFrom or in the channel's allowFrom."
    )
}

/// The command that `!` stands for.
pub(super) const BASH: &str = "bash";

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
