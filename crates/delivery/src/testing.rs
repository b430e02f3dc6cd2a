//! Setup shared by tests of this crate and of those above it.

pub mod send_only;
