//! What a command answers: words, and what platforms can show besides.

use std::pin::Pin;

use openclaw_channels::Button;

use super::CommandError;

/// An answer of the gateway's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Response {
    pub(crate) text: String,
    /// Rows of buttons, for platforms that have them.
    pub(crate) buttons: Vec<Vec<Button>>,
    /// What is done once the answer is durable.
    pub(crate) then: Option<Then>,
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The gateway starts again.
    Restart,
}

/// What a command shows when it is done.
pub(crate) type Showing<'a> = Pin<Box<dyn Future<Output = Result<Response, CommandError>> + Send + 'a>>;

impl From<String> for Response {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Response {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// A button that comes back as this.
pub(super) fn button(text: impl Into<String>, data: impl Into<String>) -> Button {
    Button { text: text.into(), data: data.into() }
}
