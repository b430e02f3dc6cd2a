//! Broadcast events: who gets which, how they are numbered, and the one place that fans them out.

mod encoded;
mod growing_text;
mod hub;
mod rules;
mod tool_listeners;

#[cfg(test)]
pub(crate) use encoded::OfRun;
pub use encoded::{EncodedEvent, Event};
pub use hub::EventHub;
