//! Styled text in the markup of platforms, one file each. [`marks`] is for crates of platforms that
//! have a markup of their own.

mod flatten;
mod markdown;
pub mod marks;
mod plain;
mod signal;
mod slack;
mod whatsapp;

pub(super) use markdown::markdown;
pub use plain::{PLAIN, plain};
pub use signal::{SIGNAL, SignalStyle, SignalText, signal};
pub use slack::{SLACK, slack};
pub use whatsapp::{WHATSAPP, whatsapp};
