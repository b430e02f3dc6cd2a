//! Device identities whose keys come from one byte, so that every run signs with the same keys (the golden recordings do).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer, SigningKey};
use openclaw_protocol::device::{SigningPayload, signing_payload};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// An ed25519 key with the id that follows from it.
#[derive(Debug, Clone)]
pub struct DeviceIdentity {
    key: SigningKey,
}

impl DeviceIdentity {
    /// The identity whose private key is 32 times this byte.
    pub fn from_seed(seed: u8) -> Self {
        Self { key: SigningKey::from_bytes(&[seed; 32]) }
    }

    /// The seeded identity that has this public key.
    pub fn with_public_key(public_key: &str) -> Option<Self> {
        (0..=u8::MAX).map(Self::from_seed).find(|device| device.public_key() == public_key)
    }

    /// Base64url of the raw public key.
    pub fn public_key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.key.verifying_key().as_bytes())
    }

    /// Hex of the SHA-256 of the raw public key.
    pub fn id(&self) -> String {
        let hash = Sha256::digest(self.key.verifying_key().as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Base64url of the signature over `text`.
    pub fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.key.sign(text.as_bytes()).to_bytes())
    }

    /// The `device` of `connect` params that otherwise are complete.
    pub fn proof(&self, params: &Value, signed_at_ms: u64, nonce: Option<&str>) -> Value {
        let id = self.id();
        let mut device = json!({
            "id": id,
            "publicKey": self.public_key(),
            "signature": self.sign(&signed_text(params, &id, signed_at_ms, nonce)),
            "signedAt": signed_at_ms,
        });
        if let (Some(nonce), Some(device)) = (nonce, device.as_object_mut()) {
            device.insert("nonce".into(), json!(nonce));
        }
        device
    }
}

/// Text that the device with this id signs for these `connect` params.
pub(crate) fn signed_text(params: &Value, device_id: &str, signed_at_ms: u64, nonce: Option<&str>) -> String {
    let text = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
    let scopes: Vec<String> = params
        .get("scopes")
        .and_then(Value::as_array)
        .map(|scopes| scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    signing_payload(&SigningPayload {
        device_id,
        client_id: text("/client/id").unwrap_or_default(),
        client_mode: text("/client/mode").unwrap_or_default(),
        role: text("/role").unwrap_or("operator"),
        scopes: &scopes,
        signed_at_ms,
        token: text("/auth/token"),
        nonce,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_one_is_the_identity_of_the_recordings() {
        let device = DeviceIdentity::from_seed(1);
        assert_eq!(device.public_key(), "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w");
        assert_eq!(device.id(), "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e");
        let found = DeviceIdentity::with_public_key(&device.public_key());
        assert_eq!(found.map(|found| found.id()), Some(device.id()));
    }

    /// `gw-connect-fail-device-no-token` has no secret in it, so its signature can be made again.
    #[test]
    fn a_recorded_signature_is_made_again() {
        let line = include_str!("../../../tests/golden/gw-connect-fail-device-no-token.jsonl")
            .lines()
            .nth(1)
            .unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        let params = &line["frame"]["params"];
        let recorded = &params["device"];
        let device = DeviceIdentity::with_public_key(recorded["publicKey"].as_str().unwrap()).unwrap();
        let proof = device.proof(params, recorded["signedAt"].as_u64().unwrap(), recorded["nonce"].as_str());
        assert_eq!(&proof, recorded);
    }
}
