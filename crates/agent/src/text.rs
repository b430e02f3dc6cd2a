//! Turns the model's raw text into what people see: reasoning tags, directives, media lines, the
//! silent token (spec `streaming.md` §6, §7; `messages.md` §7, §8).

mod code_span;
pub mod directive;
pub mod heartbeat;
mod leaked_call;
pub mod silent;
pub mod tags;
pub mod thoughts;
pub(crate) mod visible;

#[cfg(test)]
mod hostile;
