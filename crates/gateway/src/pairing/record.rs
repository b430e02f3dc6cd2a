//! `devices/pending.json` and `devices/paired.json`, as OpenClaw 2026.2.9 writes them. Unknown keys are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

/// A device that waits for a person's approval.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// Key in `pending.json`.
    pub request_id: String,
    /// Hex SHA-256 of the public key.
    pub device_id: String,
    /// base64url of the 32 raw bytes.
    pub public_key: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Such as `ios 26.0`.
    pub platform: Option<String>,
    /// `connect.client.id`
    pub client_id: Option<String>,
    /// `connect.client.mode`
    pub client_mode: Option<String>,
    /// The role asked for last.
    pub role: Option<String>,
    /// All roles asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// All scopes asked for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Address it connected from.
    pub remote_ip: Option<String>,
    /// True if it was approved without asking.
    #[serde(default)]
    pub silent: bool,
    /// True if the device is paired already and asks for more.
    #[serde(default)]
    pub is_repair: bool,
    /// Unix milliseconds.
    pub ts: i64,
    /// Unknown fields of the file, kept when it is written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A device that may connect.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Paired {
    /// Key in `paired.json`.
    pub device_id: String,
    /// base64url of the 32 raw bytes.
    pub public_key: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Such as `ios 26.0`.
    pub platform: Option<String>,
    /// `connect.client.id`
    pub client_id: Option<String>,
    /// `connect.client.mode`
    pub client_mode: Option<String>,
    /// The role it connected with last.
    pub role: Option<String>,
    /// Approved roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Approved scopes.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Address it connected from.
    pub remote_ip: Option<String>,
    /// Tokens by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, DeviceToken>,
    /// Unix milliseconds of the first approval.
    pub created_at_ms: i64,
    /// Unix milliseconds of the last approval.
    pub approved_at_ms: i64,
    /// Unknown fields of the file, kept when it is written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A device's secret for one role.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceToken {
    /// 32 hex characters.
    pub token: String,
    /// The role it is for.
    pub role: String,
    /// Scopes that it allows, sorted.
    pub scopes: Vec<String>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds of the last change of the token.
    pub rotated_at_ms: Option<i64>,
    /// Time of revocation, Unix milliseconds; set when it is no longer accepted.
    pub revoked_at_ms: Option<i64>,
    /// Unix milliseconds of the last use as `auth.token`.
    pub last_used_at_ms: Option<i64>,
    /// Unknown fields of the file, kept when it is written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl DeviceToken {
    /// `hello-ok.auth.issuedAtMs`
    pub fn issued_at_ms(&self) -> i64 {
        self.rotated_at_ms.unwrap_or(self.created_at_ms)
    }
}

impl std::fmt::Debug for DeviceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceToken")
            .field("role", &self.role)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
