//! Events of a run on their way to clients: numbering, throttling, gating, fan-out.

mod emitter;
mod escaped_text;
mod hub;
mod retry;

pub use hub::Events;

pub use emitter::{Emitter, Verbose, injected};
pub use hub::Hub;
