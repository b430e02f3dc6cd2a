//! The OpenClaw wire contract, and nothing else: no I/O, no clock, no state.
//!
//! [`frame`] holds the three frame kinds, [`method`] the table of methods, [`access`] who may call them, [`params`] one
//! type per method's parameters and result, [`event`] the broadcast events, [`error`] what a failed request answers,
//! [`message`] the transcript message model that `chat.history` puts on the wire, [`schema`] the validation whose texts
//! clients show, [`session_key`] the names of conversations, [`session_scope`] who shares one with whom, [`device`] what a device signs,
//! [`mend`] what JavaScript takes for JSON, [`printable`] what people may be shown of it, [`mod@export`] all of it as JSON Schema.

pub mod access;
pub mod device;
pub mod error;
pub mod event;
pub mod export;
pub mod frame;
pub mod id;
mod json_schema;
pub mod mend;
pub mod message;
pub mod method;
pub mod params;
mod payload;
pub mod printable;
pub mod schema;
pub mod session_key;
pub mod session_scope;
pub mod text_length;

pub use access::Role;
pub use error::{ErrorCode, ErrorShape};
pub use export::export;
pub use frame::{Event, Frame, Inbound, PROTOCOL_VERSION, Request, Response, StateVersion};
pub use id::{AgentId, RunId, SessionId};
pub use params::Call;
pub use payload::{Payload, guarded};
pub use session_key::SessionKey;
pub use session_scope::{DmScope, IdentityLinks, Peer, PeerKind, SessionScope};

#[cfg(test)]
mod golden_tests;
