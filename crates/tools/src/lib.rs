//! The built-in tools, one file each: what the model is offered, and what happens when it calls.
//!
//! [`TOOLS`] is the table: one row a tool, which stands in the tool's file. [`toolbox()`] makes the tools of one run from it. It is
//! told which names the tool policy allows and how far the file tools may reach, and decides nothing about policy itself.
//! This crate calls no model, and what it tells of sessions it asks the gateway.
//!
//! Reading order: `setup` (the settings of a run), `row` (a row of the table), `toolbox` (which rows a run gets), `args` and `path` (what every file tool shares; the files themselves are
//! [`openclaw_agent::place`]s, so that a confined tool can't be led out), then `read`, `write`, `edit`, `apply_patch`, `exec_tool`, `process`,
//! `message`, `gateway`, `sessions` and `memory` (one file each below them), `image`. `prompt_pictures` finds what messages name. `external` marks text from outside; `web` is what `web_fetch` and
//! `web_search` share; `approvals` is where people are asked;
//! `exec` holds the rules of commands, `command` runs them.

mod absence;
pub mod apply_patch;
pub mod approvals;
mod args;
mod blocking;
mod command;
mod edit;
mod exec;
mod exec_tool;
pub mod external;
mod gateway;
mod image;
mod memory;
mod message;
mod path;
mod picture;
mod process;
mod prompt_pictures;
mod read;
mod row;
pub mod sandbox;
mod sessions;
mod setup;
#[cfg(test)]
mod testing;
mod toolbox;
mod web;
mod web_fetch;
mod web_search;
mod write;

use row::name_only;

pub use absence::{Absence, Conditions, memory_absence};
pub use command::guard::CommandLock;
pub use command::program::{ProgramAnswer, ProgramCall, ProgramFailure};
pub use command::promise::{Notice, Notices, Noting, OnExit, Promise, PromiseKind};
pub use command::sessions::CommandSessions;
pub use exec::approvals as exec_approvals;
pub use exec::handler::Handlers;
pub use exec::settings::{Elevated, ElevatedMode, ExecSettings, SkillBins};
pub use exec_tool::by_person;
pub use path::Confinement;
pub use prompt_pictures::{PromptPictures, named_pictures};
pub use row::ToolRow;
pub use setup::{CurrentChannel, ImageSetup, MessageSetup, Setup, Writes};
pub use toolbox::{CATALOGUE, absences, built_in, toolbox};
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
    exec_tool::ROW,
    process::ROW,
    name_only("whatsapp_login", &[], u8::MAX, "").owner_only().not_for_subagents(),
    name_only("browser", &["group:ui", OPENCLAW], 12, "Drive a web browser"),
    name_only("canvas", &["group:ui", OPENCLAW], 13, "Show, evaluate and capture canvases on nodes"),
    name_only("nodes", &["group:nodes", OPENCLAW], 14, NODES),
    name_only("cron", &["group:automation", OPENCLAW], 15, CRON).not_for_subagents(),
    message::ROW,
    name_only("tts", &[], u8::MAX, "Turn text into speech"),
    gateway::ROW,
    sessions::agents::ROW,
    sessions::list::ROW,
    sessions::history::ROW,
    sessions::send::ROW,
    sessions::spawn::ROW,
    sessions::status::ROW,
    web_search::ROW,
    web_fetch::ROW,
    image::ROW,
    memory::search::ROW,
    memory::get::ROW,
];

const OPENCLAW: &str = "group:openclaw";

const NODES: &str = "List, describe and use paired nodes: notifications, camera, screen";
const CRON: &str = "Schedule jobs and reminders (write reminder text so that it reads as a reminder when it fires, with the \
                    context it needs)";
