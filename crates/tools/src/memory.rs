//! The tools by which an agent finds what was written down (spec `memory.md` §3), one file each. The gateway searches and reads:
//! these files say what a model is offered and read what it asks for.

pub(crate) mod get;
pub(crate) mod search;

use openclaw_agent::host::{HostError, MemoryHost};
use openclaw_agent::{ToolContext, ToolError};

use crate::absence::{Absence, Conditions};

const MEMORY: &[&str] = &["group:memory", "group:openclaw"];

/// The memory of the run's agent.
fn host(context: &ToolContext) -> Result<&dyn MemoryHost, ToolError> {
    context.host.memory().ok_or_else(|| ToolError::Failed("this gateway is stopping".to_owned()))
}

fn failed(error: HostError) -> ToolError {
    match error {
        HostError::Aborted => ToolError::Aborted,
        error => ToolError::Failed(error.to_string()),
    }
}

fn absence(conditions: &Conditions<'_>) -> Option<Absence> {
    conditions.memory
}
