//! From what a run tells to what clients hear: numbering, throttling, gating, fan-out.

mod emitter;
mod escaped_text;
mod hub;

pub use hub::Events;

pub(crate) use emitter::{Emitter, Verbose, injected};
pub(crate) use hub::Hub;
