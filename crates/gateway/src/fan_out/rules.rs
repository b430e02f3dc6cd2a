//! Event rules: the connections that get each event (spec `gateway-protocol.md` §7.2, KB-9). The
//! events themselves are the protocol's table.

use openclaw_protocol::access::Role;
use openclaw_protocol::event;

use crate::connection::ConnectionInfo;

/// Events for nodes. Runs of sessions they subscribed to reach them otherwise.
const FOR_NODES: &[&str] = &[
    "connect.challenge",
    "tick",
    "health",
    "shutdown",
    "voicewake.changed",
    "talk.mode",
    "node.invoke.request",
];

/// True if a connection gets an event.
pub(super) fn admits(connection: &ConnectionInfo, name: &str) -> bool {
    match connection.role {
        Role::Node => FOR_NODES.contains(&name),
        Role::Operator => event::find(name).is_none_or(|kind| kind.visible_to(&connection.scopes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::connection;
    use openclaw_protocol::access::{ADMIN, APPROVALS, PAIRING, READ};

    /// The table of §16.2, with nodes as KB-9 wants them, and conversations only for those who may read (decision 46).
    #[test]
    fn events_reach_those_who_may_know() {
        let clients = [
            ("A", connection(Role::Operator, &[ADMIN])),
            ("P", connection(Role::Operator, &[PAIRING])),
            ("X", connection(Role::Operator, &[APPROVALS])),
            ("R", connection(Role::Operator, &[READ])),
            ("N", connection(Role::Node, &[])),
        ];
        let rows = [
            ("exec.approval.requested", "AX"),
            ("exec.approval.resolved", "AX"),
            ("device.pair.requested", "AP"),
            ("node.pair.resolved", "AP"),
            ("chat", "AR"),
            ("agent", "AR"),
            ("presence", "APXR"),
            ("tick", "APXRN"),
            ("health", "APXRN"),
            ("shutdown", "APXRN"),
        ];
        for (name, expect) in rows {
            let got: String =
                clients.iter().filter(|(_, info)| admits(info, name)).map(|(label, _)| *label).collect();
            assert_eq!(got, expect, "{name}");
        }
    }
}
