//! Keys of a store that are canonical already, as nearly all are: they are shared with the row instead of made anew.

use std::sync::Arc;

use super::{DIRECT, MAX_KEY_BYTES, SessionKey};

impl SessionKey {
    /// The key that a stored text is without any change. `None` when it takes a closer look, canonical or not.
    pub fn plainly(stored: &Arc<str>) -> Option<Self> {
        is_plain(stored).then(|| Self::canonical(Arc::clone(stored)))
    }
}

fn is_plain(stored: &str) -> bool {
    let Some((agent, rest)) = stored.strip_prefix("agent:").and_then(|tail| tail.split_once(':')) else {
        return false;
    };
    let is_plain = |byte: u8| matches!(byte, b'!'..=b'~') && !byte.is_ascii_uppercase();
    stored.len() <= MAX_KEY_BYTES
        && is_plain_agent(agent)
        && rest.bytes().all(is_plain)
        && rest.split(':').all(|part| !part.is_empty() && part != DIRECT)
}

fn is_plain_agent(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    id.len() <= 64 && id.bytes().all(plain) && id.starts_with(|c: char| c.is_ascii_alphanumeric())
}
