//! Access rules: the roles and scopes that each method needs (spec `gateway-protocol.md` §4).
//! Decided before params are looked at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ErrorShape;

/// What a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person's client.
    Operator,
    /// A device that offers commands.
    Node,
}

impl Role {
    /// Reads a role; anything else is the handshake's `invalid role`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "operator" => Some(Self::Operator),
            "node" => Some(Self::Node),
            _ => None,
        }
    }

    /// The role as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Node => "node",
        }
    }
}

/// Scope that allows everything an operator may do.
pub const ADMIN: &str = "operator.admin";
/// Scope for reading.
pub const READ: &str = "operator.read";
/// Scope for reading and talking to agents.
pub const WRITE: &str = "operator.write";
/// Scope for deciding on exec approvals.
pub const APPROVALS: &str = "operator.approvals";
/// Scope for pairing devices and nodes.
pub const PAIRING: &str = "operator.pairing";

/// The least a caller, or a listener to an event, needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// `operator.read` or `operator.write`.
    Read,
    /// `operator.write`.
    Write,
    /// `operator.admin`.
    Admin,
    /// `operator.pairing`.
    Pairing,
    /// `operator.approvals`.
    Approvals,
    /// The node role.
    Node,
}

impl Access {
    /// True if an operator with these scopes has this access. Admin includes everything an operator
    /// can have, write includes read.
    pub fn is_granted_by<S: AsRef<str>>(self, scopes: &[S]) -> bool {
        let has = |scope: &str| scopes.iter().any(|given| given.as_ref() == scope);
        let granted = match self {
            Self::Read => has(READ) || has(WRITE),
            Self::Write => has(WRITE),
            Self::Pairing => has(PAIRING),
            Self::Approvals => has(APPROVALS),
            Self::Node => return false,
            Self::Admin => false,
        };
        granted || has(ADMIN)
    }

    /// The scope that a refusal names.
    fn scope(self) -> &'static str {
        match self {
            Self::Read => READ,
            Self::Write => WRITE,
            Self::Pairing => PAIRING,
            Self::Approvals => APPROVALS,
            Self::Admin | Self::Node => ADMIN,
        }
    }
}

/// Decides whether a connection may call a method that needs `access` ([`crate::method::access`]).
///
/// # Errors
/// `unauthorized role: <role>` or `missing scope: <scope>`.
pub fn authorize<S: AsRef<str>>(role: Role, scopes: &[S], access: Access) -> Result<(), ErrorShape> {
    match (role, access) {
        (Role::Node, Access::Node) => return Ok(()),
        (Role::Node, _) | (Role::Operator, Access::Node) => {
            return Err(ErrorShape::invalid(format!("unauthorized role: {}", role.as_str())));
        }
        (Role::Operator, _) => {}
    }
    if access.is_granted_by(scopes) {
        return Ok(());
    }
    Err(ErrorShape::invalid(format!("missing scope: {}", access.scope())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method;
    use std::collections::HashMap;

    fn decide(role: Role, scopes: &[&str], method: &str) -> String {
        authorize(role, scopes, method::access(method)).map_or_else(|e| e.message, |()| "ok".to_owned())
    }

    #[test]
    fn methods_are_allowed_by_role_then_by_scope() {
        let rows: [(Role, &[&str], &str, &str); 14] = [
            (Role::Operator, &[], "health", "missing scope: operator.read"),
            (Role::Operator, &[READ], "health", "ok"),
            (Role::Operator, &[WRITE], "health", "ok"),
            (Role::Operator, &[READ], "chat.send", "missing scope: operator.write"),
            (Role::Operator, &[WRITE], "config.get", "missing scope: operator.admin"),
            (Role::Operator, &[ADMIN], "config.get", "ok"),
            (Role::Operator, &[WRITE], "no.such.method", "missing scope: operator.admin"),
            (Role::Operator, &[ADMIN], "no.such.method", "ok"),
            (Role::Operator, &[ADMIN], "skills.bins", "unauthorized role: operator"),
            (Role::Operator, &[PAIRING], "device.pair.list", "ok"),
            (Role::Operator, &[APPROVALS], "exec.approval.resolve", "ok"),
            (Role::Operator, &["operator.novel"], "status", "missing scope: operator.read"),
            (Role::Node, &[ADMIN], "health", "unauthorized role: node"),
            (Role::Node, &[], "node.event", "ok"),
        ];
        for (role, scopes, method, expect) in rows {
            assert_eq!(decide(role, scopes, method), expect, "{role:?} {scopes:?} {method}");
        }
    }

    /// Every refusal of `gw-roles-scopes` is refused with the same text, and everything else it shows is let through.
    #[test]
    fn the_recorded_matrix_is_reproduced() {
        let golden = include_str!("../../../tests/golden/gw-roles-scopes.jsonl");
        let mut scopes: HashMap<String, Vec<String>> = HashMap::new();
        let mut asked: HashMap<(String, String), String> = HashMap::new();
        let mut seen = 0;
        for line in golden.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let frame = &line["frame"];
            let conn = line["conn"].as_str().unwrap_or_default().to_owned();
            let id = frame["id"].as_str().unwrap_or_default().to_owned();
            if line["dir"] == "out" && frame["method"] == "connect" {
                let list = serde_json::from_value(frame["params"]["scopes"].clone()).unwrap_or_default();
                scopes.insert(conn, list);
            } else if line["dir"] == "out" {
                asked.insert((conn, id), frame["method"].as_str().unwrap_or_default().to_owned());
            } else if let Some(method) = asked.remove(&(conn.clone(), id)) {
                let recorded = frame["error"]["message"].as_str().unwrap_or("ok");
                let refused =
                    recorded.starts_with("missing scope") || recorded.starts_with("unauthorized role");
                let list: Vec<&str> = scopes[&conn].iter().map(String::as_str).collect();
                let ours = decide(Role::Operator, &list, &method);
                assert_eq!(ours, if refused { recorded } else { "ok" }, "{conn} {method}");
                seen += 1;
            }
        }
        assert_eq!(seen, 50, "every answered request of the file");
    }
}
