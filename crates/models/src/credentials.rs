//! Credentials: `auth-profiles.json`, the environment, `models.providers.<p>.apiKey` (spec
//! `models.md` §8).

mod advice;
mod command;
mod cooldown;
mod credential;
mod error;
mod file;
mod ledger;
mod legacy;
mod lock;
mod logins;
mod order;
mod presence;
mod renewable;
mod resolve;
mod session_profile;
mod store;

pub use advice::{AgentFlag, how_to_add};
pub(crate) use command::KeyCommands;
pub use cooldown::{UsageStats, failure_reason};
pub use credential::{About, Credential, Secret, pasted_secret};
pub use error::CredentialError;
pub use file::{AuthStoreError, FILE, OnDamage, Updated};
pub(crate) use ledger::{Ledger, ProfileAccount};
pub use legacy::Surroundings;
pub use logins::{Because, LoginPlace, Logins};
pub use order::profile_order;
pub use presence::Connections;
pub(crate) use renewable::Renewable;
pub use resolve::AuthLabel;
pub(crate) use resolve::{Keyring, ProfileWish, ResolvedKey};
pub use session_profile::{Pin, PinSource, SessionState, pin};
pub use store::AuthStore;
