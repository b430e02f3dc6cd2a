//! What is known about an authenticated connection; fixed at `hello-ok`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Identifies a connection: the `server.connId` of its `hello-ok`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnId(Arc<str>);

impl ConnId {
    /// A fresh random id.
    pub fn random() -> Self {
        Self(Arc::from(uuid::Uuid::new_v4().to_string()))
    }

    /// The id as it goes on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a client said about itself in `connect.client`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// `cli`, `openclaw-control-ui`, `openclaw-ios`, …
    pub id: String,
    /// `cli`, `webchat`, `ui`, `backend`, `node`, `probe` or `test`.
    pub mode: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// The client's version.
    pub version: String,
    /// Such as `linux` or `ios 26.0`.
    pub platform: String,
    /// Such as `iPhone`.
    pub device_family: Option<String>,
    /// Such as `iPhone18,1`.
    pub model_identifier: Option<String>,
    /// Stable presence id.
    pub instance_id: Option<String>,
}

impl ClientInfo {
    /// Whether this is a browser page: the Control UI or a WebChat client (spec `gateway-protocol.md` §3.3 step 8).
    pub fn is_browser(&self) -> bool {
        self.is_control_ui() || self.is_webchat()
    }

    /// Whether this is the Control UI.
    pub fn is_control_ui(&self) -> bool {
        self.id == "openclaw-control-ui"
    }

    /// Whether this is a WebChat client.
    pub fn is_webchat(&self) -> bool {
        self.mode == "webchat" || self.id == "webchat-ui"
    }

    /// Whether this is a command-line client; those don't show up in presence.
    pub fn is_cli(&self) -> bool {
        self.mode == "cli"
    }
}

/// Who a connection acts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnRole {
    /// A person's client or a script.
    Operator,
    /// A phone, desktop or headless host that executes commands.
    Node,
}

impl ConnRole {
    /// The role's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Node => "node",
        }
    }

    /// Reads the name; `None` for any other.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "operator" => Some(Self::Operator),
            "node" => Some(Self::Node),
            _ => None,
        }
    }
}

/// The scope that allows everything.
pub const SCOPE_ADMIN: &str = "operator.admin";

/// An authenticated connection, as handlers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Its id.
    pub conn_id: ConnId,
    /// Operator or node.
    pub role: ConnRole,
    /// Scopes in force, unknown ones included.
    pub scopes: Vec<String>,
    /// The client's own words about itself.
    pub client: ClientInfo,
    /// Capability labels, such as `tool-events`.
    pub caps: Vec<String>,
    /// Verified device id, when the client has a device identity.
    pub device_id: Option<String>,
    /// The client's address, when it is a remote one that can be trusted.
    pub remote_ip: Option<IpAddr>,
    /// Whether the client runs on this host (spec `gateway-protocol.md` §3.8).
    pub is_local: bool,
    /// Unix milliseconds.
    pub connected_at_ms: i64,
}

impl ConnectionInfo {
    /// Whether the scope, or admin, is in force.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| own == SCOPE_ADMIN || own == scope)
    }

    /// Whether the client announced the capability.
    pub fn has_cap(&self, cap: &str) -> bool {
        self.caps.iter().any(|own| own == cap)
    }

    /// Key of its presence row: device, else instance, else the connection (spec `gateway-protocol.md` §8.1).
    pub fn presence_key(&self) -> &str {
        let instance = self.client.instance_id.as_deref();
        self.device_id.as_deref().or(instance).unwrap_or(self.conn_id.as_str())
    }

    /// Whether its presence row outlives the connection (KB-41).
    pub fn is_lasting(&self) -> bool {
        self.device_id.is_some() || self.client.instance_id.is_some()
    }
}
