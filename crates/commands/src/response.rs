//! Answer of a command: words, and buttons for platforms that can show them.

use std::pin::Pin;

use openclaw_channels::Button;

use super::CommandError;

/// An answer of the gateway's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandResponse {
    /// Text of the answer.
    pub text: String,
    /// Rows of buttons, for platforms that have them.
    pub buttons: Vec<Vec<Button>>,
    /// Action to take once the answer is durable.
    pub then: Option<Then>,
}

/// Action that follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Start the gateway again.
    Restart,
}

/// Future of a command's answer with buttons.
pub type Showing<'a> = Pin<Box<dyn Future<Output = Result<CommandResponse, CommandError>> + Send + 'a>>;

impl From<String> for CommandResponse {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for CommandResponse {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// Makes a button that comes back with this data.
pub(crate) fn button(text: impl Into<String>, data: impl Into<String>) -> Button {
    Button { text: text.into(), data: data.into() }
}
