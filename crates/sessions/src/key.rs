//! Session keys under the configuration: from a text or a message to the session it means. The key
//! itself, and what it says of its session, is [`openclaw_protocol::session_key`].

pub mod canonical;
pub mod group;
pub mod legacy;
pub mod peer;
mod plain;

pub use canonical::KeyRules;
pub use openclaw_protocol::session_key::{AgentKey, KeyError, KeyForm, KeyShape, Opener, SessionKey};
pub use openclaw_protocol::{DmScope, IdentityLinks, Peer, PeerKind, SessionScope};

#[cfg(test)]
mod tests;
