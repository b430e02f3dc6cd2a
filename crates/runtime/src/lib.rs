//! State that the running gateway shares between runs, commands and clients.
//!
//! [`setup`] has the settings snapshot and what a dispatcher is made from, [`registry`] the runs
//! under way, [`global_lanes`] the lanes that all sessions share, [`stopping`] the phases of a stop
//! and [`work_tasks`] the tasks that it waits for. [`events`] tells clients of runs,
//! [`system_events`] keeps lines for the next prompt of a session, [`session_model`] resolves the
//! model a session asks for, [`memory`] has the memory of the agents, [`tool_access`] decides which tools a run has, [`child_runs`] lists the
//! sub-agents. Begin with [`setup::Settings`].
//!
//! The crate runs nothing: commands are in `openclaw-commands`, runs in `openclaw-runs`, lanes in
//! `openclaw-dispatch`.

pub mod child_runs;
pub mod durations;
pub mod events;
pub mod global_lanes;
pub mod memory;
pub mod messages;
pub mod registry;
pub mod session_exec;
pub mod session_model;
mod settings;
pub mod setup;
pub mod stopping;
pub mod surroundings;
pub mod system_events;
pub mod tool_access;
pub mod verbosity;
pub mod work_tasks;
