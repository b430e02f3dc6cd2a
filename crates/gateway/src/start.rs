//! Starting and stopping a gateway.
//!
//! [`run`](run::run) is the order of events. Parts of a start: [`instance_lock`] against a second
//! gateway, [`hold`] for commands that need there to be none, [`force`] against the one that runs,
//! [`old_state`] to take over what older versions left, [`places`] that must be ours, [`parts`] to
//! put together, [`stop`] to end it all; [`signals`] that ask for it.

mod file_limit;
mod force;
mod hold;
mod instance_lock;
mod old_state;
mod parts;
mod places;
mod process;
pub(crate) mod run;
pub mod signals;
mod stop;

pub use force::ForceError;
pub use hold::{RunningGateway, StateHold, hold_state, running_gateway};
pub use instance_lock::InstanceLockError;
pub use run::{ExitStatus, LogTarget, Ready, RunOptions, StartError, run};
