//! Wall-clock time as the protocol counts it.

pub(crate) use openclaw_config::clock::now_ms;
