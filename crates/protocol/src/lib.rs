//! The OpenClaw wire contract, and nothing else: no I/O, no clock, no state.
//!
//! [`frame`] holds the three frame kinds, [`method`] the table of methods with role and scope, [`params`] one type per
//! method's parameters and result, [`event`] the broadcast events, [`message`] the transcript message model that
//! `chat.history` puts on the wire, [`schema`] the validation whose texts clients show.

pub mod id;
pub mod message;

pub use id::{AgentId, RunId, SessionId};
