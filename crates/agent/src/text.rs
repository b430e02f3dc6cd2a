//! From the model's raw text to what people see: reasoning tags, directives, media lines, the silent token
//! (spec `streaming.md` §6, §7; `messages.md` §7, §8).

pub mod directive;
pub mod heartbeat;
pub mod silent;
pub mod tags;
pub mod thoughts;
pub(crate) mod visible;
