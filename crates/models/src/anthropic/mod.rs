//! Anthropic Messages (spec `models.md` §4.1).

mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::AnthropicDecoder;
