//! The daemon: the WebSocket and HTTP server, and the parts behind it.
//!
//! [`fn@run`] starts a gateway and returns when it has stopped; `start` puts its parts together and hands each
//! what it uses. [`methods`] answers requests, a family a file; [`fan_out`] gives events to clients. A socket's life: [`socket`] drives it,
//! [`handshake`] decides whether it comes in, [`pairing`] whether its device does.
//!
//! No wire format of a model or chat platform is known to this crate. Which platforms the build has
//! is one row each in `platforms.rs`.

mod absent_features;
mod ack_pause;
mod approval_events;
mod approval_forward;
mod attachments;
mod channels;
mod clock;
pub mod connection;
mod control;
mod current_settings;
mod entrance;
pub mod events;
pub mod fan_out;
mod frame_text;
mod free_memory;
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;
pub mod health;
mod heartbeat;
mod host;
pub mod logging;
pub mod methods;
pub mod pairing;
mod places;
mod platforms;
mod premises;
pub mod presence;
mod reload;
mod request;
mod sandbox_upkeep;
mod secret_digest;
mod sentinel;
mod server;
mod socket;
mod start;
mod state;
mod surroundings;
mod ticker;
mod umask;
mod upkeep;
mod web_chat;

pub use absent_features::{Absent, absent_features};
pub use host::{Host, VERSION, own_addresses};
pub use logging::Redactor;
pub use platforms::platforms;
pub use premises::premises;
pub use reload::applies_at_once;
pub use request::{HandlerResult, RequestContext, RequestFailure};
pub use secret_digest::SecretDigest;
pub use server::ListenError;
pub use start::{
    ExitStatus, ForceError, InstanceLockError, LogTarget, Ready, RunOptions, RunningGateway, StartError,
    StateHold, hold_state, run, running_gateway, signals,
};
pub use state::GatewayState;
pub use umask::keep_files_private;
pub use web_chat::{signed_in, web_chat_url};
