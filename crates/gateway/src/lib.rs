//! The daemon: the WebSocket and HTTP server, and the parts behind it.
//!
//! [`run`] starts a gateway and returns when it has stopped. [`GatewayState`] holds its parts; [`methods`] answers
//! requests, given a [`RequestContext`]; [`events`] fans events out. A socket's life: [`connection`] drives it,
//! [`handshake`] decides whether it comes in, [`pairing`] whether its device does.
//!
//! This crate knows no model's and no chat platform's wire format.

mod atomic_file;
mod clock;
pub mod connection;
pub mod events;
pub mod handshake;
pub mod methods;
pub mod pairing;
mod payload;
mod request;
mod state;

pub use payload::Payload;
pub use request::{Failure, HandlerResult, RequestContext};
pub use state::GatewayState;
