//! Which session a text or a message means under the configuration. The key itself, and what it says of its session, is
//! [`openclaw_protocol::session_key`].

pub mod canonical;
pub mod group;
pub mod legacy;
pub mod peer;
mod plain;

pub use canonical::KeyRules;
pub use openclaw_protocol::session_key::{AgentKey, KeyError, KeyForm, KeyShape, Opener, SessionKey};
pub use openclaw_protocol::{DmScope, IdentityLinks, Peer, PeerKind, SessionScope};
pub use peer::normalize_account_id;

#[cfg(test)]
mod tests;
