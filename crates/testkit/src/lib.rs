//! Tools that tests of all crates share. The outside world is faked here and nowhere else; the
//! gateway itself is the real binary.
//!
//! [`GatewayUnderTest`] runs it in a directory of its own, [`WsClient`] talks to it, [`DeviceIdentity`] signs, [`golden`] replays
//! recorded conversations against it, [`browser`] opens its web chat, [`model_server`] is the model it calls, [`telegram`] the chat platform,
//! [`mod@conformance`] the suite that every chat platform passes, [`markdown`] texts for what cuts and renders them, [`faulty_disk`] a disk that fails when it is told to,
//! [`reference_state`] a directory that OpenClaw 2026.2.9 left.
//! Never a dependency of shipped code.

pub mod browser;
#[expect(clippy::panic, reason = "testkit: what is wrong here ends the test")]
pub mod conformance;
mod device;
pub mod faulty_disk;
mod gateway;
pub mod golden;
pub mod login_server;
pub mod long_sessions;
pub mod many_sessions;
pub mod markdown;
pub mod model_server;
pub mod reference_state;
mod reserved_port;
#[expect(clippy::panic, clippy::indexing_slicing, reason = "testkit: what is wrong here ends the test")]
pub mod telegram;
#[expect(clippy::indexing_slicing, reason = "testkit: what is wrong here ends the run")]
pub mod torture;
mod ws_client;

pub use device::DeviceIdentity;
pub use gateway::{GatewaySetup, GatewayUnderTest, TOKEN};
pub use reserved_port::ReservedPort;
pub use ws_client::{Challenge, DEADLINE, Login, Received, SocketOptions, WsAnswer, WsClient};
