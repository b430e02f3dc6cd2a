//! Rules by which commands of the model run: their settings, their environment, who may run what
//! unasked, and the programs of hooks, which run under the same settings.
//!
//! `command` runs them; the tool is `exec_tool`.

pub mod approvals;
pub(crate) mod environment;
pub(crate) mod handler;
pub(crate) mod settings;
