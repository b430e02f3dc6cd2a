//! Surface on which the error of a run is read, which decides the commands that its advice names.

/// Reader of the error of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorSurface {
    /// A chat, which takes commands such as `/model`.
    #[default]
    Chat,
    /// A terminal, or another program behind the method `agent`: all its words are for the model.
    CommandLine,
}

impl ErrorSurface {
    /// Returns the step that asks another model.
    pub(crate) fn another_model(self) -> &'static str {
        match self {
            Self::Chat => "/model <provider>/<model> asks another model",
            Self::CommandLine => "`openclaw models set <provider>/<model>` sets another model",
        }
    }

    /// Returns the step that leaves the history behind.
    pub(crate) fn another_conversation(self) -> &'static str {
        match self {
            Self::Chat => "/new begins a conversation without this history",
            Self::CommandLine => {
                "`openclaw agent --session-id <new id>` begins a conversation without this history"
            }
        }
    }
}
