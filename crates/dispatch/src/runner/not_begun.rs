//! Why a run could not begin.

use std::error::Error;

use super::obstacle::Obstacle;

/// Why a run could not begin.
#[derive(Debug)]
pub(crate) struct NotBegun {
    /// For people.
    pub(crate) message: String,
    /// What is in its way and will pass: the message waits for that.
    pub(super) obstacle: Option<Obstacle>,
    /// What was asked for can't be had by anybody: then nothing was begun, and only who asked is told.
    pub(super) is_refusal: bool,
}

impl NotBegun {
    pub(crate) fn because(message: impl Into<String>) -> Self {
        Self { message: message.into(), obstacle: None, is_refusal: false }
    }

    /// The request itself is at fault.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self { is_refusal: true, ..Self::because(message) }
    }
}

impl<E: Error + 'static> From<E> for NotBegun {
    fn from(error: E) -> Self {
        Self { message: format!("Error: {error}"), obstacle: Obstacle::behind(&error), is_refusal: false }
    }
}
