//! `system-presence` and `system-event` (spec `gateway-protocol.md` §6.1, §8.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::{apply, skip_serializing_none};

super::calls! {
    /// Presence list, newest first.
    SystemPresence: "system-presence" as Loose, super::Ignored => Vec<PresenceEntry>;
    /// A note or a beacon of a companion app.
    SystemEvent: "system-event" as Loose, SystemEventParams => Done;
}

/// Someone who is here (spec §8.1).
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresenceEntry {
    /// Host or display name.
    pub host: Option<String>,
    /// Address, when not local.
    pub ip: Option<String>,
    /// App version.
    pub version: Option<String>,
    /// Operating system.
    pub platform: Option<String>,
    /// Such as `iPhone`.
    pub device_family: Option<String>,
    /// Such as `iPhone18,1`.
    pub model_identifier: Option<String>,
    /// Client mode, or `gateway`.
    pub mode: Option<String>,
    /// Seconds since the last input.
    pub last_input_seconds: Option<u64>,
    /// Paired device.
    pub device_id: Option<String>,
    /// Roles of its connections.
    pub roles: Option<Vec<String>>,
    /// Scopes of its connections.
    pub scopes: Option<Vec<String>>,
    /// Stable id of the client.
    pub instance_id: Option<String>,
    /// Why the entry changed last.
    pub reason: Option<String>,
    /// Labels.
    pub tags: Option<Vec<String>>,
    /// One line for people.
    pub text: Option<String>,
    /// Unix milliseconds of the last change.
    pub ts: i64,
}

/// `{ok:true}`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// Always true.
    pub ok: bool,
}

impl Done {
    /// `{ok:true}`
    pub const OK: Self = Self { ok: true };
}

/// Params of `system-event`. Optional fields of a wrong type read as absent.
#[apply(crate = "serde_with_macros", Option => #[serde(deserialize_with = "super::lenient")])]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemEventParams {
    /// The note, or a beacon line `Node: <host> (<ip>) · app <version> · …`.
    pub text: Option<String>,
    /// Presence key, first choice.
    pub device_id: Option<String>,
    /// Presence key, second choice.
    pub instance_id: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Address.
    pub ip: Option<String>,
    /// Client mode.
    pub mode: Option<String>,
    /// App version.
    pub version: Option<String>,
    /// Operating system.
    pub platform: Option<String>,
    /// Such as `Mac`.
    pub device_family: Option<String>,
    /// Such as `Mac16,6`.
    pub model_identifier: Option<String>,
    /// Seconds since the last input.
    pub last_input_seconds: Option<u64>,
    /// Why it reports.
    pub reason: Option<String>,
    /// Roles it has.
    pub roles: Option<Vec<String>>,
    /// Scopes it has.
    pub scopes: Option<Vec<String>>,
    /// Accepted and dropped, as OpenClaw 2026.2.9 does.
    pub tags: Option<Vec<String>>,
}
