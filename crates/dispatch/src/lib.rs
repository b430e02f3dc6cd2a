//! From an accepted message to a delivered reply.
//!
//! [`Dispatch`] is the only door: the gateway hands it messages ([`api::ChatMessage`], [`api::AgentMessage`]) and reads
//! [`api::Broadcast`]s. Behind it, in the order in which a message passes: `intake` takes it, as far as the `backlog` has room, the `inbox` makes it durable, its session's
//! `lane` decides when it runs, `commands` tells what of it is meant for the gateway, the `runner` drives the run and stores its result, `events` tells the clients, and the
//! `registry` those who wait for the end. A heartbeat is a message like others; `beat` reads its answer. What goes to chat platforms lies in the [`outbox`] until they have it; [`messages`] is what is sent there on purpose. Both boxes
//! are kept in the `journal`; `docs/durability.md` says what survives what.
//!
//! This crate does not know how a model or a chat platform is called.

mod ack_reaction;
pub mod api;
pub mod arrivals;
mod backlog;
mod beat;
mod clock;
mod commands;
mod events;
mod global_lanes;
mod handle;
mod hooks;
mod host;
mod inbox;
mod incoming;
mod intake;
mod job;
mod journal;
mod lane;
mod lineage;
pub mod messages;
mod notices;
mod origin;
pub mod outbox;
mod queue;
mod registry;
pub mod reply;
mod request;
mod runner;
mod session_model;
mod session_tools;
mod setup;
mod shared;
pub mod status_card;
mod steady_id;
mod subagents;
pub mod surroundings;
mod system_events;
#[cfg(test)]
mod testing;
pub mod tool_access;
pub mod usage_footer;

pub use api::*;
pub use arrivals::SilentGroup;
pub use beat::{Beat, BeatAnswer, BeatChat, BeatMessage, BeatPurpose, UnfinishedBeat};
pub use commands::reference as command_reference;
pub use events::Events;
pub use handle::{DeliverError, Dispatch, Mirrored, Placed, Sent, StartError, Stopped};
pub use hooks::Ended;
pub use inbox::Digest;
pub use intake::Receipt;
pub use journal::sqlite::{DatabaseState, Salvaged, check_database, renew_database};
pub use journal::{AccountCounts, EventCount, JournalError, LateConversation};
pub use messages::{ClientFiles, MessageError, MessageRequest};
pub use notices::{CommandNotices, Wake};
pub use runner::Announcement;
pub use session_tools::invoke::{CallerChannel, InvokeError, Invoked, ToolInvocation};
pub use setup::{Deps, Settings};
pub use surroundings::{Control, Surroundings};
pub use system_events::SystemEvents;
