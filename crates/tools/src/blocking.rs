//! File work, which may block.

use openclaw_agent::ToolError;

/// Runs file work on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::Failed(format!("tool stopped: {error}"))),
    }
}
