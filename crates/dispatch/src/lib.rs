//! Dispatch: from an accepted message to a delivered reply.
//!
//! [`Dispatch`] is the only door: the gateway hands it messages ([`api::ChatMessage`],
//! [`api::AgentMessage`]) and reads [`api::Broadcast`]s. Behind it, in the order in which a message
//! passes: `intake` takes it, as far as the `backlog` has room, the `inbox` makes it durable, its
//! session's `lane` decides when it runs, `commands` tells which parts of it are for the gateway,
//! the `runner` drives the run and stores its result, `events` tells the clients, and the
//! `registry` tells callers that wait for the end. A heartbeat is a message like others; `beat`
//! reads its answer. Deliveries to chat platforms lie in the [`outbox`] until the platforms have
//! them; [`messages`] sends there on purpose. Both boxes are kept in the `journal`;
//! `docs/durability.md` says which failures they survive.
//!
//! The crate does not know how a model or a chat platform is called.

mod acceptance;
mod ack_reaction;
pub mod arrivals;
mod commands;
mod events;
mod global_lanes;
mod handle;
mod hooks;
mod host;
mod incoming;
mod intake;
mod lane;
pub mod messages;
pub mod outbox;
mod registry;
pub mod reply;
mod runner;
mod session_model;
mod session_tools;
mod setup;
mod shared;
pub mod status_card;
mod subagents;
pub mod surroundings;
mod system_events;
#[cfg(test)]
mod testing;
pub mod tool_access;
pub mod usage_footer;

pub use arrivals::SilentGroup;
pub use commands::reference as command_reference;
pub use events::Events;
pub use handle::{DeliverError, Dispatch, Mirrored, Placed, Sent, StartError, Stopped};
pub use hooks::Ended;
pub use intake::Receipt;
pub use messages::{ClientFiles, MessageError, MessageRequest};
pub use openclaw_journal::api::*;
pub use openclaw_journal::beat::{Beat, BeatAnswer, BeatChat, BeatMessage, BeatPurpose};
pub use openclaw_journal::inbox::{Digest, UnfinishedBeat};
pub use openclaw_journal::journal::sqlite::{DatabaseState, Salvaged, check_database, renew_database};
pub use openclaw_journal::journal::{AccountCounts, EventCount, JournalError, LateConversation};
pub use openclaw_journal::{api, arrival, delivery};
pub use runner::Announcement;
pub use session_tools::invoke::{CallerChannel, InvokeError, Invoked, ToolInvocation};
pub use setup::{Deps, Settings};
pub use surroundings::{Control, Surroundings};
pub use system_events::SystemEvents;
pub use system_events::{CommandNotices, Wake};
