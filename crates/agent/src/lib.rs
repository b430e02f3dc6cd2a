//! One agent run: prompt, context, the loop over model and tools, what it emits.
//!
//! A run is driven through four interfaces and knows nothing else: [`openclaw_models::Model`] streams events,
//! [`Toolbox`] runs tools, [`Transcript`] appends and reads the branch, [`Steering`] brings queued user messages. It does
//! not know who asked or where the reply goes: it emits [`event::RunEvent`]s and returns an [`Outcome`].

pub mod event;
pub mod toolbox;
pub mod transcript;

pub use toolbox::{ToolContext, ToolError, ToolOutput, Toolbox};
pub use transcript::{Steering, Transcript, TranscriptError};
