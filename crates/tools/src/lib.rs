//! The built-in tools, one file each: what the model is offered, and what happens when it calls.
//!
//! [`CoreTools`] is the [`Toolbox`] of one agent: `read`, `edit`, `write` and `exec` so far. It is told which names the tool
//! policy allows and how far the file tools may reach, and decides nothing about policy itself. It calls no model and
//! knows no session.
//!
//! Reading order: `toolset` (which tools there are), `args` and `path` (what every file tool shares; the files
//! themselves are [`openclaw_agent::place`]s, so that a confined tool can't be led out), then `read`, `write`, `edit`, `exec`.

mod args;
mod edit;
mod exec;
mod path;
mod read;
mod toolset;
mod write;

pub use exec::guard::CommandLock;
pub use exec::settings::ExecSettings;
pub use openclaw_agent::{ToolContext, ToolError, ToolOutput, Toolbox};
pub use toolset::{CORE_TOOLS, Confinement, CoreTools, Setup};
