//! Sessions: the conversation that a message belongs to, its known facts, and its messages.
//!
//! [`key`] names conversations, [`routing`] finds agent and key of an inbound message, [`entry`] is a row of the store,
//! [`store`] keeps rows durably in OpenClaw's `sessions.json`, [`layout`] knows the paths, [`reset`] and [`send_policy`]
//! decide, [`access`] says which sessions an agent sees, [`usage`] counts tokens and money. This crate does no network I/O and knows neither models nor channels.

pub mod access;
pub mod backup;
pub mod checkup;
mod disk;
pub mod display;
pub mod entry;
pub mod history;
pub mod ids;
pub mod key;
pub mod layout;
pub mod legacy_state;
mod lockfile;
pub mod maintenance;
pub mod methods;
mod ordered;
pub mod process;
pub mod reset;
pub mod routing;
pub mod send_policy;
pub mod settings;
pub mod store;
pub mod time;
pub mod transcript;
#[cfg(any(test, feature = "contract"))]
pub mod transcript_contract;
pub mod usage;

pub use entry::SessionEntry;
pub use key::{KeyError, KeyRules, SessionKey};
pub use layout::Layout;
pub use ordered::FieldChanges;
pub use settings::SessionSettings;
pub use store::{Row, SessionStore, StoreError};
pub use transcript::Transcript;

pub(crate) use openclaw_protocol::mend;
