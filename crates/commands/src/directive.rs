//! A directive: how it is found in a text, and what it does.

use std::pin::Pin;

use openclaw_journal::intent::Hints;
use openclaw_models::ModelRef;
use openclaw_sessions::SessionEntry;

use super::{CommandContext, CommandError};

/// Way of reading directives from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectiveReading {
    /// The message consists only of directives: any text behind a name is meant for it, right or
    /// wrong.
    Alone,
    /// The message has words for the agent: a name without anything to do is talk about it, and
    /// stays.
    Among,
}

/// Cuts a directive out of a text; returns the arguments of the first one, and the rest of the
/// text.
type Take = fn(&str, DirectiveReading, &[&str]) -> Option<(String, String)>;

/// Definition of a directive: how it is found, and its effects.
#[derive(Clone, Copy)]
pub(crate) struct Directive {
    /// Cuts the directive out of a text wherever it stands; returns the arguments of the first one,
    /// and the rest of the text. Takes the aliases of models.
    pub(crate) take: Take,
    /// Adds what it asks for its message's run to the hints.
    pub(crate) hint: fn(&str, &mut Hints),
    /// Carries it out if the message has no words for the agent.
    pub(crate) settle: for<'a> fn(Wished<'a>) -> Settling<'a>,
    /// True if it counts in a group only if the agent is addressed.
    pub(crate) needs_mention: fn(&str) -> bool,
}

/// A directive that is the message, or part of one that is nothing else.
#[derive(Clone, Copy)]
pub(crate) struct Wished<'a> {
    pub(crate) context: &'a CommandContext<'a>,
    pub(crate) argument: &'a str,
    /// The model that the same message chooses.
    pub(crate) chosen: Option<&'a ModelRef>,
}

impl Wished<'_> {
    /// Returns the model that the session goes on with.
    pub(crate) async fn model(&self) -> ModelRef {
        match self.chosen {
            Some(model) => model.clone(),
            None => self.context.current(&self.context.choices().await).await.0,
        }
    }
}

/// Change of the session's row.
pub(crate) type RowChange = Box<dyn FnOnce(&mut SessionEntry) + Send>;

/// Result of a directive.
pub(crate) struct DirectiveResult {
    pub(crate) says: String,
    /// True if it can't be done, and so nothing else of the message is done.
    pub(crate) is_refusal: bool,
    pub(crate) change: Option<RowChange>,
    /// Subject and text of the notice that the agent gets with its next message.
    pub(crate) tells: Option<(String, String)>,
}

impl DirectiveResult {
    /// Result that changes nothing.
    pub(crate) fn told(says: String) -> Self {
        Self { says, is_refusal: false, change: None, tells: None }
    }

    /// Result of a directive that can't be done.
    pub(crate) fn refused(says: String) -> Self {
        Self { is_refusal: true, ..Self::told(says) }
    }

    /// Result that changes the session's row.
    pub(crate) fn changed(says: String, change: impl FnOnce(&mut SessionEntry) + Send + 'static) -> Self {
        Self { change: Some(Box::new(change)), ..Self::told(says) }
    }

    /// Adds the notice that the agent gets of it.
    pub(crate) fn telling(self, tells: Option<(String, String)>) -> Self {
        Self { tells, ..self }
    }
}

pub(crate) type Settling<'a> =
    Pin<Box<dyn Future<Output = Result<DirectiveResult, CommandError>> + Send + 'a>>;
