//! `ui.*` and `discovery.*`.

use serde::Deserialize;

/// `ui`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ui {
    /// Accent colour, `RRGGBB` with or without `#`.
    pub seam_color: Option<String>,
    /// Looks of the assistant.
    pub assistant: Assistant,
}

/// `ui.assistant`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Assistant {
    /// Name.
    pub name: Option<String>,
    /// Picture: URL, data URI or letters.
    pub avatar: Option<String>,
}

/// `discovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Discovery {
    /// Announcing on the local network.
    pub mdns: MdnsSettings,
}

/// `discovery.mdns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct MdnsSettings {
    /// Amount of detail announced; absent is off unless configured.
    pub mode: Option<MdnsMode>,
}

/// `discovery.mdns.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MdnsMode {
    /// Announces nothing.
    Off,
    /// Name and port.
    Minimal,
    /// Announces paths, too.
    Full,
}
