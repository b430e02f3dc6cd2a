//! Secrets as the gateway keeps them: the shared one, and the tokens of devices.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A secret, kept only as its digest: comparing takes the same time whatever is given (KB-10).
#[derive(Clone, PartialEq, Eq)]
pub struct SecretDigest([u8; 32]);

impl SecretDigest {
    /// The digest of a secret.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// True if the text is the secret.
    pub fn matches(&self, given: &str) -> bool {
        self.0.ct_eq(&Self::of(given).0).into()
    }
}

impl std::fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}
