//! OpenAI Chat Completions and the servers that speak it (spec `models.md` §4.2).

mod compat;
mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::{CompletionsDecoder, error_message};
