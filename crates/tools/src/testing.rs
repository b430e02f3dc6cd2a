//! What a call is told in tests.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::ToolContext;
use openclaw_agent::host::{Host, SessionsHost};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// For tools that ask nothing of the gateway.
struct NoHost;

impl Host for NoHost {
    fn sessions(&self) -> &dyn SessionsHost {
        unreachable!()
    }
}

/// A call in this workspace that nobody listens to.
pub(crate) fn context(workspace: PathBuf) -> ToolContext {
    ToolContext {
        call_id: "c".to_owned(),
        workspace,
        cancel: CancellationToken::new(),
        updates: mpsc::channel(1).0,
        host: Arc::new(NoHost),
    }
}
