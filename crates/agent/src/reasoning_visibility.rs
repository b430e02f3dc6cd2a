//! Visibility of reasoning for the user (`/reasoning`).

/// Visibility of reasoning for the user (`/reasoning`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningVisibility {
    /// Hidden.
    #[default]
    Off,
    /// Shown as a message of its own before the answer.
    On,
    /// While it arrives, on channels that can show drafts.
    Stream,
}

impl ReasoningVisibility {
    /// The canonical name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Stream => "stream",
        }
    }
}
