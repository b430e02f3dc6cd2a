//! Results that the gateway writes in place of a tool that gave none.

use openclaw_protocol::message::{Block, ToolResultMessage};

/// Text of calls that were not made because the user said something; clients match it.
pub(crate) const SKIPPED: &str = "Skipped due to queued user message.";

/// Text of the call that was under way when the run was stopped.
pub(crate) const STOPPED_RUNNING: &str =
    "[openclaw] The run was stopped while this call was under way; it may or may not have taken effect.";

/// Text of calls that were still to be made when the run was stopped.
pub(crate) const STOPPED_WAITING: &str = "[openclaw] The run was stopped before this call was made.";

/// Result of calls that were under way when the process ended.
pub(crate) const INTERRUPTED: &str = "[openclaw] The gateway was interrupted during this call; it may or may not have completed. Check before doing it again.";

/// Returns true if the gateway wrote a result in place of a tool that gave none.
pub(crate) fn is_written_by_gateway(result: &ToolResultMessage) -> bool {
    match result.content.as_slice() {
        [Block::Text(only)] => {
            [SKIPPED, STOPPED_RUNNING, STOPPED_WAITING, INTERRUPTED].contains(&only.text.as_str())
        }
        _ => false,
    }
}
