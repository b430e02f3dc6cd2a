//! Device pairing: which devices may connect as what, and the tokens they hold (spec `gateway-protocol.md` §3.6, §3.7).
//!
//! `book` decides, on values; `record` is the format of the two files; `store` reads and writes them.

mod book;
mod record;
mod store;

pub use book::{Admission, Announcement, ConnectingDevice, PairingBook, PairingDecision, TokenRefusal};
pub use record::{DeviceToken, Paired, Pending};
pub use store::{Attempted, Damage, DeviceStore, PairingStoreError};
