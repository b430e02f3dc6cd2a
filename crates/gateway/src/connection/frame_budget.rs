//! Limits on the size of a client's messages, and on the memory of all large messages together
//! while they are read.
//!
//! The allowance of a client depends on what its role can have a use for. Below [`SMALL`] nobody
//! waits; a larger message waits until its bytes are free in the budget, and holds them from its
//! first byte until it is worked off. Clients that may write have a budget of their own, so that
//! nobody else keeps them waiting.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::access::{Access, Role};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;

/// Messages up to this size are read at once.
pub(crate) const SMALL: u32 = 128 * KIB;
/// Largest message of an operator: attachments and files (decision 13).
pub(crate) const LARGEST: u32 = 25 * MIB;
/// Largest frame in either direction.
pub(crate) const MAX_FRAME_BYTES: usize = LARGEST as usize;
/// Largest message of a node: the result of a command may hold a file of 10 MB as base64.
const OF_NODE: u32 = 16 * MIB;
/// Bytes of messages that are read at once from those who may write: one of the largest and some others. Read, a message
/// takes two to three times its size.
const FOR_WRITERS: u32 = 32 * MIB;
/// The same for all others together; what they send is mostly refused before it is read.
const FOR_OTHERS: u32 = LARGEST;

/// Time for any large message, and the slowest line it may come or go over.
const PATIENCE: Duration = Duration::from_secs(10);
const SLOWEST_BYTES_PER_SECOND: u64 = 64 * 1024;

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
    /// Allowance of a client with these rights.
    pub(crate) fn allowance(&self, role: Role, scopes: &[String]) -> Allowance {
        let budget = if may_write(role, scopes) { &self.writers } else { &self.others };
        Allowance { largest: largest(role), budget: Arc::clone(budget) }
    }
}

/// True if a client is one of those who may write.
pub(crate) fn may_write(role: Role, scopes: &[String]) -> bool {
    role == Role::Operator && Access::Write.is_granted_by(scopes)
}

/// Time for so many bytes over the slowest line that may hold memory others wait for.
pub(crate) fn patience(bytes: u32) -> Duration {
    PATIENCE + Duration::from_secs(u64::from(bytes) / SLOWEST_BYTES_PER_SECOND)
}

/// Bytes of the largest message that a client of this role may send: `policy.maxPayload` of its `hello-ok`.
pub(crate) fn largest(role: Role) -> u32 {
    match role {
        Role::Operator => LARGEST,
        Role::Node => OF_NODE,
    }
}

/// Allowance of one client.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    /// Bytes of its largest message.
    pub(crate) largest: u32,
    /// Shared budget from which large messages take their bytes.
    pub(crate) budget: Arc<Semaphore>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_protocol::access::{ADMIN, APPROVALS, READ, WRITE};

    #[test]
    fn nobody_without_the_right_to_write_keeps_those_who_have_it_waiting() {
        let rows: [(Role, &[&str], u32, bool); 6] = [
            (Role::Operator, &[ADMIN], LARGEST, true),
            (Role::Operator, &[READ, WRITE], LARGEST, true),
            (Role::Operator, &[READ, APPROVALS], LARGEST, false),
            (Role::Operator, &[], LARGEST, false),
            (Role::Node, &[], OF_NODE, false),
            (Role::Node, &[ADMIN], OF_NODE, false),
        ];
        for (role, scopes, most, is_writer) in rows {
            let budget = FrameBudget::default();
            let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            let allowance = budget.allowance(role, &scopes);
            assert_eq!(allowance.largest, most, "{role:?} {scopes:?}");
            assert_eq!(Arc::ptr_eq(&allowance.budget, &budget.writers), is_writer, "{role:?} {scopes:?}");
            assert!(allowance.budget.available_permits() >= most as usize, "its largest message fits");
        }
    }
}
