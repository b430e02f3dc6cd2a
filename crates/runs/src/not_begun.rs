//! Reasons for which a run could not begin.

use std::error::Error;

use openclaw_config::profile::Instance;

use super::obstacle::{Obstacle, without_place};

/// Reason for which a run could not begin.
#[derive(Debug)]
pub struct NotBegun {
    /// Error text for people, also in chats: it names no place of this host's files.
    pub message: String,
    /// Obstacle that is in its way and will pass: the message waits for that.
    pub(super) obstacle: Option<Obstacle>,
    /// True if the request can't be granted to anybody: then nothing was begun, and only the caller
    /// is told.
    pub(super) is_refusal: bool,
}

impl NotBegun {
    /// Makes an error with this text for people.
    pub fn because(message: impl Into<String>) -> Self {
        Self { message: message.into(), obstacle: None, is_refusal: false }
    }

    /// Error for a request that is itself at fault.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self { is_refusal: true, ..Self::because(message) }
    }

    /// The same with its advice as people of an instance have to follow it.
    pub(super) fn for_instance(self, instance: &Instance) -> Self {
        Self { message: instance.in_text(&self.message), ..self }
    }
}

impl<E: Error + 'static> From<E> for NotBegun {
    fn from(error: E) -> Self {
        let obstacle = Obstacle::behind(&error);
        let message = match without_place(&error) {
            Some(told) => {
                if obstacle.is_none() {
                    tracing::warn!(%error, "a conversation can't be worked on");
                }
                format!("Error: {told}")
            }
            None => format!("Error: {error}"),
        };
        Self { message, obstacle, is_refusal: false }
    }
}
