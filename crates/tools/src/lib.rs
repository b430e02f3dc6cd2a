//! The built-in tools, one file each: what the model is offered, and what happens when it calls.
//!
//! [`TOOLS`] is the table: one row a tool, which stands in the tool's file. [`toolbox`] makes the tools of one run from it. It is
//! told which names the tool policy allows and how far the file tools may reach, and decides nothing about policy itself.
//! This crate calls no model and knows no session.
//!
//! Reading order: `row` (what a row is), `args` and `path` (what every file tool shares; the files themselves are
//! [`openclaw_agent::place`]s, so that a confined tool can't be led out), then `read`, `write`, `edit`, `apply_patch`, `exec`, `process`,
//! `message`. `external` marks text from outside; `web` is what `web_fetch` and `web_search` share; `approvals` is where people are asked.

mod absence;
pub mod apply_patch;
pub mod approvals;
mod args;
mod edit;
mod exec;
pub mod external;
mod message;
mod path;
mod process;
mod read;
mod row;
pub mod sandbox;
#[cfg(test)]
mod testing;
mod web;
mod web_fetch;
mod web_search;
mod write;

use row::name_only;

pub use absence::{Absence, Conditions};
pub use exec::approvals as exec_approvals;
pub use exec::by_person;
pub use exec::guard::CommandLock;
pub use exec::handler::Handlers;
pub use exec::sessions::{CommandSessions, OnExit};
pub use exec::settings::{Elevated, ElevatedMode, ExecSettings, SkillBins};
pub use message::{CurrentChannel, MessageSetup};
pub use row::{CATALOGUE, Confinement, Setup, ToolRow, absences, built_in, toolbox};
pub use web::{WebSettings, WebShared};

/// Every tool by name, in the order in which a model is offered them (spec `tools.md` §1). Policies may also name the tools
/// of OpenClaw that are not built in; the row of such a tool stands here, until its own file has one.
pub const TOOLS: &[ToolRow] = &[
    read::ROW,
    edit::ROW,
    write::ROW,
    apply_patch::ROW,
    name_only("grep", &[], 5, "Search file contents"),
    name_only("find", &[], 6, "Find files by name pattern"),
    name_only("ls", &[], 7, "List a directory"),
    exec::ROW,
    process::ROW,
    name_only("whatsapp_login", &[], u8::MAX, "").owner_only().not_for_subagents(),
    name_only("browser", &["group:ui", OPENCLAW], 12, "Drive a web browser"),
    name_only("canvas", &["group:ui", OPENCLAW], 13, "Show, evaluate and capture canvases on nodes"),
    name_only("nodes", &["group:nodes", OPENCLAW], 14, NODES),
    name_only("cron", &["group:automation", OPENCLAW], 15, CRON).not_for_subagents(),
    message::ROW,
    name_only("tts", &[], u8::MAX, "Turn text into speech"),
    name_only("gateway", &["group:automation", OPENCLAW], 17, GATEWAY).not_for_subagents(),
    name_only("agents_list", &[OPENCLAW], 18, "List the agents that may be given work").not_for_subagents(),
    name_only("sessions_list", SESSIONS, 19, "List sessions, filtered, with their last messages")
        .not_for_subagents(),
    name_only("sessions_history", SESSIONS, 20, "Read another session's history").not_for_subagents(),
    name_only("sessions_send", SESSIONS, 21, "Send a message to another session").not_for_subagents(),
    name_only("sessions_spawn", SESSIONS, u8::MAX, "Start a sub-agent").not_for_subagents(),
    name_only("session_status", SESSIONS, 22, "Status card: usage, time, model").not_for_subagents(),
    web_search::ROW,
    web_fetch::ROW,
    name_only("image", &[OPENCLAW], 23, "Look at an image with the image model"),
    name_only("memory_search", MEMORY, u8::MAX, "Search MEMORY.md and memory/*.md").not_for_subagents(),
    name_only("memory_get", MEMORY, u8::MAX, "Read lines of MEMORY.md or a memory/*.md file")
        .not_for_subagents(),
];

const OPENCLAW: &str = "group:openclaw";
const SESSIONS: &[&str] = &["group:sessions", OPENCLAW];
const MEMORY: &[&str] = &["group:memory", OPENCLAW];

const NODES: &str = "List, describe and use paired nodes: notifications, camera, screen";
const CRON: &str = "Schedule jobs and reminders (write reminder text so that it reads as a reminder when it fires, with the \
                    context it needs)";
const GATEWAY: &str = "Read and change the gateway's configuration, restart or update it";
