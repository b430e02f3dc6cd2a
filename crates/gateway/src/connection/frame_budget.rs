//! How large a client's messages may be, and how much memory all large ones together may take while they are read.
//!
//! A client gets what its role can have a use for. Below [`SMALL`] nobody waits; a larger message waits until its bytes
//! are free in the budget, and holds them from its first byte until it is worked off. Those who may write have a budget of
//! their own, so that nobody else keeps them waiting.

use std::sync::Arc;

use openclaw_protocol::access::{Access, Role};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;

/// Messages up to this size are read at once.
pub(crate) const SMALL: u32 = 128 * KIB;
/// Largest message of an operator who may write: attachments and files (decision 13).
pub(crate) const LARGEST: u32 = 25 * MIB;
/// Largest message of a node: the result of a command may hold a file of 10 MB as base64.
const OF_NODE: u32 = 16 * MIB;
/// Largest message of an operator who may only read, decide or pair: the limit of OpenClaw 2026.2.9.
const OF_READER: u32 = 512 * KIB;
/// Bytes of messages that are read at once from those who may write. Read, a message takes two to three times its size.
const FOR_WRITERS: u32 = 32 * MIB;
/// The same for all others together.
const FOR_OTHERS: u32 = 16 * MIB;

/// Bytes that a message holds; dropping it gives them back.
pub(crate) type FrameBytes = OwnedSemaphorePermit;

/// The bytes that large messages may take.
#[derive(Debug)]
pub(crate) struct FrameBudget {
    writers: Arc<Semaphore>,
    others: Arc<Semaphore>,
}

impl Default for FrameBudget {
    fn default() -> Self {
        let bytes = |count: u32| Arc::new(Semaphore::new(count as usize));
        Self { writers: bytes(FOR_WRITERS), others: bytes(FOR_OTHERS) }
    }
}

impl FrameBudget {
    /// What a client with these rights may send.
    pub(crate) fn allowance(&self, role: Role, scopes: &[String]) -> Allowance {
        let largest = largest(role, scopes);
        let budget = if largest == LARGEST { &self.writers } else { &self.others };
        Allowance { largest, budget: Arc::clone(budget) }
    }
}

/// Bytes of the largest message that a client with these rights may send: `policy.maxPayload` of its `hello-ok`.
pub(crate) fn largest(role: Role, scopes: &[String]) -> u32 {
    match role {
        Role::Node => OF_NODE,
        Role::Operator if Access::Write.is_granted_by(scopes) => LARGEST,
        Role::Operator => OF_READER,
    }
}

/// What one client may send.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    /// Bytes of its largest message.
    pub(super) largest: u32,
    /// Where large messages take their bytes from.
    pub(super) budget: Arc<Semaphore>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_protocol::access::{ADMIN, APPROVALS, PAIRING, READ, WRITE};

    #[test]
    fn a_client_may_send_what_its_role_has_a_use_for() {
        let rows: [(Role, &[&str], u32); 7] = [
            (Role::Operator, &[ADMIN], LARGEST),
            (Role::Operator, &[READ, WRITE], LARGEST),
            (Role::Operator, &[READ], OF_READER),
            (Role::Operator, &[APPROVALS, PAIRING], OF_READER),
            (Role::Operator, &[], OF_READER),
            (Role::Node, &[], OF_NODE),
            (Role::Node, &[ADMIN], OF_NODE),
        ];
        for (role, scopes, expect) in rows {
            let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            let allowance = FrameBudget::default().allowance(role, &scopes);
            assert_eq!(allowance.largest, expect, "{role:?} {scopes:?}");
            assert!(allowance.budget.available_permits() >= expect as usize, "its largest message fits");
        }
    }
}
