//! What people write to the gateway rather than to the agent (spec `messages.md` §3-§6): commands that are the whole message,
//! [`directives`] among words for the agent, and [`shortcuts`]. [`read`] is pure: text in, [`Intent`] out, decided once when a message
//! is accepted, the same for every surface. [`run`] does what a command says, [`settle`] what several directives say.
//!
//! [`COMMANDS`] has one row a command, and each command a file, which holds its row. `/new` and `/reset` are reset triggers
//! (`session.resetTriggers`). [`mod@menu`] makes platform menus and `docs/commands.md` of the rows, [`buttons`] reads what is pressed below
//! answers, [`cards`] are the answers of `/model`; [`argument_menu`] the buttons of commands that are called without an argument; [`levels`] the words for levels; [`mod@line`] cuts directives out of a text; [`hints`] are
//! what they ask for one run.

mod activation;
mod allowlist;
mod allowlist_words;
mod approve;
mod argument_menu;
mod bash;
pub(crate) mod buttons;
pub(crate) mod cards;
pub(crate) mod compact;
mod config;
mod config_words;
mod context;
mod debug;
mod directives;
mod dock;
mod elevated;
mod exec;
mod help;
mod hints;
mod late;
mod levels;
mod line;
mod menu;
pub(crate) mod model;
mod models;
mod not_yet;
mod queue;
mod reasoning;
mod reset;
pub(crate) mod response;
mod restart;
mod send;
mod shortcuts;
pub(crate) mod skill;
mod status;
pub(crate) mod stop;
mod subagents;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod think;
mod usage;
mod verbose;
mod whoami;

use std::pin::Pin;
use std::sync::Arc;

use openclaw_agent::skills::{self, SkillCommand};
use openclaw_channels::access::AccessSettings;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::Commands as CommandSettings;
use openclaw_models::reference::ModelNames;
use openclaw_models::{Choices, ModelRef, SelectError};
use openclaw_sessions::reset::authority::Authority;
use openclaw_sessions::reset::find_trigger;
use openclaw_sessions::reset::trigger::{command_body, slash_command, strip_structural_prefixes};
use openclaw_sessions::store::Edit;
use openclaw_sessions::{SessionEntry, SessionKey, StoreError};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::inbox::Row;
use crate::runner::{Runner, sandbox};
use crate::session_model::SessionModels;
use crate::setup::Settings;
use directives::Reading;
use model::ModelWish;

pub(crate) use directives::{Wish, settle};
pub(crate) use exec::ExecWish;
pub(crate) use hints::Hints;
pub(crate) use late::{Late, first_word, without_commands};
pub(crate) use levels::Reasoning;
pub(crate) use menu::menu;
pub use menu::reference;
#[cfg(test)]
pub(crate) use model::ModelChoice;
pub(crate) use response::{Response, Then};
pub(crate) use skill::ToolWish;
pub(crate) use status::card as status_card;
use table::Command;
pub(crate) use table::needs_scope;

/// The chat commands of OpenClaw 2026.2.9 (spec `messages.md` §5), by category and in the order in which they are listed.
const COMMANDS: &[Command] = &[
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
pub(crate) fn thinking_levels(model: &ModelRef) -> String {
    think::options(model)
}

/// What a message is to the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum Intent {
    /// Words for the agent.
    #[default]
    Prompt,
    /// Words for the agent, with hints for this run alone. The text is what is left for the agent.
    PromptFor {
        #[serde(flatten)]
        hints: Hints,
        text: String,
    },
    /// A command and nothing else: it is answered without a run.
    Command { name: String, arguments: String },
    /// Several directives and nothing else: the same.
    Settings { wishes: Vec<Wish> },
    /// Words for the agent around directives of somebody who may have none.
    Stripped { text: String },
    /// Only directives of somebody who may have none: no run, no answer.
    Ignored,
    /// Words for the agent in the place of those that were written.
    Reworded { text: String },
    /// A tool is called without the agent, and answers.
    Tool(ToolWish),
    /// Words of the gateway's own: they are posted as they are.
    Announcement,
}

impl Intent {
    /// Whether it is words as they came.
    pub(crate) fn is_prompt(&self) -> bool {
        matches!(self, Self::Prompt)
    }

    /// Whether there is nothing in it for the agent.
    pub(crate) fn is_for_gateway_alone(&self) -> bool {
        match self {
            Self::Command { .. }
            | Self::Settings { .. }
            | Self::Ignored
            | Self::Tool(_)
            | Self::Announcement => true,
            Self::Prompt | Self::PromptFor { .. } | Self::Stripped { .. } | Self::Reworded { .. } => false,
        }
    }

    /// Whether it asks for something that a run under way can't give it.
    pub(crate) fn is_for_one_run(&self) -> bool {
        matches!(self, Self::PromptFor { hints, .. } if hints.need_own_run())
    }

    /// What is asked for this run alone.
    pub(crate) fn hints(&self) -> Option<&Hints> {
        match self {
            Self::PromptFor { hints, .. } => Some(hints),
            Self::Prompt
            | Self::Command { .. }
            | Self::Settings { .. }
            | Self::Stripped { .. }
            | Self::Ignored
            | Self::Reworded { .. }
            | Self::Announcement
            | Self::Tool(_) => None,
        }
    }

    /// The tool that is called.
    pub(crate) fn tool(&self) -> Option<&ToolWish> {
        match self {
            Self::Tool(wish) => Some(wish),
            Self::Prompt
            | Self::PromptFor { .. }
            | Self::Command { .. }
            | Self::Settings { .. }
            | Self::Stripped { .. }
            | Self::Ignored
            | Self::Announcement
            | Self::Reworded { .. } => None,
        }
    }

    /// What is left for the agent, where something was taken out.
    pub(crate) fn words(&self) -> Option<&str> {
        match self {
            Self::PromptFor { text, .. } | Self::Stripped { text } | Self::Reworded { text } => Some(text),
            Self::Prompt
            | Self::Command { .. }
            | Self::Settings { .. }
            | Self::Ignored
            | Self::Announcement
            | Self::Tool(_) => None,
        }
    }
}

/// A message as it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spoken<'a> {
    /// Its text, without a reset trigger.
    pub(crate) text: &'a str,
    /// Whether it has more than text: then it is never for the gateway alone.
    pub(crate) attached: bool,
    /// Whether its sender may give commands.
    pub(crate) by: Authority,
    /// Whether it speaks to the agent: false only in a group.
    pub(crate) is_addressed: bool,
    /// Whether commands are read from texts here.
    pub(crate) commands: TextCommands,
}

#[cfg(test)]
impl<'a> Spoken<'a> {
    /// Words of somebody who may give commands.
    pub(crate) fn words(text: &'a str) -> Self {
        Self {
            text,
            attached: false,
            by: Authority::Granted,
            is_addressed: true,
            commands: TextCommands::All,
        }
    }
}

/// Which commands are read from a text (`commands.text`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TextCommands {
    /// All.
    #[default]
    All,
    /// Those that the platform's own menu sends.
    Native,
}

/// Platforms with commands of their own.
const WITH_MENU: [&str; 3] = ["telegram", "discord", "slack"];

impl TextCommands {
    /// Of a channel. Where a platform has no commands of its own they are always read from texts.
    pub(crate) fn on(channel: &str, text: Option<bool>) -> Self {
        match text {
            Some(false) if WITH_MENU.contains(&channel) => Self::Native,
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

/// What the names of things are here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The owner's models.
    pub(crate) models: &'a ModelNames,
    /// What starts a conversation anew.
    pub(crate) triggers: &'a [&'a str],
    /// The commands of skills, where the message may be one.
    pub(crate) skills: &'a [SkillCommand],
}

/// Whether a text is a command and nothing else, a new beginning included.
pub(crate) fn is_one(text: &str) -> bool {
    table::begun(&command_body(text)).is_some()
}

/// Whether a text is a command that the menus of platforms have.
pub(crate) fn is_in_menu(text: &str, settings: &CommandSettings) -> bool {
    table::begun(&command_body(text)).is_some_and(|row| table::is_in_menu(row, settings))
}

/// Whether a text begins as commands do, whether there is such a one or not.
pub(crate) fn begins_as_one(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    slash_command(&command_body(text)).is_some_and(|(name, _)| name.chars().all(is_of_name))
}

/// Whether somebody begins a conversation anew, or stops what runs, by a command. To who may give none, other words that mean the same are
/// words (spec `messages.md` §5, `queue.md` §6.1).
fn resets_or_stops(text: &str, names: Names<'_>) -> bool {
    let body = command_body(text);
    let triggers: Vec<&str> =
        names.triggers.iter().copied().filter(|trigger| trigger.trim().starts_with('/')).collect();
    body.starts_with('/')
        && (stop::is_stop(&body) || find_trigger(&triggers, &body, &body, Authority::Granted).is_some())
}

/// Tells words from commands.
pub(crate) fn read(spoken: Spoken<'_>, names: Names<'_>) -> Intent {
    if spoken.by == Authority::Denied && resets_or_stops(spoken.text, names) {
        return Intent::Ignored;
    }
    if let Some(intent) = skill::read(spoken, names.skills) {
        return intent;
    }
    if !spoken.attached
        && let Some((name, arguments)) = table::read(&command_body(spoken.text))
        && spoken.commands.has(name)
        // As in OpenClaw, words after a `!` are the agent's where their sender may give no commands.
        && !(spoken.by == Authority::Denied && spoken.text.trim_start().starts_with('!'))
    {
        return command(spoken.by, name, arguments);
    }
    let aliases = model_aliases(names);
    alone(spoken, &aliases).unwrap_or_else(|| among(spoken, &aliases))
}

/// The aliases of models that are directives, as in `/opus`.
fn model_aliases(names: Names<'_>) -> Vec<&str> {
    let aliases = names.models.aliases().map(|(alias, _)| alias);
    let is_shortcut = |alias: &&str| {
        let is_model = matches!(ModelWish::of(alias), ModelWish::Choose(_));
        let is_skill = skills::called(names.skills, alias.trim()).is_some();
        is_model && !is_skill && !table::is_reserved(alias, names.triggers)
    };
    aliases.filter(is_shortcut).collect()
}

/// A message that is nothing but directives and shortcuts.
fn alone(spoken: Spoken<'_>, aliases: &[&str]) -> Option<Intent> {
    let (wishes, rest) = directives::take_all(spoken.text, Reading::Alone, aliases);
    let (shortcuts, rest) = with_shortcuts(spoken, rest);
    let is_empty = wishes.is_empty() && shortcuts.is_empty();
    if is_empty || spoken.attached || !strip_structural_prefixes(&rest).is_empty() {
        return None;
    }
    let mut wishes = counting(spoken, wishes);
    wishes.extend(shortcuts.into_iter().map(|name| Wish { name, arguments: String::new() }));
    Some(match (spoken.by, wishes.as_slice()) {
        (Authority::Denied, _) | (_, []) => Intent::Ignored,
        (by, [Wish { name, arguments }]) => command(by, name, arguments),
        (Authority::Granted, _) => Intent::Settings { wishes },
    })
}

/// Words for the agent, with what stands among them.
fn among(spoken: Spoken<'_>, aliases: &[&str]) -> Intent {
    let (wishes, shortcuts, text) = found_among(spoken, aliases);
    // Words about directives: there is nothing to do for this run, and nothing of them is lost.
    if wishes.is_empty() && shortcuts.is_empty() {
        return Intent::Prompt;
    }
    if spoken.by == Authority::Denied {
        return Intent::Stripped { text };
    }
    let wishes = counting(spoken, wishes);
    Intent::PromptFor { hints: Hints { shortcuts, ..directives::hints(&wishes) }, text }
}

/// The directives and shortcuts among words, and what is left of those.
fn found_among(spoken: Spoken<'_>, aliases: &[&str]) -> (Vec<Wish>, Vec<String>, String) {
    let (wishes, rest) = directives::take_all(spoken.text, Reading::Among, aliases);
    let (shortcuts, text) = with_shortcuts(spoken, rest);
    (wishes, shortcuts, text)
}

/// Those that count where they are said.
fn counting(spoken: Spoken<'_>, mut wishes: Vec<Wish>) -> Vec<Wish> {
    wishes.retain(|wish| spoken.is_addressed || !directives::needs_mention(wish));
    wishes
}

/// The shortcuts of somebody who may have them, and what is left.
fn with_shortcuts(spoken: Spoken<'_>, text: String) -> (Vec<String>, String) {
    let may = spoken.by == Authority::Granted && spoken.commands == TextCommands::All;
    let found = if may { shortcuts::take(&text) } else { None };
    found.unwrap_or_else(|| (Vec::new(), text))
}

fn command(by: Authority, name: &str, arguments: &str) -> Intent {
    match by {
        Authority::Granted => Intent::Command { name: name.to_owned(), arguments: arguments.to_owned() },
        Authority::Denied => Intent::Ignored,
    }
}

/// What a command works on.
pub(crate) struct Context<'a> {
    pub(crate) models: &'a SessionModels,
    pub(crate) runner: &'a Runner,
    pub(crate) settings: &'a Arc<Settings>,
    pub(crate) key: &'a SessionKey,
    pub(crate) agent: &'a ResolvedAgent,
    /// The session's row.
    pub(crate) entry: &'a SessionEntry,
    /// The message that gives it.
    pub(crate) row: &'a Row,
    /// Whether an earlier process may have done it already.
    pub(crate) was_begun: bool,
    /// Nobody waits for the answer any more.
    pub(crate) stop: &'a CancellationToken,
    /// Cancelled once something else of the session waits for the answer: a command that could wait longer answers at once.
    pub(crate) overtaken: Option<&'a CancellationToken>,
}

impl Context<'_> {
    /// The channel it was said on.
    pub(crate) fn channel(&self) -> &str {
        self.row.payload.channel()
    }

    pub(crate) async fn choices(&self) -> Choices {
        let models = &self.settings.models;
        self.models.all.choices(models, &self.agent.id, &self.agent.agent_dir).await
    }

    /// Changes the session's row, durably.
    async fn edit(&self, change: impl FnOnce(&mut SessionEntry) + Send + 'static) -> Result<(), StoreError> {
        let change = Box::new(move |edit: Edit<'_>| {
            change(edit.entry);
            edit.entry.touch(edit.now);
            Ok(())
        });
        self.runner.deps.store.update(self.key, change).await.map(drop)
    }

    /// Whether the session's runs are held in a sandbox.
    fn is_sandboxed(&self) -> bool {
        sandbox::settings_of(self.settings, self.agent, self.key).is_some()
    }

    /// Whether the sender is one of the owners. A client that may change the gateway is.
    fn is_owner(&self) -> bool {
        self.row.payload.is_owners()
    }

    /// Whether buttons are shown where the message was said. Answers to commands among words have none.
    fn shows_buttons(&self) -> bool {
        if !self.row.payload.to_gateway().is_for_gateway_alone() {
            return false;
        }
        let Some(origin) = &self.row.payload.origin else { return false };
        self.runner.deps.platforms.shows_buttons(&self.settings.config, &origin.address)
    }

    /// What is said where the channel of the message may not change the configuration.
    fn writes_refused(&self) -> Option<String> {
        let address = &self.row.payload.origin.as_ref()?.address;
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

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The session's row can't be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What there is of models can't be read.
    #[error(transparent)]
    Models(#[from] SelectError),
    /// What a run would be told can't be told; the text is for people.
    #[error("{0}")]
    Prompt(String),
}

/// What a command says when it is done.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Result<String, CommandError>> + Send + 'a>>;

/// Does what a command says and tells what came of it. It may be done twice, where the process ends in between.
pub(crate) async fn run(
    context: &Context<'_>,
    name: &str,
    arguments: &str,
) -> Result<Response, CommandError> {
    table::run(context, name, arguments).await
}

#[cfg(test)]
mod tests;
