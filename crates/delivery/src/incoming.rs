//! Messages from platforms on their way to the agent (spec `messages.md` §1-§3, `channels.md` §3,
//! §7.3). This module decides and does nothing: values and times in, values out.
//!
//! [`debounce`] gathers messages that belong together, [`envelope`] tells their sender, time and
//! place, [`media`] the files that came with them, [`compose`] puts it all together.

pub mod compose;
pub mod debounce;
pub mod envelope;
#[cfg(test)]
mod forged;
pub mod media;

pub use compose::{ConversationFacts, Utterance};
pub use media::IncomingFile;
