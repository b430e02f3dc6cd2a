//! Leaving out old tool results once the provider has forgotten the prompt anyway (spec
//! `agent-runtime.md` §7.2): what is sent then is written into its cache anew, and paid for by its
//! size. The transcript does not change.
//!
//! [`PruneSettings`] is what the configuration says, `trim` decides what is cut, [`Pruned`] remembers it: what was cut once stays
//! cut for the calls that follow, else the cache that was just written would fit none of them.

mod memory;
mod settings;
mod trim;

pub use memory::{Pruned, PruningWindow};
pub use settings::{PruneSettings, is_cached};
