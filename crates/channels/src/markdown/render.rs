//! Styled text in the markup of platforms, one file each. Telegram's HTML is in [`crate::telegram::html`].

mod flatten;
mod markdown;
pub(crate) mod marks;
mod plain;
mod signal;
mod slack;
mod whatsapp;

pub(super) use markdown::markdown;
pub use plain::{PLAIN, plain};
pub use signal::{SIGNAL, SignalStyle, SignalText, signal};
pub use slack::{SLACK, slack};
pub use whatsapp::{WHATSAPP, whatsapp};
