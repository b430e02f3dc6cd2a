//! From an answer to what a chat platform is sent, and from what a platform brings to the words of a
//! message.
//!
//! [`reply`] cuts answers into blocks and paces them, [`outbox`] keeps every delivery until its
//! platform has it and retries sends with backoff, [`incoming`] puts a message together from what a
//! platform brought, [`ack_reaction`] shows that it was accepted; [`status_card`] and
//! [`usage_footer`] are texts that go out. Begin with [`reply`] for shaping and with
//! [`outbox::Outbox`] for delivery; `docs/durability.md` says which failures the outbox survives.
//!
//! The crate starts no run and reads no command.

pub mod ack_reaction;
pub mod incoming;
pub mod outbox;
pub mod reply;
pub mod status_card;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod usage_footer;
