//! What people write to the gateway rather than to the agent: wishes anywhere in a message (directives) and commands that
//! are the whole message (spec `messages.md` §3-§6). Pure: text in, [`Said`] out; doing it is the runner's.
//!
//! One file a directive or command: [`model`] reads `/model`, [`models`] reads and answers `/models`; [`cards`] are the
//! answers of `/model`. [`mod@line`] cuts them out of the text, [`commands`] lists all names and tells of what is not there.

pub(crate) mod cards;
mod commands;
mod line;
pub(crate) mod model;
pub(crate) mod models;

use openclaw_models::reference::ModelNames;
use openclaw_sessions::reset::authority::Authority;
use openclaw_sessions::reset::trigger::strip_structural_prefixes;

pub(crate) use commands::not_there;
pub(crate) use model::ModelWish;
pub(crate) use models::PageAsked;

/// What a message is to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// Words for the agent.
    Words,
    /// Words for the agent, with wishes for this one run. The text is what is left for the agent.
    Hints { wishes: Wishes, text: String },
    /// Nothing but wishes: they are kept, and answered without a run.
    Settings(Wishes),
    /// `/models`
    Models(PageAsked),
    /// A command of OpenClaw 2026.2.9 that this gateway does not have.
    NotThere(&'static str),
    /// Words for the agent around wishes of somebody who may have none.
    Stripped(String),
    /// Only wishes of somebody who may have none: no run, no answer.
    Ignored,
}

/// The wishes in a message, one of each kind at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// `/model`
    pub(crate) model: ModelWish,
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
}

/// Tells words from wishes.
pub(crate) fn read(spoken: Spoken<'_>, names: Names<'_>) -> Said {
    if !spoken.attached
        && let Some(command) = command(&strip_structural_prefixes(spoken.text))
    {
        return match spoken.by {
            Authority::Granted => command,
            Authority::Denied => Said::Ignored,
        };
    }
    let aliases = names.models.aliases().map(|(alias, _)| alias);
    let aliases: Vec<&str> = aliases.filter(|alias| !commands::is_reserved(alias, names.triggers)).collect();
    let Some((wish, text)) = model::take(spoken.text, &aliases) else { return Said::Words };
    let alone = !spoken.attached && strip_structural_prefixes(&text).is_empty();
    match (spoken.by, alone) {
        (Authority::Denied, true) => Said::Ignored,
        (Authority::Denied, false) => Said::Stripped(text),
        (Authority::Granted, true) => Said::Settings(Wishes { model: wish }),
        (Authority::Granted, false) if wish.chooses() => Said::Hints { wishes: Wishes { model: wish }, text },
        // Words about the directive: there is nothing to do for this run, and nothing of them is lost.
        (Authority::Granted, false) => Said::Words,
    }
}

/// The command that a text is, if it is one and nothing else.
fn command(text: &str) -> Option<Said> {
    let models = models::read(text).map(Said::Models);
    models.or_else(|| commands::read_missing(text).map(Said::NotThere))
}

#[cfg(test)]
mod tests;
