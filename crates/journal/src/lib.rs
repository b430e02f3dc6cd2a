//! Durable records of the gateway: accepted messages with everything that was decided about them, inbound events, deliveries, the
//! records of runs, and the [`Journal`](journal::Journal) that keeps them.
//!
//! The crate decides nothing about a message and runs nothing: it holds value types, the rights of a run ([`rights`]), and the storage below
//! them. Begin with [`request`], which is what an accepted message is stored as, and with [`journal`], the trait that storage implements;
//! [`journal::rows`] says how stored rows may change, and [`journal::sqlite`] is the implementation that the gateway uses. `docs/durability.md` says which failures it survives.

pub mod api;
pub mod arrival;
pub mod backlog;
pub mod beat;
pub mod caller;
pub mod child_run;
pub mod clock;
pub mod delivery;
pub mod exchange;
pub mod frames;
pub mod inbox;
pub mod intent;
pub mod job;
pub mod journal;
pub mod lineage;
pub mod notices;
pub mod origin;
pub mod queue;
pub mod request;
pub mod rights;
pub mod run_result;
pub mod source;
pub mod steady_id;
pub mod talk;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
