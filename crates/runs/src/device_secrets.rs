//! The tokens of paired devices, the private key of this host's own device, and the tokens that gateways issued to it: no
//! tool may say them.
//!
//! Devices pair and the command line makes its key while the gateway runs, so the files are looked at when a run begins. They
//! are read only when they are others than at the last look.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::redact::is_secret_name;
use openclaw_config::stamp::Stamp;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// Below the state directory.
const FILES: [&str; 3] = ["devices/paired.json", "identity/device.json", "identity/device-auth.json"];
/// Size in bytes of the largest file that is read.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Prefix of the lines of a PEM text that hold nothing of the key.
const FRAME: &str = "-----";

/// Contents of the files, as of the last look.
pub(super) struct DeviceSecrets {
    files: [PathBuf; 3],
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    stamps: [Option<Stamp>; 3],
    secrets: Arc<[SecretString]>,
}

impl DeviceSecrets {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self { files: FILES.map(|name| state_dir.join(name)), latest: Mutex::default() }
    }

    /// Returns the secrets that are in the files now: the same list as before if nothing changed.
    /// Costs three looks at directory entries, as a rule: going to another thread for them would
    /// take longer.
    pub(super) fn now(&self) -> Arc<[SecretString]> {
        let mut latest = self.latest.lock();
        let stamps = self.files.each_ref().map(|path| Stamp::at(path));
        if stamps != latest.stamps {
            let secrets: Vec<SecretString> = self.files.iter().flat_map(|path| secrets_of(path)).collect();
            let is_same = secrets.len() == latest.secrets.len()
                && secrets.iter().zip(latest.secrets.iter()).all(|(new, old)| same(new, old));
            if !is_same {
                latest.secrets = secrets.into();
            }
            latest.stamps = stamps;
        }
        Arc::clone(&latest.secrets)
    }
}

/// Returns the secrets of one file; none if it can't be read: a tool that can read it knows it by
/// other means.
fn secrets_of(path: &Path) -> Vec<SecretString> {
    let is_small = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    let bytes = if is_small { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let mut secrets = Vec::new();
    collect(&serde_json::from_slice(&bytes).unwrap_or_default(), &mut secrets);
    secrets
}

fn collect(value: &Value, secrets: &mut Vec<SecretString>) {
    match value {
        Value::Object(map) => {
            for (name, each) in map {
                match each {
                    // Values below `tokens` are secrets only if their own name says so.
                    Value::String(text) if is_secret_name(name) => secrets.extend(lines(text)),
                    Value::Array(_) | Value::Object(_) => collect(each, secrets),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a token as it is; of a key in PEM each line, since a tool may print them one by one.
fn lines(text: &str) -> impl Iterator<Item = SecretString> + '_ {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(FRAME));
    lines.map(SecretString::from)
}

fn same(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(secrets: &Arc<[SecretString]>) -> Vec<&str> {
        secrets.iter().map(ExposeSecret::expose_secret).collect()
    }

    #[test]
    fn tokens_and_keys_are_found_and_read_again_only_when_a_file_changed() {
        let dir = tempfile::tempdir().unwrap();
        let devices = DeviceSecrets::new(dir.path());
        assert_eq!(told(&devices.now()), [""; 0]);

        std::fs::create_dir_all(dir.path().join("devices")).unwrap();
        std::fs::create_dir_all(dir.path().join("identity")).unwrap();
        let role = |token: &str, used: i64| json!({"token": token, "role": "operator", "scopes": ["operator.admin"], "lastUsedAtMs": used});
        let paired = |token: &str, used: i64| {
            json!({"id": {"deviceId": "id", "publicKey": "open", "tokens": {"operator": role(token, used)}}})
                .to_string()
        };
        let key = json!({
            "deviceId": "id", "publicKeyPem": "-----BEGIN PUBLIC KEY-----\nopen\n-----END PUBLIC KEY-----\n",
            "privateKeyPem": "-----BEGIN PRIVATE KEY-----\nMC4CAQAw\nsecond\n-----END PRIVATE KEY-----\n",
        });
        std::fs::write(dir.path().join(FILES[0]), paired("first-token", 1)).unwrap();
        std::fs::write(dir.path().join(FILES[1]), key.to_string()).unwrap();
        let first = devices.now();
        assert_eq!(told(&first), ["first-token", "MC4CAQAw", "second"]);
        assert!(Arc::ptr_eq(&first, &devices.now()));

        // Each connection notes when the token was used.
        std::fs::write(dir.path().join(FILES[0]), paired("first-token", 22)).unwrap();
        assert!(Arc::ptr_eq(&first, &devices.now()));
        std::fs::write(dir.path().join(FILES[0]), paired("other-token!", 3)).unwrap();
        assert_eq!(told(&devices.now()), ["other-token!", "MC4CAQAw", "second"]);
    }
}
