//! Steady ids, made from their purpose: work that is done again after a crash has the same id as
//! before.

use openclaw_sessions::ids;
use sha2::{Digest as _, Sha256};

/// The UUID of a text: always the same.
pub fn uuid_of(text: &str) -> String {
    let digest = Sha256::digest(text);
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    ids::uuid_from(bytes).to_string()
}
