//! Starting and stopping a gateway.
//!
//! [`run`](run::run) is the order of events. What a start needs: [`settings`] of the config, [`instance_lock`] against a
//! second gateway, [`force`] against the one that runs, [`parts`] to put together, [`stop`] to end it all.

mod force;
mod instance_lock;
mod parts;
mod process;
pub(crate) mod run;
pub(crate) mod settings;
mod stop;

pub use force::ForceError;
pub use instance_lock::LockError;
pub use run::{ExitStatus, LogTarget, Ready, RunOptions, StartError, run};
pub use settings::UnusableSection;
