//! Runs, each from an accepted message to a stored result. The order of the steps is the promise of
//! `docs/durability.md`. The crate starts no run by itself and knows no lane: what a run asks of the
//! gateway around it goes through [`RunHost`]. Begin with [`Runner::work`].
//!
//! Each subject is a struct that names what it uses; [`parts`] puts them together, and is the only place that sees them all. [`Runner`] drives one message, [`turn`] its turn.
//!
//! - [`rows`] are the rows of sessions, [`send_rules`] and [`session_rights`] what they permit,
//!   [`stored_messages`] the messages of the inbox. [`hooks`] tells programs of runs,
//!   [`conversation_hooks`] of conversations; [`replies`] makes the answers to chats, [`notices`] what
//!   the gateway says there by itself.
//! - [`decide`] works before that, when the message is accepted. [`attempt`] counts the tries of a
//!   message, [`given_up`] ends one that was tried too often; [`gathered`] puts messages together
//!   that share a run.
//! - [`command`] answers messages for the gateway, [`skill_tool`] those for a skill's tool;
//!   [`shortcut`] answers one among words. [`work`] does all of this for one message,
//!   [`ending`] stores how it ended.
//! - [`session`] finds the conversation, [`protections`] tells if it may go on here, [`contact`]
//!   notes the place where it is held, [`wording`] makes the model's view of the message,
//!   [`prepare`] models and prompt, [`memory_flush`] is the turn before the turn, [`tools`] the
//!   tools, [`context_settings`] limits the part of the conversation that is sent.
//! - [`branch`] is the transcript as the agent sees it, [`kept`] keeps it open for the next run.
//!   [`waiting`] shows the typing indicator until the run does, [`steering`] hands the run messages
//!   that come meanwhile, [`inject`] writes into its transcript; [`lent`] is its place in its lane
//!   while it waits for another session.
//! - [`invoke`] calls a tool for a client; [`compaction`] makes room between runs, [`compaction_note`]
//!   tells clients of it, [`start_over`] begins conversations anew that can't go on; [`blocked`]
//!   waits for an [`obstacle`], such as another process that has the transcript, or a full disk. [`unanswered`] keeps messages
//!   that were stopped, or failed, before their run began. [`end_claim`] decides between an answer and a stop.
//! - [`secrets`] has the secrets that tools may not say, [`device_secrets`] those of devices;
//!   [`estimate`] builds a prompt for `/context` alone; [`result`] makes the record that is kept.
//!   [`control`] is shared by a run and its lane.

pub mod acceptance;
pub mod acknowledge;
mod agent_call;
mod attempt;
mod blocked;
mod blocked_tools;
mod branch;
pub mod calling_run;
pub mod command;
mod command_host;
pub mod compaction;
mod compaction_note;
mod contact;
mod context_settings;
mod control;
pub mod conversation_hooks;
pub mod decide;
pub mod deliver;
mod device_secrets;
mod direct_calls;
mod end_claim;
pub mod ending;
mod error_policy;
mod estimate;
mod flush_due;
mod footer;
mod fork;
mod gathered;
mod given_up;
mod history_limit;
pub mod hooks;
pub mod inject;
pub mod invoke;
mod kept;
pub mod lent;
mod live;
mod memory_flush;
pub mod message_host;
mod message_route;
mod message_tool;
mod new_session;
mod not_begun;
pub mod notices;
mod obstacle;
pub mod parts;
mod prefixes;
mod prepare;
mod protections;
mod replies;
pub mod reply_media;
mod reports;
mod result;
pub mod rows;
pub mod run_host;
mod said;
mod sandbox;
pub mod secrets;
pub mod send_rules;
pub mod session;
pub mod session_messages;
mod session_rights;
pub mod shortcut;
mod skill_tool;
mod start_over;
mod steering;
pub mod stored_messages;
mod taken;
mod talk_step;
mod told_errors;
mod tools;
mod turn;
pub mod unanswered;
pub mod waiting;
mod wording;
mod work;

pub use attempt::{Suspects, is_last_try};
pub use calling_run::CallingRun;
pub use control::RunControl;
pub use deliver::Announcement;
pub use ending::RunEnding;
pub use not_begun::NotBegun;
pub use run_host::{NextStep, RunHost};
pub use said::{Aside, Destination, FinalReplies};
pub use work::Runner;
