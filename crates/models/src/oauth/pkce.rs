//! Proof that who exchanges a code is who asked for it (RFC 7636), and the state that ties an answer to its question.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The secrets of one login.
#[derive(Clone)]
pub struct Proof {
    /// Verifier that is sent with the code.
    pub verifier: String,
    /// Challenge that is sent with the question.
    pub challenge: String,
    /// Comes back with the answer.
    pub state: String,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Proof {
    /// New random ones.
    pub fn random() -> Self {
        Self::of(&rand::random::<[u8; 32]>(), &rand::random::<[u8; 16]>())
    }

    fn of(verifier: &[u8; 32], state: &[u8; 16]) -> Self {
        let verifier = URL_SAFE_NO_PAD.encode(verifier);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let state = state.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { verifier, challenge, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_standard() {
        let bytes = URL_SAFE_NO_PAD.decode("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").unwrap();
        let proof = Proof::of(&bytes.try_into().unwrap(), &[0xab; 16]);
        assert_eq!(proof.verifier, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(proof.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(proof.state, "ab".repeat(16));
        assert_ne!(Proof::random().state, Proof::random().state);
        assert_eq!(format!("{proof:?}"), "[redacted]");
    }
}
