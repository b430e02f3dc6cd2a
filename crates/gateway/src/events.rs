//! Broadcast events: who gets which, how they are numbered, and the one place that fans them out.

mod encoded;
mod hub;
mod rules;
mod tool_listeners;

pub use encoded::{EncodedEvent, Event};
pub use hub::EventHub;
