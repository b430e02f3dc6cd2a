//! Dispatch: from an accepted message to a delivered reply.
//!
//! [`Dispatch`] is the only door: the gateway hands it messages ([`api::ChatMessage`],
//! [`api::AgentMessage`]) and reads [`api::Broadcast`]s. Behind it, in the order in which a message
//! passes: `intake` takes it, as far as the `backlog` has room, the `inbox` makes it durable, its
//! session's `lane` decides when it runs, `openclaw-commands` tells which parts of it are for the gateway,
//! and `openclaw-runs` drives the run and stores its result. `openclaw-runtime` holds what all of them
//! share: the clients hear of a run by its `events`, callers that wait for the end by its `registry`. A heartbeat is a message like others; `beat`
//! reads its answer. Answers are shaped and sent by `openclaw-delivery`; `openclaw_runtime::messages` sends there on
//! purpose. Messages and deliveries are kept by `openclaw-journal`; `docs/durability.md` says which
//! failures they survive.
//!
//! The crate does not know how a model or a chat platform is called.

pub mod arrivals;
mod assemble;
mod child_tasks;
mod handle;
mod hooks;
mod host;
mod intake;
pub mod known_chats;
mod lane;
mod parts;
mod run_host;
mod session_tools;
mod start;
mod subagents;
#[cfg(test)]
mod testing;
mod waits;

pub use handle::{Dispatch, Mirrored, Placed, Sent, Stopped};
pub use intake::Receipt;
pub use known_chats::SilentGroup;
pub use openclaw_journal::api::*;
pub use openclaw_journal::beat::{Beat, BeatAnswer, BeatChat, BeatMessage, BeatPurpose};
pub use openclaw_journal::inbox::{Digest, UnfinishedBeat};
pub use openclaw_journal::journal::sqlite::{
    DatabaseState, Salvaged, check_database, is_lost_by, renew_database,
};
pub use openclaw_journal::journal::{AccountCounts, EventCount, JournalError, LateConversation};
pub use openclaw_journal::run_result::RunResult;
pub use openclaw_journal::{api, arrival, caller, delivery};
pub use openclaw_runs::Announcement;
pub use openclaw_runs::calling_run::CallerChannel;
pub use openclaw_runs::conversation_hooks::EndedConversation;
pub use openclaw_runs::invoke::{InvokeError, Invoked, ToolInvocation};
pub use openclaw_runtime::events::Events;
pub use openclaw_runtime::messages::{self, ClientFiles, DeliverError, MessageError, MessageRequest};
pub use openclaw_runtime::setup::{Deps, Settings};
pub use openclaw_runtime::surroundings::{Control, Surroundings};
pub use openclaw_runtime::system_events::{CommandNotices, SystemEvents, Wake};
pub use start::StartError;
