//! Facts about an authenticated connection; fixed at `hello-ok`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use openclaw_protocol::access::Role;
use openclaw_protocol::params::connect::ClientDescription;

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

/// An authenticated connection, as handlers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionInfo {
    /// Connection id.
    pub conn_id: ConnId,
    /// Operator or node.
    pub role: Role,
    /// Scopes in force, unknown ones included.
    pub scopes: Vec<String>,
    /// The client's own words about itself.
    pub client: ClientDescription,
    /// Capability labels, such as `tool-events`.
    pub caps: Vec<String>,
    /// Verified device id, when the client has a device identity.
    pub device_id: Option<String>,
    /// The client's address, when it is a remote one that can be trusted.
    pub remote_ip: Option<IpAddr>,
    /// True if the client runs on this host (spec `gateway-protocol.md` §3.8).
    pub is_local: bool,
    /// Unix milliseconds.
    pub connected_at_ms: i64,
}

impl ConnectionInfo {
    /// True if the client announced the capability.
    pub fn has_cap(&self, cap: &str) -> bool {
        self.caps.iter().any(|own| own == cap)
    }

    /// The names by which its presence row is found: device and instance, else the connection (spec `gateway-protocol.md` §8.1).
    pub fn presence_names(&self) -> Vec<&str> {
        let instance = self.client.instance_id.as_ref().map(|id| id.0.as_str());
        let lasting: Vec<&str> = [self.device_id.as_deref(), instance].into_iter().flatten().collect();
        if lasting.is_empty() { vec![self.conn_id.as_str()] } else { lasting }
    }

    /// True if the connection's presence row outlives it (KB-41).
    pub fn is_lasting(&self) -> bool {
        self.device_id.is_some() || self.client.instance_id.is_some()
    }
}
