//! Where keys come from: `auth-profiles.json`, the environment, `models.providers.<p>.apiKey` (spec `models.md` §8).

mod command;
mod order;
mod presence;
mod resolve;
mod store;

pub(crate) use command::KeyCommands;
pub use order::profile_order;
pub use presence::Connections;
pub use resolve::{AuthLabel, CredentialError, masked};
pub(crate) use resolve::{Key, Keyring};
pub use store::{AuthStore, Credential, FILE, Secret, StoreError, UsageStats};
