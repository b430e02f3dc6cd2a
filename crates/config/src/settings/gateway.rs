//! `gateway.*`.

use std::time::Duration;

use serde::Deserialize;

use super::Secret;

/// `gateway`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewaySettings {
    /// TCP port; see [`crate::gateway_options`] for the order of sources.
    pub port: Option<u64>,
    /// `local` starts a gateway here, `remote` makes the command line use another one.
    pub mode: Option<GatewayMode>,
    /// Addresses to listen on.
    pub bind: Option<BindMode>,
    /// Address for `bind: "custom"`.
    pub custom_bind_host: Option<String>,
    /// Shared secrets.
    pub auth: GatewayAuth,
    /// Addresses and ranges (CIDR) of reverse proxies whose forwarded-for headers are believed.
    pub trusted_proxies: Vec<String>,
    /// Tailscale exposure.
    pub tailscale: Tailscale,
    /// The gateway that clients on this host use in remote mode.
    pub remote: GatewayRemote,
    /// Reaction to edits of the config file.
    pub reload: GatewayReload,
    /// HTTPS.
    pub tls: GatewayTls,
    /// Web UI.
    pub control_ui: ControlUi,
}

/// `gateway.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatewayMode {
    /// The gateway runs on this host.
    Local,
    /// Mode in which this host is a client of `gateway.remote`.
    Remote,
}

/// `gateway.bind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BindMode {
    /// Loopback if possible.
    Auto,
    /// All interfaces.
    Lan,
    /// 127.0.0.1 and ::1.
    #[default]
    Loopback,
    /// `gateway.customBindHost`.
    Custom,
    /// The Tailscale address.
    Tailnet,
}

impl BindMode {
    /// The word used in the config and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Lan => "lan",
            Self::Loopback => "loopback",
            Self::Custom => "custom",
            Self::Tailnet => "tailnet",
        }
    }

    /// Reads the word used in the config and on the command line.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Auto, Self::Lan, Self::Loopback, Self::Custom, Self::Tailnet]
            .into_iter()
            .find(|mode| mode.as_str() == text)
    }
}

/// `gateway.auth`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewayAuth {
    /// Kind of secret that counts: token or password.
    pub mode: Option<AuthKind>,
    /// Shared token.
    pub token: Option<Secret>,
    /// Shared password.
    pub password: Option<Secret>,
    /// True if a Tailscale identity header authenticates.
    pub allow_tailscale: Option<bool>,
}

/// `gateway.auth.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthKind {
    /// A shared token.
    Token,
    /// A password.
    Password,
}

impl AuthKind {
    /// The word used in the config and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Password => "password",
        }
    }
}

/// `gateway.tailscale`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tailscale {
    /// Exposure of the gateway.
    pub mode: TailscaleMode,
}

/// `gateway.tailscale.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TailscaleMode {
    /// Not exposed.
    #[default]
    Off,
    /// Exposed to the tailnet.
    Serve,
    /// Exposed to the internet.
    Funnel,
}

/// `gateway.remote`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewayRemote {
    /// `ws://` or `wss://` address.
    pub url: Option<String>,
    /// Token of the remote gateway.
    pub token: Option<Secret>,
    /// Password of the remote gateway.
    pub password: Option<Secret>,
    /// SHA-256 of its certificate.
    pub tls_fingerprint: Option<String>,
}

/// `gateway.reload`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewayReload {
    /// Effect of an edit.
    pub mode: Option<ReloadMode>,
    /// Quiet time before an edit is looked at, in milliseconds; see [`GatewayReload::debounce`].
    debounce_ms: Option<u64>,
}

impl GatewayReload {
    /// Time for which the files must stay unchanged before they are read.
    pub fn debounce(&self) -> Duration {
        const DEFAULT_MS: u64 = 300;
        Duration::from_millis(self.debounce_ms.unwrap_or(DEFAULT_MS))
    }
}

/// `gateway.reload.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReloadMode {
    /// Edits are ignored until the next start.
    Off,
    /// Every relevant edit restarts.
    Restart,
    /// Only what can be applied while running.
    Hot,
    /// Hot where possible, else restart.
    #[default]
    Hybrid,
}

/// `gateway.tls`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewayTls {
    /// Serve HTTPS and WSS instead of plain text.
    pub enabled: bool,
}

/// `gateway.controlUi`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ControlUi {
    /// Default true.
    pub enabled: Option<bool>,
    /// Path prefix it is served under.
    pub base_path: Option<String>,
    /// Directory to serve instead of the built-in assets.
    pub root: Option<String>,
    /// Origins of other web pages that may connect.
    pub allowed_origins: Vec<String>,
    /// Lets the web UI connect with a secret but without a device identity.
    pub allow_insecure_auth: bool,
    /// Lets the web UI connect without a device identity at all.
    pub dangerously_disable_device_auth: bool,
}

impl ControlUi {
    /// True if the web UI is served.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}
