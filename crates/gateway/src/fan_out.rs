//! The fan-out of broadcast events: who gets which, how they are numbered, and the one place that
//! hands them to the queues of connections.

mod hub;
mod rules;
mod tool_listeners;

pub use hub::EventHub;
