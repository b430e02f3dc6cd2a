//! Meaning of a message to the gateway (spec `messages.md` §3-§6), as it is decided when the message is accepted and stored with it.
//! `commands` reads it from the text.

mod exec_wish;
mod hints;

use serde::{Deserialize, Serialize};

pub use exec_wish::ExecWish;
pub use hints::{Hints, ModelHint, Reasoning};

/// Meaning of a message to the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Intent {
    /// Words for the agent.
    #[default]
    Prompt,
    /// Words for the agent, with hints for this run alone. The text is the rest without directives.
    PromptFor {
        /// The hints.
        #[serde(flatten)]
        hints: Hints,
        /// The words that are left.
        text: String,
    },
    /// A command and nothing else: it is answered without a run.
    Command {
        /// Name of the command's row.
        name: String,
        /// Text behind the name.
        arguments: String,
    },
    /// Several directives and nothing else: the same.
    Settings {
        /// The directives, in order.
        wishes: Vec<StoredDirective>,
    },
    /// Words for the agent, with directives taken out whose sender may not give any.
    Stripped {
        /// The words that are left.
        text: String,
    },
    /// Only directives of somebody who may have none: no run, no answer.
    Ignored,
    /// Words for the agent that replace those that were written.
    Reworded {
        /// The words in their place.
        text: String,
    },
    /// Call of a tool without the agent; the tool's result is the answer.
    Tool(ToolWish),
    /// Words of the gateway's own: they are posted as they are.
    Announcement,
}

impl Intent {
    /// True if it is only words for the agent, unchanged.
    pub fn is_prompt(&self) -> bool {
        matches!(self, Self::Prompt)
    }

    /// True if nothing in it is for the agent.
    pub fn is_for_gateway_alone(&self) -> bool {
        match self {
            Self::Command { .. }
            | Self::Settings { .. }
            | Self::Ignored
            | Self::Tool(_)
            | Self::Announcement => true,
            Self::Prompt | Self::PromptFor { .. } | Self::Stripped { .. } | Self::Reworded { .. } => false,
        }
    }

    /// True if it asks for something that a run under way can't give it.
    pub fn is_for_one_run(&self) -> bool {
        matches!(self, Self::PromptFor { hints, .. } if hints.need_own_run())
    }

    /// Returns the hints for this run alone.
    pub fn hints(&self) -> Option<&Hints> {
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
    pub fn tool(&self) -> Option<&ToolWish> {
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

    /// Returns the words left for the agent, if something was taken out.
    pub fn words(&self) -> Option<&str> {
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

/// A directive, or a command beside one, as it is stored with its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDirective {
    /// Name of its row.
    pub name: String,
    /// Arguments behind the name.
    #[serde(default)]
    pub arguments: String,
}

/// A tool that is to be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolWish {
    /// Name of the tool.
    pub tool: String,
    /// Text behind the command.
    pub input: String,
    /// The command.
    pub command: String,
    /// The skill that names the tool.
    pub skill: String,
}
