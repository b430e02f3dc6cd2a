//! Tools as the loop sees them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use openclaw_models::ToolSpec;
use openclaw_protocol::message::Block;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The tools offered to one run, policy already applied.
pub trait Toolbox: Send + Sync {
    /// What the model is offered, in order.
    fn specs(&self) -> &[ToolSpec];

    /// Runs one call with arguments that fit the tool's schema. `None`-like unknown names are [`ToolError::Unknown`].
    /// A cancelled call returns [`ToolError::Aborted`] soon, with nothing left running unless it was put in the background.
    fn call<'a>(
        &'a self,
        name: &'a str,
        args: Value,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

    /// Short label of a call for people: a path, a command.
    fn meta(&self, name: &str, args: &Value) -> Option<String>;
}

/// What a call is told besides its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// The model's id of the call.
    pub call_id: String,
    /// Where relative paths start.
    pub workspace: PathBuf,
    /// Ends the call.
    pub cancel: CancellationToken,
    /// Takes partial results while the tool works; sending never blocks, a full queue drops.
    pub updates: tokio::sync::mpsc::Sender<Value>,
}

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// Said to the model before the first text. Kept apart so that the text begins as it came: what a cut left of a secret is
    /// looked for there.
    pub notice: Option<String>,
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Structured outcome for clients.
    pub details: Option<Value>,
}

impl ToolOutput {
    /// One text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { notice: None, content: vec![Block::text(text)], details: None }
    }

    /// Pretty JSON for the model, the same value as details (spec `tools.md` §1).
    pub fn json(value: Value) -> Self {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        Self { notice: None, content: vec![Block::text(text)], details: Some(value) }
    }
}

/// Why a call gave nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ToolError {
    /// No such tool; the model is told and goes on.
    #[error("Tool {0} not found")]
    Unknown(String),
    /// It failed; the model is told in these words and goes on.
    #[error("{0}")]
    Failed(String),
    /// The same, with something to say before it. `error` begins as it came, as in [`ToolOutput::notice`].
    #[error("{notice}\n\n{error}")]
    FailedWithNotice {
        /// Said first.
        notice: String,
        /// What the tool printed, and why it failed.
        error: String,
    },
    /// The run is being stopped.
    #[error("Aborted")]
    Aborted,
}
