//! What people write to the gateway rather than to the agent (spec `messages.md` §3-§6): commands that are the whole message, and
//! a choice of a model among words for the agent. [`read`] is pure: text in, [`Intent`] out, decided once when a message is
//! accepted, the same for every surface. [`run`] does what a command says.
//!
//! [`COMMANDS`] has one row a command, and each command a file, which holds its row. `/new` and `/reset` are reset triggers
//! (`session.resetTriggers`). [`mod@menu`] makes platform menus and `docs/commands.md` of the rows, [`buttons`] reads what is pressed below
//! answers, [`cards`] are the answers of `/model`; [`mod@line`] cuts directives out of a text.

mod activation;
mod allowlist;
mod allowlist_words;
pub(crate) mod buttons;
pub(crate) mod cards;
pub(crate) mod compact;
mod config;
mod config_words;
mod context;
mod debug;
mod dock;
mod help;
mod hints;
mod line;
mod menu;
pub(crate) mod model;
mod models;
mod not_yet;
mod reset;
pub(crate) mod response;
mod restart;
mod send;
pub(crate) mod skill;
mod status;
pub(crate) mod stop;
mod subagents;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod usage;
mod whoami;

use std::pin::Pin;
use std::sync::Arc;

use openclaw_agent::skills::{self, SkillCommand};
use openclaw_channels::access::AccessSettings;
use openclaw_config::ResolvedAgent;
use openclaw_models::reference::ModelNames;
use openclaw_models::{Choices, SelectError};
use openclaw_sessions::reset::authority::Authority;
use openclaw_sessions::reset::trigger::strip_structural_prefixes;
use openclaw_sessions::store::Edit;
use openclaw_sessions::{SessionEntry, SessionKey, StoreError};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::inbox::Row;
use crate::runner::Runner;
use crate::session_model::SessionModels;
use crate::setup::Settings;
use model::ModelWish;

pub(crate) use hints::Hints;
pub(crate) use menu::menu;
pub use menu::reference;
#[cfg(test)]
pub(crate) use model::ModelChoice;
pub(crate) use response::{Response, Then};
pub(crate) use skill::ToolWish;
use table::{Category, Command, Does, Takes};

/// The chat commands of OpenClaw 2026.2.9 (spec `messages.md` §5), by category and in the order in which they are listed.
const COMMANDS: &[Command] = &[
    reset::NEW,
    reset::RESET,
    compact::COMMAND,
    stop::COMMAND,
    Command::new("think", Category::Options, Does::Missing, "Set how much the model thinks.")
        .called(&["thinking", "t"])
        .taking(Takes::Level, "<level>"),
    Command::new("verbose", Category::Options, Does::Missing, "Show tools at work, or not.")
        .called(&["v"])
        .taking(Takes::Level, "on|full|off"),
    Command::new("reasoning", Category::Options, Does::Missing, "Show reasoning, or not.")
        .called(&["reason"])
        .taking(Takes::Level, "on|off|stream"),
    Command::new("elevated", Category::Options, Does::Missing, "Set what commands may do on this machine.")
        .called(&["elev"])
        .taking(Takes::Level, "on|off|ask|full"),
    Command::new("exec", Category::Options, Does::Missing, "Set where commands run, and what they ask.")
        .taking(Takes::Options, "host=… security=… ask=… node=…"),
    model::COMMAND,
    models::COMMAND,
    Command::new("queue", Category::Options, Does::Missing, "Set how messages wait during a run.")
        .taking(Takes::Level, "<mode> [debounce:<time>] [cap:<n>] [drop:<policy>]"),
    usage::COMMAND,
    help::HELP,
    help::LIST,
    status::COMMAND,
    context::COMMAND,
    whoami::COMMAND,
    activation::COMMAND,
    send::COMMAND,
    allowlist::COMMAND,
    not_yet::APPROVE,
    subagents::COMMAND,
    config::COMMAND,
    debug::COMMAND,
    restart::COMMAND,
    not_yet::TTS,
    skill::COMMAND,
    not_yet::BASH_COMMAND,
    dock::TELEGRAM,
    dock::DISCORD,
    dock::SLACK,
];

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
    /// Words for the agent around directives of somebody who may have none.
    Stripped { text: String },
    /// Only directives of somebody who may have none: no run, no answer.
    Ignored,
    /// Words for the agent in the place of those that were written.
    Reworded { text: String },
    /// A tool is called without the agent, and answers.
    Tool(ToolWish),
}

impl Intent {
    /// Whether it is words as they came.
    pub(crate) fn is_prompt(&self) -> bool {
        matches!(self, Self::Prompt)
    }

    /// Whether there is nothing in it for the agent.
    pub(crate) fn is_for_gateway_alone(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Ignored | Self::Tool(_))
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
            | Self::Stripped { .. }
            | Self::Ignored
            | Self::Reworded { .. }
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
            | Self::Stripped { .. }
            | Self::Ignored
            | Self::Reworded { .. } => None,
        }
    }

    /// What is left for the agent, where something was taken out.
    pub(crate) fn words(&self) -> Option<&str> {
        match self {
            Self::PromptFor { text, .. } | Self::Stripped { text } | Self::Reworded { text } => Some(text),
            Self::Prompt | Self::Command { .. } | Self::Ignored | Self::Tool(_) => None,
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
    let text = strip_structural_prefixes(text);
    let name = text.strip_prefix('/').unwrap_or_default();
    let end = name.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(name.len());
    name.get(..end).is_some_and(|name| table::is_command(&name.to_lowercase()))
}

/// Tells words from commands.
pub(crate) fn read(spoken: Spoken<'_>, names: Names<'_>) -> Intent {
    if let Some(intent) = skill::read(spoken, names.skills) {
        return intent;
    }
    if !spoken.attached
        && let Some((name, arguments)) = table::read(&strip_structural_prefixes(spoken.text))
    {
        return command(spoken.by, name, arguments);
    }
    let aliases = names.models.aliases().map(|(alias, _)| alias);
    let is_shortcut = |alias: &&str| {
        let is_model = matches!(ModelWish::of(alias), ModelWish::Choose(_));
        let is_skill = skills::called(names.skills, alias.trim()).is_some();
        is_model && !is_skill && !table::is_reserved(alias, names.triggers)
    };
    let aliases: Vec<&str> = aliases.filter(is_shortcut).collect();
    let Some((wish, text)) = model::take(spoken.text, &aliases) else { return Intent::Prompt };
    let alone = !spoken.attached && strip_structural_prefixes(&text).is_empty();
    match (spoken.by, wish) {
        (by, wish) if alone => command(by, model::NAME, &wish.arguments()),
        (Authority::Denied, _) => Intent::Stripped { text },
        (Authority::Granted, ModelWish::Choose(choice)) => {
            Intent::PromptFor { hints: Hints { model: Some(choice), ..Hints::default() }, text }
        }
        // Words about the directive: there is nothing to do for this run, and nothing of them is lost.
        (Authority::Granted, _) => Intent::Prompt,
    }
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
}

impl Context<'_> {
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

    /// Whether the sender is one of the owners. Whoever reaches the gateway's own protocol is.
    fn is_owner(&self) -> bool {
        self.row.payload.origin.as_ref().is_none_or(|origin| origin.is_owner)
    }

    /// Whether buttons are shown where the message was said.
    fn shows_buttons(&self) -> bool {
        let Some(origin) = &self.row.payload.origin else { return false };
        let channel = self.runner.deps.platforms.channel(&origin.address.channel);
        channel.is_some_and(|channel| channel.capabilities().buttons)
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
