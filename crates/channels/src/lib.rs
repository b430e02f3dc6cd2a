//! Chat platforms.
//!
//! A platform is one module behind one interface: it receives messages as typed inbound values, sends replies as typed
//! outbound values, and knows how its platform formats, threads and limits them. It knows nothing of agents or sessions.
//!
//! [`registry`] is the table of channels that exist.

pub mod registry;

pub use registry::{Channel, by_name, credential_variables};
