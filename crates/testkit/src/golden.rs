//! Replays recorded conversations (`tests/golden/gw-*.jsonl`) against a live gateway.
//!
//! [`script`] reads a recording, [`play`] speaks its client's part and compares what the gateway
//! answers, frame by frame and per connection in order, [`likeness`] says what counts as the same.
//! Each test lists intended differences as [`Deviation`]s, each with the reason.

mod likeness;
mod play;
mod script;

pub use play::{Deviation, LineChange, Replay};
