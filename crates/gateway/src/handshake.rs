//! Handshake: from the first frame of a socket to an authenticated connection (spec
//! `gateway-protocol.md` §3).
//!
//! `machine` decides; the other files are the checks it makes. No I/O here: the driver in
//! [`crate::socket`] carries out the decisions.

pub(crate) mod client_address;
pub(crate) mod client_kind;
pub(crate) mod close;
pub(crate) mod device;
pub(crate) mod machine;
pub(crate) mod origin;
pub(crate) mod settle;
pub(crate) mod shared_auth;
pub(crate) mod throttle;

pub use client_address::{AddressBook, ClientAddress, ClientIp, Origination};
pub use close::Closing;
pub use shared_auth::{AuthFailure, Credentials, SecretProblem, SharedSecret, authorize};
