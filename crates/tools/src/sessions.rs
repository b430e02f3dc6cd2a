//! The tools by which agents look at other sessions and talk to them (spec `sessions.md` §8), one file each. The gateway does it and
//! decides who may: these files say what a model is offered and read what it asks for.

pub(crate) mod agents;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod send;
pub(crate) mod spawn;
pub(crate) mod status;

use openclaw_agent::host::{HostError, SessionsHost};
use openclaw_agent::{ToolContext, ToolError};

const OPENCLAW: &str = "group:openclaw";
const SESSIONS: &[&str] = &["group:sessions", OPENCLAW];

/// The gateway, as far as it has sessions.
fn host(context: &ToolContext) -> Result<&dyn SessionsHost, ToolError> {
    context.host.sessions().ok_or_else(|| ToolError::Failed("this gateway is stopping".to_owned()))
}

fn failed(error: HostError) -> ToolError {
    match error {
        HostError::Aborted => ToolError::Aborted,
        error => ToolError::Failed(error.to_string()),
    }
}

fn required(name: &str) -> ToolError {
    ToolError::Failed(format!("{name} required"))
}
