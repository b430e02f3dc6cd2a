//! Device key of this host and the tokens that gateways issued to it (spec `gateway-protocol.md`
//! §3.5).

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, EncodePrivateKey as _, EncodePublicKey as _, KeypairBytes,
};
use ed25519_dalek::{Signer as _, SigningKey};
use openclaw_config::Paths;
use openclaw_config::clock::now_ms;
use openclaw_config::private_file::{self, Durability};
use openclaw_config::shared_place;
use openclaw_protocol::device::{SigningPayload, signing_payload};
use openclaw_protocol::params::NonEmpty;
use openclaw_protocol::params::connect::DeviceProof;
use rand::RngCore as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The device's key pair.
pub(crate) struct DeviceKeyPair {
    key: SigningKey,
    device_id: String,
    /// Reason why it is in memory only.
    unsaved: Option<io::Error>,
}

/// `identity/device.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeviceFile {
    version: u32,
    device_id: String,
    public_key_pem: String,
    private_key_pem: String,
    created_at_ms: i64,
}

impl DeviceKeyPair {
    /// Reads the device's key, or makes one on first use. Without room on the disk the key lives as
    /// long as this process: a gateway that runs can still be asked.
    ///
    /// # Errors
    /// When the file can't be read as a key or can't be written. A broken file is never replaced: other gateways know it.
    pub(crate) fn load_or_create(paths: &Paths) -> io::Result<Self> {
        let path = paths.device_identity();
        match shared_place::read_to_string(&path) {
            Ok(text) => Self::read(&path, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(&path),
            Err(error) => Err(error),
        }
    }

    /// Reason why the existing key can't be used. Changes nothing.
    pub(crate) fn problem(paths: &Paths) -> Option<io::Error> {
        let path = paths.device_identity();
        let read = shared_place::read_to_string(&path).and_then(|text| Self::read(&path, &text));
        read.err().filter(|error| error.kind() != io::ErrorKind::NotFound)
    }

    fn read(path: &Path, text: &str) -> io::Result<Self> {
        let broken = |what: &dyn std::fmt::Display| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{} is no device identity: {what}; put a copy of it back, or move it away: then a new one is made, which gateways have to pair",
                    path.display()
                ),
            )
        };
        let file: DeviceFile = serde_json::from_str(text).map_err(|error| broken(&error))?;
        let key = SigningKey::from_pkcs8_pem(&file.private_key_pem).map_err(|error| broken(&error))?;
        Ok(Self::of(key))
    }

    fn create(path: &Path) -> io::Result<Self> {
        let mut seed = [0_u8; 32];
        rand::rng().fill_bytes(&mut seed);
        let identity = Self::of(SigningKey::from_bytes(&seed));
        let pem =
            |error: &dyn std::fmt::Display| io::Error::other(format!("could not encode the key: {error}"));
        // Without the public half: older readers of the format know only this form.
        let pair = KeypairBytes { secret_key: seed, public_key: None };
        let file = DeviceFile {
            version: 1,
            device_id: identity.device_id.clone(),
            public_key_pem: identity
                .key
                .verifying_key()
                .to_public_key_pem(LineEnding::LF)
                .map_err(|error| pem(&error))?,
            private_key_pem: pair.to_pkcs8_pem(LineEnding::LF).map_err(|error| pem(&error))?.to_string(),
            created_at_ms: now_ms(),
        };
        match write(path, &serde_json::to_value(&file)?) {
            Ok(()) => Ok(identity),
            Err(error) if has_no_room(&error) => Ok(Self { unsaved: Some(error), ..identity }),
            Err(error) => Err(error),
        }
    }

    fn of(key: SigningKey) -> Self {
        let digest = Sha256::digest(key.verifying_key().as_bytes());
        let device_id = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { key, device_id, unsaved: None }
    }

    /// Error that kept the key from being saved: the next command has another key.
    pub(crate) fn unsaved(&self) -> Option<&io::Error> {
        self.unsaved.as_ref()
    }

    /// Hexadecimal SHA-256 of the public key.
    pub(crate) fn device_id(&self) -> &str {
        &self.device_id
    }

    /// The `device` parameter of `connect`: the signature covers everything in `parts`, whose device id is filled in.
    pub(crate) fn proof(&self, parts: &SigningPayload<'_>) -> DeviceProof {
        let parts = SigningPayload { device_id: &self.device_id, ..*parts };
        let signature = self.key.sign(signing_payload(&parts).as_bytes());
        DeviceProof {
            id: NonEmpty(self.device_id.clone()),
            public_key: NonEmpty(URL_SAFE_NO_PAD.encode(self.key.verifying_key().as_bytes())),
            signature: NonEmpty(URL_SAFE_NO_PAD.encode(signature.to_bytes())),
            signed_at: parts.signed_at_ms,
            nonce: parts.nonce.map(|nonce| NonEmpty(nonce.to_owned())),
        }
    }
}

fn has_no_room(error: &io::Error) -> bool {
    private_file::is_full(error) || error.kind() == io::ErrorKind::ReadOnlyFilesystem
}

/// `identity/device-auth.json`: tokens by role.
#[derive(Debug)]
pub(crate) struct DeviceTokens {
    path: PathBuf,
    device_id: String,
    document: Map<String, Value>,
}

impl DeviceTokens {
    /// Reads the tokens of a device; those of another one are not used.
    pub(crate) fn load(paths: &Paths, device_id: &str) -> Self {
        let path = paths.device_auth();
        let document = shared_place::read_to_string(&path)
            .ok()
            .and_then(|text| serde_json::from_str::<Map<String, Value>>(&text).ok())
            .filter(|document| document.get("deviceId").and_then(Value::as_str) == Some(device_id))
            .unwrap_or_default();
        Self { path, device_id: device_id.to_owned(), document }
    }

    /// The token for a role.
    pub(crate) fn get(&self, role: &str) -> Option<&str> {
        self.document.get("tokens")?.get(role)?.get("token")?.as_str()
    }

    /// Keeps a token that a gateway issued. Nothing is written when it is known.
    pub(crate) fn store(&mut self, role: &str, token: &str, scopes: &[String]) -> io::Result<()> {
        let mut scopes = scopes.to_vec();
        scopes.sort();
        let known = self.document.get("tokens").and_then(|tokens| tokens.get(role));
        let is_known = known.is_some_and(|known| {
            known.get("token").and_then(Value::as_str) == Some(token)
                && known.get("scopes") == Some(&json!(scopes))
        });
        if is_known {
            return Ok(());
        }
        let entry = json!({ "token": token, "role": role, "scopes": scopes, "updatedAtMs": now_ms() });
        if let Some(tokens) = self.tokens() {
            tokens.insert(role.to_owned(), entry);
        }
        self.save()
    }

    /// Forgets the token for a role.
    pub(crate) fn forget(&mut self, role: &str) -> io::Result<()> {
        match self.tokens().and_then(|tokens| tokens.shift_remove(role)) {
            Some(_) => self.save(),
            None => Ok(()),
        }
    }

    fn tokens(&mut self) -> Option<&mut Map<String, Value>> {
        self.document.insert("version".to_owned(), json!(1));
        self.document.insert("deviceId".to_owned(), json!(self.device_id));
        let tokens = self.document.entry("tokens").or_insert_with(|| json!({}));
        if !tokens.is_object() {
            *tokens = json!({});
        }
        tokens.as_object_mut()
    }

    fn save(&self) -> io::Result<()> {
        write(&self.path, &Value::Object(self.document.clone()))
    }
}

fn write(path: &Path, value: &Value) -> io::Result<()> {
    private_file::replace(path, format!("{value:#}\n").as_bytes(), Durability::Synced)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use openclaw_config::Environment;

    use super::*;

    fn paths(dir: &tempfile::TempDir) -> Paths {
        Paths::resolve(&Environment::new([("HOME", dir.path().to_str().unwrap())], dir.path()))
    }

    fn parts<'a>(scopes: &'a [String], token: Option<&'a str>, nonce: Option<&'a str>) -> SigningPayload<'a> {
        SigningPayload {
            device_id: "",
            client_id: "cli",
            client_mode: "cli",
            role: "operator",
            scopes,
            signed_at_ms: 1_770_000_000_000,
            token,
            nonce,
        }
    }

    /// Vectors of `gateway-protocol.md` §3.5.
    #[test]
    fn a_proof_has_the_signature_of_the_vectors() {
        let identity = DeviceKeyPair::of(SigningKey::from_bytes(&[1; 32]));
        let scopes = ["operator.admin", "operator.approvals", "operator.pairing"].map(str::to_owned);
        let nonce = "11111111-2222-4333-8444-555555555555";
        assert_eq!(
            json!(identity.proof(&parts(&scopes, Some("tok-123"), Some(nonce)))),
            json!({
                "id": "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e",
                "publicKey": "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w",
                "signature":
                    "nQpG9J9MSX7Xm5z6H2TRD-hk-0ekpHaAOpAm2VsSevxsZHnNdBnmp70wMRQk4kwaDkW3Lovx8ruJqcr86T-oAA",
                "signedAt": 1_770_000_000_000_u64,
                "nonce": nonce,
            })
        );
        let admin = ["operator.admin".to_owned()];
        assert_eq!(
            json!(identity.proof(&parts(&admin, None, None)))["signature"],
            "AaxNtk5Wpau63sBG4g6qu7KTT0ymc1bg-EfwC4_lsIZAOunZu1uSbk4LNXhjml8VVt2H3aumPYYnxP1jhgAHBQ"
        );
    }

    #[test]
    fn an_identity_is_made_once_and_kept_private() {
        let dir = tempfile::tempdir().unwrap();
        let first = DeviceKeyPair::load_or_create(&paths(&dir)).unwrap();
        let second = DeviceKeyPair::load_or_create(&paths(&dir)).unwrap();
        assert_eq!(first.device_id(), second.device_id());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(paths(&dir).device_identity()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_broken_identity_is_named_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = paths(&dir).device_identity();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{}").unwrap();
        let error = DeviceKeyPair::load_or_create(&paths(&dir)).err().unwrap();
        assert!(error.to_string().contains("is no device identity"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
    }

    #[test]
    fn tokens_of_another_device_are_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = DeviceTokens::load(&paths(&dir), "a");
        tokens.store("operator", "t1", &["z".to_owned(), "b".to_owned()]).unwrap();
        assert_eq!(DeviceTokens::load(&paths(&dir), "a").get("operator"), Some("t1"));
        assert_eq!(DeviceTokens::load(&paths(&dir), "b").get("operator"), None);
        let text: Value =
            serde_json::from_str(&fs::read_to_string(paths(&dir).device_auth()).unwrap()).unwrap();
        assert_eq!(text["tokens"]["operator"]["scopes"], json!(["b", "z"]));
        tokens.forget("operator").unwrap();
        assert_eq!(DeviceTokens::load(&paths(&dir), "a").get("operator"), None);
    }
}
