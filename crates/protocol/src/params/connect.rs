//! `connect` and `hello-ok` (spec `gateway-protocol.md` §3.2, §3.4).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;
use super::health::HealthSnapshot;
use super::system::PresenceEntry;
use crate::access::Role;
use crate::frame::StateVersion;

super::calls! {
    /// The first request of every connection.
    Connect: "connect" as Strict, ConnectParams => HelloOk;
}

/// Params of `connect`; strict at every level.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectParams {
    /// Oldest protocol the client speaks.
    #[schemars(range(min = 1))]
    pub min_protocol: u64,
    /// Newest protocol the client speaks.
    #[schemars(range(min = 1))]
    pub max_protocol: u64,
    /// Who is calling.
    pub client: ClientDescription,
    /// Capability labels; `tool-events` asks for the tool events of runs this connection starts, `tool-activity` for those
    /// of all runs, whatever their verbose level.
    pub caps: Option<Vec<NonEmpty>>,
    /// Commands a node can execute.
    pub commands: Option<Vec<NonEmpty>>,
    /// A node's permissions in its operating system.
    pub permissions: Option<BTreeMap<String, bool>>,
    /// A node's `PATH`.
    pub path_env: Option<String>,
    /// `operator` (default) or `node`; anything else is refused as `invalid role` after the schema check.
    pub role: Option<NonEmpty>,
    /// Scopes asked for.
    pub scopes: Option<Vec<NonEmpty>>,
    /// Device identity with proof.
    pub device: Option<DeviceProof>,
    /// Shared secret or device token.
    pub auth: Option<ConnectAuth>,
    /// Informational.
    pub locale: Option<String>,
    /// Informational.
    pub user_agent: Option<String>,
}

impl ConnectParams {
    /// The capability that asks for the tool events of the runs a client starts.
    pub const TOOL_EVENTS: &'static str = "tool-events";

    /// The capability that asks for the tool events of every run, also where the session's verbose level hides them:
    /// names and arguments, results only as far as the level goes. Ours.
    pub const TOOL_ACTIVITY: &'static str = "tool-activity";

    /// True if a capability was announced.
    pub fn has_cap(&self, cap: &str) -> bool {
        self.caps.iter().flatten().any(|given| given.0 == cap)
    }

    /// True if a node says what it can do or may do.
    pub fn declares_anything(&self) -> bool {
        let has_any =
            |labels: &Option<Vec<NonEmpty>>| labels.as_ref().is_some_and(|labels| !labels.is_empty());
        has_any(&self.caps)
            || has_any(&self.commands)
            || self.permissions.as_ref().is_some_and(|permissions| !permissions.is_empty())
    }

    /// The scopes as sent; what the device signature covers.
    pub fn scope_list(&self) -> Vec<String> {
        self.scopes.iter().flatten().map(|scope| scope.0.clone()).collect()
    }
}

/// `connect.client`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientDescription {
    /// Which client.
    pub id: ClientId,
    /// For people.
    pub display_name: Option<NonEmpty>,
    /// The client's own version.
    pub version: NonEmpty,
    /// Such as `linux` or `ios 26.0`.
    pub platform: NonEmpty,
    /// Such as `iPhone`.
    pub device_family: Option<NonEmpty>,
    /// Such as `iPhone18,1`.
    pub model_identifier: Option<NonEmpty>,
    /// What it is used for.
    pub mode: ClientMode,
    /// Stable id for presence.
    pub instance_id: Option<NonEmpty>,
}

/// The clients the protocol knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientId {
    /// Web chat inside an app.
    WebchatUi,
    /// The Control UI in a browser.
    #[serde(rename = "openclaw-control-ui")]
    ControlUi,
    /// Web chat.
    Webchat,
    /// The command line.
    Cli,
    /// A program of the gateway's own.
    GatewayClient,
    /// The macOS app.
    #[serde(rename = "openclaw-macos")]
    Macos,
    /// The iOS app.
    #[serde(rename = "openclaw-ios")]
    Ios,
    /// The Android app.
    #[serde(rename = "openclaw-android")]
    Android,
    /// A headless node.
    NodeHost,
    /// A test.
    Test,
    /// Looks who is there.
    Fingerprint,
    /// Looks whether somebody is there.
    #[serde(rename = "openclaw-probe")]
    Probe,
}

impl ClientId {
    /// The id as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebchatUi => "webchat-ui",
            Self::ControlUi => "openclaw-control-ui",
            Self::Webchat => "webchat",
            Self::Cli => "cli",
            Self::GatewayClient => "gateway-client",
            Self::Macos => "openclaw-macos",
            Self::Ios => "openclaw-ios",
            Self::Android => "openclaw-android",
            Self::NodeHost => "node-host",
            Self::Test => "test",
            Self::Fingerprint => "fingerprint",
            Self::Probe => "openclaw-probe",
        }
    }
}

/// What a client is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientMode {
    /// Chat in a browser.
    Webchat,
    /// One command.
    Cli,
    /// A user interface.
    Ui,
    /// A program.
    Backend,
    /// A node.
    Node,
    /// Looks whether somebody is there.
    Probe,
    /// A test.
    Test,
}

impl ClientMode {
    /// The mode as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webchat => "webchat",
            Self::Cli => "cli",
            Self::Ui => "ui",
            Self::Backend => "backend",
            Self::Node => "node",
            Self::Probe => "probe",
            Self::Test => "test",
        }
    }
}

/// `connect.device`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceProof {
    /// Lower-case hex SHA-256 of the raw public key.
    pub id: NonEmpty,
    /// base64url of the raw key, or PEM.
    pub public_key: NonEmpty,
    /// base64url Ed25519 over [`crate::device::signing_payload`].
    pub signature: NonEmpty,
    /// Unix milliseconds.
    pub signed_at: u64,
    /// The challenge's nonce; makes the signature one of version 2.
    pub nonce: Option<NonEmpty>,
}

/// `connect.auth`
#[skip_serializing_none]
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectAuth {
    /// Shared token or device token.
    pub token: Option<String>,
    /// Shared password.
    pub password: Option<String>,
}

impl std::fmt::Debug for ConnectAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |secret: &Option<String>| secret.as_ref().map(|_| "[redacted]");
        f.debug_struct("ConnectAuth")
            .field("token", &shown(&self.token))
            .field("password", &shown(&self.password))
            .finish()
    }
}

/// Payload of the answer to a good `connect`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelloOk {
    /// Always `hello-ok`.
    #[serde(rename = "type")]
    pub kind: HelloKind,
    /// The protocol spoken from here on.
    pub protocol: u32,
    /// The gateway.
    pub server: HelloServer,
    /// What it can do.
    pub features: Features,
    /// How things stand.
    pub snapshot: Snapshot,
    /// Where canvas pages are, when there is a canvas host.
    pub canvas_host_url: Option<String>,
    /// Present when the device is paired.
    pub auth: Option<HelloAuth>,
    /// Limits.
    pub policy: Policy,
}

/// The `type` of [`HelloOk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum HelloKind {
    /// The only value.
    #[default]
    #[serde(rename = "hello-ok")]
    HelloOk,
}

/// `hello-ok.server`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelloServer {
    /// Version of the gateway.
    pub version: String,
    /// Commit it was built from.
    pub commit: Option<String>,
    /// Host name.
    pub host: String,
    /// Id of this connection.
    pub conn_id: String,
}

/// `hello-ok.features`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Features {
    /// Methods, in the order clients know.
    pub methods: Vec<String>,
    /// Events.
    pub events: Vec<String>,
}

/// `hello-ok.snapshot`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Who is here.
    pub presence: Vec<PresenceEntry>,
    /// The last health snapshot; `{}` before the first.
    pub health: MaybeHealth,
    /// Versions of the two above.
    pub state_version: StateVersion,
    /// Milliseconds since the gateway started.
    pub uptime_ms: u64,
    /// The config file.
    pub config_path: String,
    /// The state directory.
    pub state_dir: String,
    /// What session keys mean here.
    pub session_defaults: SessionDefaults,
}

/// A health snapshot, or `{}` when there is none yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MaybeHealth {
    /// There is one.
    Known(Box<HealthSnapshot>),
    /// A kernel that does not exist here.
    Unknown {},
}

/// `hello-ok.snapshot.sessionDefaults`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDefaults {
    /// The default agent.
    pub default_agent_id: String,
    /// The configured name of the main session.
    pub main_key: String,
    /// Its canonical key.
    pub main_session_key: String,
    /// `per-sender` or `global`.
    pub scope: String,
}

/// `hello-ok.auth`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelloAuth {
    /// Token of this device for later connects.
    pub device_token: String,
    /// Role it is for.
    pub role: Role,
    /// Scopes it is for.
    pub scopes: Vec<String>,
    /// Unix milliseconds.
    pub issued_at_ms: i64,
}

/// `hello-ok.policy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Largest inbound frame in bytes.
    pub max_payload: u64,
    /// Bytes a slow client may leave unread.
    pub max_buffered_bytes: u64,
    /// Milliseconds between `tick`s.
    pub tick_interval_ms: u64,
}
