//! `auth.*`: credential profiles. The credentials themselves are in `auth-profiles.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `auth`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Auth {
    /// Profiles by id, such as `anthropic:default`.
    pub profiles: BTreeMap<String, AuthProfile>,
    /// Provider to profile ids in the order of preference.
    pub order: BTreeMap<String, Vec<String>>,
    /// Cooldowns of failing profiles.
    pub cooldowns: AuthCooldowns,
}

/// `auth.profiles.<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuthProfile {
    /// Provider id.
    pub provider: String,
    /// Kind of credential.
    pub mode: AuthMode,
}

/// `auth.profiles.*.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// A key.
    ApiKey,
    /// OAuth with refresh.
    Oauth,
    /// A bearer token without refresh.
    Token,
}

/// `auth.cooldowns`, in hours.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuthCooldowns {
    /// First rest after a billing failure; default 5.
    pub billing_backoff_hours: Option<f64>,
    /// The same by provider.
    pub billing_backoff_hours_by_provider: BTreeMap<String, f64>,
    /// Longest rest; default 24.
    pub billing_max_hours: Option<f64>,
    /// Window in which failures are counted; default 24.
    pub failure_window_hours: Option<f64>,
}
