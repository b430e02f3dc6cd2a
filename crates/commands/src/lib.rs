//! Chat commands and directives: messages to the gateway rather than to the agent (spec `messages.md` §3-§6).
//!
//! Reading is pure: [`read`] takes a text and returns an [`Intent`], decided once when a message is accepted, the same for
//! every surface. Doing comes later, in the turn of the message: [`run()`] carries out a command, [`settle`] several
//! directives. Both have what they use in a [`CommandContext`], and ask the gateway for the rest through [`CommandHost`]. The crate
//! starts no run and knows no lane.
//!
//! The table of commands is below: one row a command, and each command has a file, which holds its row. `/new` and
//! `/reset` are reset triggers (`session.resetTriggers`). [`mod@menu`] makes the menus of platforms and `docs/commands.md`
//! out of the rows, [`buttons`] reads buttons that are pressed below answers, `argument_menu` makes those of commands that
//! are called without an argument, and [`cards`] writes the answers of `/model`.

mod activation;
mod allowlist;
mod allowlist_words;
mod approve;
mod argument_menu;
mod bash;
pub mod buttons;
pub mod cards;
mod command;
pub mod compact;
mod config;
mod config_words;
mod context;
mod debug;
mod directive;
mod directives;
mod dock;
mod elevated;
mod exec;
mod help;
mod host;
mod late;
mod levels;
mod line;
mod menu;
pub mod model;
mod models;
mod not_yet;
mod queue;
mod reasoning;
mod reset;
pub mod response;
mod restart;
mod run;
mod send;
mod shortcuts;
pub mod skill;
mod status;
pub mod stop;
mod subagents;
mod table;
#[cfg(test)]
mod testing;
mod think;
mod usage;
mod verbose;
mod whoami;

use std::pin::Pin;
use std::sync::Arc;

use openclaw_agent::skills::{self, SkillBook, SkillCommand};
use openclaw_channels::Platforms;
use openclaw_channels::access::AccessSettings;
use openclaw_config::ResolvedAgent;
use openclaw_config::registry;
use openclaw_config::settings::Commands as CommandSettings;
use openclaw_journal::clock::Clock;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::{Hints, Intent, StoredDirective};
use openclaw_models::reference::ModelNames;
use openclaw_models::{Choices, ModelRef, SelectError};
use openclaw_runtime::registry::Registry;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::Settings;
use openclaw_runtime::surroundings::Surroundings;
use openclaw_sessions::reset::find_trigger;
use openclaw_sessions::reset::trigger::{command_body, slash_command, strip_structural_prefixes};
use openclaw_sessions::store::Edit;
use openclaw_sessions::{SessionEntry, SessionKey, SessionStore, StoreError};
use openclaw_tools::CommandSessions;
use openclaw_tools::approvals::Approvals;
use tokio_util::sync::CancellationToken;

pub use host::{CommandHost, SubagentControl};

use directive::DirectiveReading;
use model::ModelWish;

pub use command::MenuFacts;
pub use directives::settle;
pub use exec::refusal as exec_refusal;
pub use late::{Late, first_word, without_commands};
pub use menu::menu;
pub use menu::reference;
pub use response::{CommandResponse, Then};
pub use status::card as status_card;
pub use table::needs_scope;

/// The chat commands of OpenClaw 2026.2.9 (spec `messages.md` §5), by category and in the order in which they are listed. Directives are
/// cut out of a text in this order.
const COMMANDS: &[command::ChatCommand] = &[
    reset::NEW,
    reset::RESET,
    compact::COMMAND,
    stop::COMMAND,
    think::COMMAND,
    verbose::COMMAND,
    reasoning::COMMAND,
    elevated::COMMAND,
    exec::COMMAND,
    model::COMMAND,
    models::COMMAND,
    queue::COMMAND,
    usage::COMMAND,
    help::HELP,
    help::LIST,
    status::COMMAND,
    context::COMMAND,
    whoami::COMMAND,
    activation::COMMAND,
    send::COMMAND,
    allowlist::COMMAND.editing_with("commands.config"),
    approve::COMMAND,
    subagents::COMMAND,
    config::COMMAND,
    debug::COMMAND,
    restart::COMMAND,
    not_yet::TTS,
    skill::COMMAND,
    bash::COMMAND,
    dock::TELEGRAM,
    dock::DISCORD,
    dock::SLACK,
];

/// The thinking levels that a model has, for people.
pub fn thinking_levels(model: &ModelRef) -> String {
    think::options(model)
}

/// Returns the name of the directive that sets guards of commands, if there is one.
pub fn guard_directive(hints: &Hints) -> Option<&'static str> {
    let exec = hints.exec.as_ref().map(|_| exec::NAME);
    exec.or(hints.elevated.map(|_| elevated::NAME))
}

/// A message as it came, with its sender's rights.
#[derive(Debug, Clone, Copy)]
pub struct Spoken<'a> {
    /// Text, without a reset trigger.
    pub text: &'a str,
    /// True if it has more than text; then it is never for the gateway alone.
    pub attached: bool,
    /// True if its sender may give commands.
    pub may_command: bool,
    /// True if it addresses the agent: false only in a group.
    pub is_addressed: bool,
    /// Commands that are read from texts here.
    pub commands: TextCommands,
}

#[cfg(test)]
impl<'a> Spoken<'a> {
    /// Words of somebody who may give commands.
    pub fn words(text: &'a str) -> Self {
        Self { text, attached: false, may_command: true, is_addressed: true, commands: TextCommands::All }
    }
}

/// Commands that are read from a text (`commands.text`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextCommands {
    /// All commands.
    #[default]
    All,
    /// Only those that the platform's own menu sends.
    Native,
}

impl TextCommands {
    /// Returns the commands that are read from texts on a channel. On a platform without commands
    /// of its own, all are.
    pub fn on(channel: &str, text: Option<bool>) -> Self {
        match text {
            Some(false) if registry::by_id(channel).is_some_and(|row| row.native_commands) => Self::Native,
            Some(_) | None => Self::All,
        }
    }

    fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            // `/compact` is read everywhere.
            Self::Native => name == compact::NAME || table::is_native(name),
        }
    }
}

/// Names by which a message may refer to things here.
#[derive(Debug, Clone, Copy)]
pub struct KnownNames<'a> {
    /// The owner's models.
    pub models: &'a ModelNames,
    /// Reset triggers: words that start a new conversation.
    pub triggers: &'a [&'a str],
    /// Commands of skills, if the message may be one.
    pub skills: &'a [SkillCommand],
}

/// True if a text is a command and nothing else, reset triggers included.
pub fn is_one(text: &str) -> bool {
    table::begun(&command_body(text)).is_some()
}

/// True if a text is a command that the menus of platforms have.
pub fn is_in_menu(text: &str, settings: &CommandSettings) -> bool {
    table::begun(&command_body(text)).is_some_and(|row| table::is_in_menu(row, settings))
}

/// True if a text begins as commands do, even if there is no such command.
pub fn begins_as_one(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    slash_command(&command_body(text)).is_some_and(|(name, _)| name.chars().all(is_of_name))
}

/// True if the text is a command that resets the conversation or stops what runs. From a sender who
/// may not give commands, other words that mean the same are plain words (spec `messages.md` §5,
/// `queue.md` §6.1).
fn resets_or_stops(text: &str, names: KnownNames<'_>) -> bool {
    let body = command_body(text);
    let triggers: Vec<&str> =
        names.triggers.iter().copied().filter(|trigger| trigger.trim().starts_with('/')).collect();
    body.starts_with('/') && (stop::is_stop(&body) || find_trigger(&triggers, &body, &body, true).is_some())
}

/// Tells words from commands.
pub fn read(spoken: Spoken<'_>, names: KnownNames<'_>) -> Intent {
    if !spoken.may_command && resets_or_stops(spoken.text, names) {
        return Intent::Ignored;
    }
    if let Some(intent) = skill::read(spoken, names.skills) {
        return intent;
    }
    if !spoken.attached
        && let Some((name, arguments)) = table::read(&command_body(spoken.text))
        && spoken.commands.has(name)
        // As in OpenClaw, words after a `!` are the agent's where their sender may give no commands.
        && (spoken.may_command || !spoken.text.trim_start().starts_with('!'))
    {
        return command(spoken.may_command, name, arguments);
    }
    let aliases = model_aliases(names);
    alone(spoken, &aliases).unwrap_or_else(|| among(spoken, &aliases))
}

/// Returns the aliases of models that are directives, as in `/opus`.
fn model_aliases(names: KnownNames<'_>) -> Vec<&str> {
    let aliases = names.models.aliases().map(|(alias, _)| alias);
    let is_shortcut = |alias: &&str| {
        let is_model = matches!(ModelWish::of(alias), ModelWish::Choose(_));
        let is_skill = skills::called(names.skills, alias.trim()).is_some();
        is_model && !is_skill && !table::is_reserved(alias, names.triggers)
    };
    aliases.filter(is_shortcut).collect()
}

/// Reads a message that consists only of directives and shortcuts; `None` for any other.
fn alone(spoken: Spoken<'_>, aliases: &[&str]) -> Option<Intent> {
    let (wishes, rest) = directives::take_all(spoken.text, DirectiveReading::Alone, aliases);
    let (shortcuts, rest) = with_shortcuts(spoken, rest);
    let is_empty = wishes.is_empty() && shortcuts.is_empty();
    if is_empty || spoken.attached || !strip_structural_prefixes(&rest).is_empty() {
        return None;
    }
    let mut wishes = counting(spoken, wishes);
    wishes.extend(shortcuts.into_iter().map(|name| StoredDirective { name, arguments: String::new() }));
    Some(match (spoken.may_command, wishes.as_slice()) {
        (false, _) | (true, []) => Intent::Ignored,
        (true, [StoredDirective { name, arguments }]) => command(true, name, arguments),
        (true, _) => Intent::Settings { wishes },
    })
}

/// Reads words for the agent, with the directives and shortcuts among them.
fn among(spoken: Spoken<'_>, aliases: &[&str]) -> Intent {
    let (wishes, shortcuts, text) = found_among(spoken, aliases);
    // Words about directives: there is nothing to do for this run, and nothing of them is lost.
    if wishes.is_empty() && shortcuts.is_empty() {
        return Intent::Prompt;
    }
    if !spoken.may_command {
        return Intent::Stripped { text };
    }
    let wishes = counting(spoken, wishes);
    Intent::PromptFor { hints: Hints { shortcuts, ..directives::hints(&wishes) }, text }
}

/// Takes directives and shortcuts out of words; returns both, and the rest of the words.
fn found_among(spoken: Spoken<'_>, aliases: &[&str]) -> (Vec<StoredDirective>, Vec<String>, String) {
    let (wishes, rest) = directives::take_all(spoken.text, DirectiveReading::Among, aliases);
    let (shortcuts, text) = with_shortcuts(spoken, rest);
    (wishes, shortcuts, text)
}

/// Keeps the directives that count here: some need a mention.
fn counting(spoken: Spoken<'_>, mut wishes: Vec<StoredDirective>) -> Vec<StoredDirective> {
    wishes.retain(|wish| spoken.is_addressed || !directives::needs_mention(wish));
    wishes
}

/// Takes out the shortcuts if the sender may use them; returns them, and the rest of the text.
fn with_shortcuts(spoken: Spoken<'_>, text: String) -> (Vec<String>, String) {
    let may = spoken.may_command && spoken.commands == TextCommands::All;
    let found = if may { shortcuts::take(&text) } else { None };
    found.unwrap_or_else(|| (Vec::new(), text))
}

fn command(may_command: bool, name: &str, arguments: &str) -> Intent {
    match may_command {
        true => Intent::Command { name: name.to_owned(), arguments: arguments.to_owned() },
        false => Intent::Ignored,
    }
}

/// Parts of the gateway that commands use.
pub struct CommandServices {
    /// Models that sessions have chosen, among all models.
    pub models: Arc<SessionModels>,
    /// The rows of all sessions.
    pub store: Arc<dyn SessionStore>,
    /// The chat platforms there are.
    pub platforms: Arc<Platforms>,
    /// Skills of all agents.
    pub skills: Arc<SkillBook>,
    /// Commands that wait for a person's word.
    pub approvals: Arc<Approvals>,
    /// The commands that run.
    pub command_sessions: Arc<CommandSessions>,
    /// Services of the gateway; `None` if there is no gateway.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// Runs that have not ended.
    pub registry: Arc<Registry>,
    /// The time.
    pub clock: Clock,
    /// Access to the runs and sub-agents of the gateway.
    pub host: Arc<dyn CommandHost>,
}

/// Session that a command works on, with the settings in force.
#[derive(Clone, Copy)]
pub struct CommandSession<'a> {
    /// Settings in force.
    pub settings: &'a Arc<Settings>,
    /// Key of the session.
    pub key: &'a SessionKey,
    /// Agent of the session.
    pub agent: &'a ResolvedAgent,
    /// The session's row.
    pub entry: &'a SessionEntry,
}

impl CommandServices {
    /// Makes the context of a message's command. `stop` is cancelled when nobody waits for the answer any more.
    pub fn context<'a>(
        &'a self,
        CommandSession { settings, key, agent, entry }: CommandSession<'a>,
        row: &'a InboxRow,
        stop: &'a CancellationToken,
    ) -> CommandContext<'a> {
        CommandContext {
            services: self,
            settings,
            key,
            agent,
            entry,
            row,
            was_begun: false,
            stop,
            overtaken: None,
        }
    }
}

/// Session, message and settings that a command works on.
pub struct CommandContext<'a> {
    /// Parts of the gateway that commands use.
    pub services: &'a CommandServices,
    /// Settings in force.
    pub settings: &'a Arc<Settings>,
    /// Key of the session.
    pub key: &'a SessionKey,
    /// Agent of the session.
    pub agent: &'a ResolvedAgent,
    /// The session's row.
    pub entry: &'a SessionEntry,
    /// The message that gives it.
    pub row: &'a InboxRow,
    /// True if an earlier process may have done it already.
    pub was_begun: bool,
    /// Cancelled when nobody waits for the answer any more.
    pub stop: &'a CancellationToken,
    /// Cancelled once something else of the session waits for the answer: a command that could wait longer answers at once.
    pub overtaken: Option<&'a CancellationToken>,
}

impl CommandContext<'_> {
    /// Returns the channel it was said on.
    pub fn channel(&self) -> &str {
        self.row.payload.channel()
    }

    /// Returns the models that the agent may use.
    pub async fn choices(&self) -> Choices {
        let models = &self.settings.models;
        self.services.models.all.choices(models, &self.agent.id, &self.agent.agent_dir).await
    }

    /// Changes the session's row, durably.
    async fn edit(&self, change: impl FnOnce(&mut SessionEntry) + Send + 'static) -> Result<(), StoreError> {
        let change = Box::new(move |edit: Edit<'_>| {
            change(edit.entry);
            edit.entry.touch(edit.now);
            Ok(())
        });
        self.services.store.update(self.key, change).await.map(drop)
    }

    /// True if a run of the caller is confined to a sandbox.
    fn is_sandboxed(&self) -> bool {
        self.row.payload.rights.as_ref().is_some_and(|rights| !rights.may_use_host())
    }

    /// True if the sender is one of the owners. A client that may change the gateway counts as one.
    fn is_owner(&self) -> bool {
        self.row.payload.is_owners()
    }

    /// True if buttons are shown where the message was sent. Answers to commands among words have
    /// none.
    fn shows_buttons(&self) -> bool {
        if !self.row.payload.to_gateway().is_for_gateway_alone() {
            return false;
        }
        let Some(origin) = self.row.payload.source.origin() else { return false };
        self.services.platforms.shows_buttons(&self.settings.config, &origin.address)
    }

    /// Ids of the platforms that have a usable account.
    fn platforms(&self) -> Vec<&'static str> {
        self.services.platforms.usable(&self.settings.config)
    }

    fn menu_facts<'b>(&'b self, platforms: &'b [&'static str]) -> MenuFacts<'b> {
        MenuFacts { settings: &self.settings.config.commands, platforms }
    }

    /// Returns the refusal if the channel of the message may not change the configuration.
    fn writes_refused(&self) -> Option<String> {
        let address = &self.row.payload.source.origin()?.address;
        let access = AccessSettings::of(&self.settings.config, &address.channel, &address.account);
        let may_write = access.is_ok_and(|access| access.may_write_config());
        (!may_write).then(|| writes_refused_on(&address.channel))
    }
}

fn writes_refused_on(channel: &str) -> String {
    format!(
        "⚠️ Config writes are disabled for {channel}. Set channels.{channel}.configWrites=true to enable."
    )
}

/// Reasons for which a command could not be done.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The session's row can't be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The available models can't be read.
    #[error(transparent)]
    Models(#[from] SelectError),
    /// The prompt of a run can't be determined; the text is for people.
    #[error("{0}")]
    Prompt(String),
}

/// Future of the text that a command answers with.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<String, CommandError>> + Send + 'a>>;

/// Carries out a command and returns its answer. The command may be done twice if the process ends
/// in between.
pub async fn run(
    context: &CommandContext<'_>,
    name: &str,
    arguments: &str,
) -> Result<CommandResponse, CommandError> {
    run::run(context, name, arguments).await
}

#[cfg(test)]
mod tests;
