//! A tool that a client calls without a model: `POST /tools/invoke` (spec `gateway-protocol.md` §10.3). The policy of the session holds as
//! for its runs.

use openclaw_protocol::message::Block;
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use tokio_util::sync::CancellationToken;

use crate::handle::Dispatch;

/// What a client calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolInvocation {
    /// The tool.
    pub tool: String,
    /// What it does, for tools that can do several things.
    pub action: Option<String>,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// The session in whose name it is called; absent is the main session.
    pub session_key: Option<String>,
}

/// What a tool gave back.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invoked {
    /// Texts and images.
    pub content: Vec<Block>,
    /// The same for programs.
    pub details: Option<Value>,
}

/// Why a tool gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// There is none, or the session may not have it.
    #[error("Tool not available: {0}")]
    Unavailable(String),
    /// The session's key is none.
    #[error("{0}")]
    Session(String),
    /// It failed, in its own words.
    #[error("{0}")]
    Failed(String),
}

impl Dispatch {
    /// Calls a tool in the name of a session.
    ///
    /// # Errors
    /// See [`InvokeError`].
    pub async fn invoke_tool(
        &self,
        invocation: ToolInvocation,
        cancel: &CancellationToken,
    ) -> Result<Invoked, InvokeError> {
        let rules = self.runner().key_rules();
        let named = invocation.session_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        let key = rules.canonical(named.unwrap_or("main"));
        let key = key.map_err(|error| InvokeError::Session(error.to_string()))?;
        Box::pin(self.runner().invoke(key, invocation, cancel)).await
    }
}
