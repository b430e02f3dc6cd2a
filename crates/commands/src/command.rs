//! A chat command: the fields of its row in the [`table`](super::table).

use std::pin::Pin;

use openclaw_config::settings::Commands;
use openclaw_journal::caller::Right;

use super::directive::Directive;
use super::response::Showing;
use super::{Answering, CommandContext};

/// The command that `!` stands for.
pub(crate) const BASH: &str = "bash";

/// A command.
#[derive(Clone, Copy)]
pub(crate) struct ChatCommand {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) takes: Takes,
    /// True if its arguments may have several lines.
    pub(crate) keeps_lines: bool,
    pub(crate) does: Does,
    /// Category in which lists show it.
    pub(crate) category: Category,
    /// Description in a few words.
    pub(crate) about: &'static str,
    /// Syntax of the arguments, as shown to people.
    pub(crate) arguments: &'static str,
    /// Places that offer it.
    pub(crate) offered: Offered,
    /// True if it also works in the middle of other words.
    pub(crate) inline: bool,
    /// Right that its caller needs; of a client the same as for the method that does the same.
    pub(crate) needs: Right,
    /// Buttons shown if it is called without arguments.
    pub(crate) argument_menu: ArgumentMenu,
    /// Returns true if the configuration has it.
    pub(crate) is_on: fn(&Commands) -> bool,
    /// Setting that has to be true for changes, if the command also shows things without.
    pub(crate) edits_need: Option<&'static str>,
    /// Platform without which the command is of no use.
    pub(crate) platform: Option<&'static str>,
}

/// Facts that decide which commands are shown in lists and menus.
#[derive(Debug, Clone, Copy)]
pub struct MenuFacts<'a> {
    /// Settings of commands.
    pub settings: &'a Commands,
    /// Ids of the platforms that have a usable account.
    pub platforms: &'a [&'static str],
}

/// Category of a command, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
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
pub(crate) enum Offered {
    /// Offered in the menus of platforms that have them, and as text.
    Native,
    /// Offered as text alone.
    Text,
}

/// Arguments with which the whole message counts as the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
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
pub(crate) enum Does {
    /// Returns an answer, in the session's turn or beside its run.
    Answers(for<'a> fn(&'a CommandContext<'a>, &'a str) -> Answering<'a>),
    /// Returns an answer with more than words, in the session's turn or beside its run.
    Shows(for<'a> fn(&'a CommandContext<'a>, &'a str) -> Showing<'a>),
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

/// Future of choices that depend on the place where the command is given.
pub(crate) type Offering<'a> = Pin<Box<dyn Future<Output = Vec<String>> + Send + 'a>>;

/// Menu that a command shows if it is called without arguments.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentMenu {
    /// No buttons.
    None,
    /// Buttons for these fixed choices.
    Fixed(&'static [&'static str]),
    /// Buttons for the choices that exist here, possibly none.
    Here(for<'a> fn(&'a CommandContext<'a>) -> Offering<'a>),
    /// An answer of its own.
    Own(for<'a> fn(&'a CommandContext<'a>) -> Showing<'a>),
}

impl Category {
    /// All categories, in order.
    pub(crate) const ALL: [Self; 7] =
        [Self::Session, Self::Options, Self::Status, Self::Management, Self::Media, Self::Tools, Self::Docks];

    /// Heading of the category.
    pub(crate) fn title(self) -> &'static str {
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

impl ChatCommand {
    /// A row to be filled in: `ChatCommand { takes: …, ..ChatCommand::new(…) }`.
    pub(crate) const fn new(name: &'static str, category: Category, does: Does, about: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            takes: Takes::Nothing,
            keeps_lines: false,
            does,
            category,
            about,
            arguments: "",
            offered: Offered::Native,
            inline: false,
            needs: Right::Command,
            argument_menu: ArgumentMenu::None,
            is_on: |_| true,
            edits_need: None,
            platform: None,
        }
    }

    /// Sets the right that its caller needs.
    pub(crate) const fn needing(mut self, needs: Right) -> Self {
        self.needs = needs;
        self
    }

    pub(crate) const fn taking(self, takes: Takes, arguments: &'static str) -> Self {
        Self { takes, arguments, ..self }
    }

    /// Lets its arguments have several lines.
    pub(crate) const fn keeping_lines(self) -> Self {
        Self { keeps_lines: true, ..self }
    }

    /// Sets the choices that can be pressed.
    pub(crate) const fn offering(self, argument_menu: ArgumentMenu) -> Self {
        Self { argument_menu, ..self }
    }

    /// Sets the setting that changes need.
    pub(crate) const fn editing_with(self, setting: &'static str) -> Self {
        Self { edits_need: Some(setting), ..self }
    }

    /// Sets other names.
    pub(crate) const fn called(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// True if it is implemented.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.does, Does::Missing)
    }

    /// True if it is implemented and the configuration has it.
    pub(crate) fn can_be_given(&self, settings: &Commands) -> bool {
        self.is_there() && (self.is_on)(settings)
    }

    /// True if it is shown in lists and menus.
    pub(crate) fn is_listed(&self, facts: MenuFacts<'_>) -> bool {
        let has_platform = self.platform.is_none_or(|platform| facts.platforms.contains(&platform));
        has_platform && self.can_be_given(facts.settings)
    }
}

impl ChatCommand {
    /// True if its arguments may have several lines. They are taken as they were written.
    pub(crate) fn keeps_lines(&self) -> bool {
        self.keeps_lines || matches!(self.does, Does::Resets)
    }

    /// True if `/<name>` calls it.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl Takes {
    /// True if such arguments may stand behind the name.
    pub(crate) fn fits(self, arguments: &str) -> bool {
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
