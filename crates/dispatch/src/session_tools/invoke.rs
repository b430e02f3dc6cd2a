//! Door for clients that call a tool without a model: `POST /tools/invoke` (spec
//! `gateway-protocol.md` §10.3).

use openclaw_runs::invoke::{InvokeError, Invoked, ToolInvocation};
use tokio_util::sync::CancellationToken;

use crate::handle::Dispatch;

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
        let rules = self.session_tool_parts().rows.key_rules();
        let named = invocation.session_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        let key = rules.canonical(named.unwrap_or("main"));
        let key = key.map_err(|error| InvokeError::Session(error.to_string()))?;
        Box::pin(self.session_tool_parts().invocations.invoke(key, invocation, cancel)).await
    }
}
