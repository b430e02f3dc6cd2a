//! Rows of the table of commands: what a row says, how a text is found to be one, and what is said of those that are not there.

use openclaw_config::settings::Commands;
use openclaw_sessions::reset::trigger::slash_command;

use super::argument_menu::ArgumentMenu;
use super::directives::{Directive, Wish, settle};
use super::response::{Response, Showing};
use super::{Answering, COMMANDS, CommandError, Context};

/// A command.
#[derive(Clone, Copy)]
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) does: Does,
    /// Where it stands in lists.
    pub(super) category: Category,
    /// What it does, in a few words.
    pub(super) about: &'static str,
    /// What may follow it, as people are told.
    pub(super) arguments: &'static str,
    /// Where it is offered.
    pub(super) offered: Offered,
    /// Whether it also works in the middle of other words.
    pub(super) inline: bool,
    /// Who may give it.
    pub(super) by: By,
    /// What a client of the gateway must be allowed for it, as for the method that does the same.
    pub(super) needs: Needs,
    /// What it shows as buttons where it is called with nothing behind it.
    pub(super) argument_menu: ArgumentMenu,
    /// Whether the configuration has it.
    pub(super) is_on: fn(&Commands) -> bool,
    /// The setting that has to be true for what it changes, where it also shows things without.
    pub(super) edits_need: Option<&'static str>,
}

/// Where a command stands in lists, in the order of the list.
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

/// Where a command is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    /// In the menus of platforms that have them, and as text.
    Native,
    /// As text alone.
    Text,
}

/// What a client of the gateway must be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// To write.
    Writing,
    /// To decide on commands, where the command changes something.
    Approvals,
    /// To change the gateway.
    Admin,
}

/// Who may give a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Whoever may give commands.
    Authorised,
    /// The owners alone.
    Owner,
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
    /// The same, answered with more than words.
    Shows(for<'a> fn(&'a Context<'a>, &'a str) -> Showing<'a>),
    /// A setting, or a hint where it stands among words: [`super::directives`].
    Directive(Directive),
    /// It begins a new conversation, as `session.resetTriggers` has it.
    Resets,
    /// It stops the session's runs, at once.
    Stops,
    /// It stops the run under way, and makes the conversation shorter in its turn.
    Compacts,
    /// Nothing yet.
    Missing,
}

impl Category {
    /// All, in order.
    pub(super) const ALL: [Self; 7] =
        [Self::Session, Self::Options, Self::Status, Self::Management, Self::Media, Self::Tools, Self::Docks];

    /// Its heading.
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
        }
    }

    /// The same, with something that may follow it.
    pub(super) const fn needing(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    pub(super) const fn taking(self, takes: Takes, arguments: &'static str) -> Self {
        Self { takes, arguments, ..self }
    }

    /// The same, with choices that can be pressed.
    pub(super) const fn offering(self, argument_menu: ArgumentMenu) -> Self {
        Self { argument_menu, ..self }
    }

    /// The same, where changes need a setting.
    pub(super) const fn editing_with(self, setting: &'static str) -> Self {
        Self { edits_need: Some(setting), ..self }
    }

    /// The same, with other names.
    pub(super) const fn called(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Whether there is something behind it.
    pub(super) fn is_there(&self) -> bool {
        !matches!(self.does, Does::Missing)
    }

    /// Whether it is shown in lists and menus.
    pub(super) fn is_listed(&self, settings: &Commands) -> bool {
        self.is_there() && (self.is_on)(settings)
    }
}

impl Command {
    /// Whether its words may have lines. They are taken as they were written.
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

/// Whether `/<alias>` means something else already.
pub(super) fn is_reserved(alias: &str, triggers: &[&str]) -> bool {
    let alias = alias.trim().to_lowercase();
    let is_trigger = |trigger: &&str| trigger.trim().trim_start_matches('/').to_lowercase() == alias;
    is_command(&alias) || triggers.iter().any(is_trigger)
}

/// Whether the command of a row's name is in the menus of platforms.
pub(super) fn is_native(name: &str) -> bool {
    COMMANDS.iter().any(|row| row.name == name && row.offered == Offered::Native && row.is_there())
}

/// Whether a row is in the menus of platforms now.
pub(super) fn is_in_menu(row: &Command, settings: &Commands) -> bool {
    row.offered == Offered::Native && row.is_listed(settings)
}

/// Whether `/<name>` is one of these commands.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.is_called(name))
}

/// The row that a text begins with as a command.
pub(super) fn begun(text: &str) -> Option<&'static Command> {
    let (name, _) = slash_command(text)?;
    let name = name.to_lowercase();
    COMMANDS.iter().find(|command| command.is_called(&name))
}

/// The command that a body is, if it is one that is answered, and what follows its name: of its first line, unless its words may have
/// lines (spec `messages.md` §3).
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

/// `! ls`, `!ls` and `!poll` are other ways to write `/bash`. A second `!` is none: who writes `!!!` gives no command.
fn bang(behind: &str) -> Option<(&'static str, &str)> {
    let word = behind.split_whitespace().next()?;
    let begins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '~' | '_' | '$');
    let is_one = behind.starts_with(' ') || word.starts_with(begins);
    is_one.then(|| (BASH, behind.trim()))
}

/// Does a command that is answered. One that a later version has accepted, or that is not there, says so.
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

/// The row that a name calls, where it is there and is answered among words too.
pub(super) fn shortcut(name: &str) -> Option<&'static str> {
    let command = COMMANDS.iter().find(|command| command.is_called(name))?;
    (command.inline && command.is_there()).then_some(command.name)
}

/// What is said of a command that this gateway does not have.
pub(super) fn not_there(name: &str) -> String {
    format!("⚠️ /{name} is not there yet in this version. /commands lists what there is.")
}

/// Why the client that gives it may not.
pub(super) fn refusal(context: &Context<'_>, command: &Command, arguments: &str) -> Option<String> {
    let request = &context.row.payload;
    let (is_allowed, scope) = match command.needs {
        Needs::Writing => return None,
        Needs::Approvals => (arguments.trim().is_empty() || request.may_set_guards(), "operator.approvals"),
        Needs::Admin => (request.origin.is_some() || request.may_administer, "operator.admin"),
    };
    (!is_allowed).then(|| needs_scope(command.name, scope))
}

/// What a client is told that may not give a command.
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
