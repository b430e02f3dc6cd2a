//! `system-presence` and `system-event` (spec `gateway-protocol.md` §6.1, §8.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use crate::event::PresenceEntry;

super::calls! {
    /// Who is here, newest first.
    SystemPresence: "system-presence" as Loose, super::Ignored => Vec<PresenceEntry>;
    /// A note or a beacon of a companion app.
    SystemEvent: "system-event" as Loose, SystemEventParams => Done;
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
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemEventParams {
    /// The note, or a beacon line `Node: <host> (<ip>) · app <version> · …`.
    #[serde(deserialize_with = "super::lenient")]
    pub text: Option<String>,
    /// Presence key, first choice.
    #[serde(deserialize_with = "super::lenient")]
    pub device_id: Option<String>,
    /// Presence key, second choice.
    #[serde(deserialize_with = "super::lenient")]
    pub instance_id: Option<String>,
    /// Host name.
    #[serde(deserialize_with = "super::lenient")]
    pub host: Option<String>,
    /// Address.
    #[serde(deserialize_with = "super::lenient")]
    pub ip: Option<String>,
    /// Client mode.
    #[serde(deserialize_with = "super::lenient")]
    pub mode: Option<String>,
    /// App version.
    #[serde(deserialize_with = "super::lenient")]
    pub version: Option<String>,
    /// Operating system.
    #[serde(deserialize_with = "super::lenient")]
    pub platform: Option<String>,
    /// Such as `Mac`.
    #[serde(deserialize_with = "super::lenient")]
    pub device_family: Option<String>,
    /// Such as `Mac16,6`.
    #[serde(deserialize_with = "super::lenient")]
    pub model_identifier: Option<String>,
    /// Seconds since the last input.
    #[serde(deserialize_with = "super::lenient")]
    pub last_input_seconds: Option<u64>,
    /// Why it reports.
    #[serde(deserialize_with = "super::lenient")]
    pub reason: Option<String>,
    /// Roles it has.
    #[serde(deserialize_with = "super::lenient")]
    pub roles: Option<Vec<String>>,
    /// Scopes it has.
    #[serde(deserialize_with = "super::lenient")]
    pub scopes: Option<Vec<String>>,
    /// Accepted and dropped, as OpenClaw 2026.2.9 does.
    #[serde(deserialize_with = "super::lenient")]
    pub tags: Option<Vec<String>>,
}
