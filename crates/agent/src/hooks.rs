//! Programs and built-in actions that are told what happens, and may change some of it (spec `agent-runtime.md` §8).
//!
//! Two kinds of occasions: [`EventKind`]s such as `command:new`, and [`HookPoint`]s such as
//! `before_tool_call`. A hook is a directory with a `HOOK.md` ([`hook_file`]) and a handler
//! ([`handler`]); [`discover`] finds them, [`gate`] tells which of them may be used, and a
//! [`HookSet`] holds those that are. [`merge`] is what the answers of several handlers come to:
//! values in, values out. A [`HookBus`] asks the handlers in order. The way to run a program is not
//! known here: a [`Programs`] does it.
//!
//! The four hooks that come with the gateway are [`Bundled`]; what they decide stands in [`session_memory`], [`soul_evil`],
//! [`boot`] and [`command_log`], and is done by `dispatch`.

pub mod answer;
pub mod boot;
pub mod bundled;
pub mod bus;
pub mod command_log;
pub mod discover;
pub mod event;
pub mod gate;
pub mod handler;
pub mod hook_file;
pub mod install;
pub mod merge;
pub mod node;
mod of_run;
pub mod payload;
pub mod point;
pub mod program;
pub mod session_memory;
pub mod set;
pub mod soul_evil;
mod trust;

pub use bundled::Bundled;
pub use bus::{HookBus, HookTasks};
pub use event::{CommandAction, Event, EventKind, Subscription};
pub use of_run::RunHooks;
pub use point::HookPoint;
pub use program::{Program, ProgramError, Programs};
pub use set::{HookSet, not_loaded, problems_of_settings};
