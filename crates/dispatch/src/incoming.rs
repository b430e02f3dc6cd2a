//! From what was said on a platform to what the agent reads (spec `messages.md` §1-§3, `channels.md` §3, §7.3). Everything here decides and
//! does nothing: values and times in, values out.
//!
//! [`debounce`] gathers what belongs together, [`envelope`] tells who said it when and where, [`media`] what came with it, [`compose`] puts
//! it all together.

pub(crate) mod compose;
pub(crate) mod debounce;
pub(crate) mod envelope;
pub(crate) mod media;

pub(crate) use compose::{Conversation, Utterance};
pub(crate) use media::Attachment;
