//! The outboxes of a dispatcher: one a kind of delivery, made when it is first asked for.

use std::any::Any;
use std::collections::HashMap;

use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use super::{DeliveryPayload, Outbox};

/// Leaf data: nothing is awaited under its lock.
#[derive(Default)]
pub(crate) struct Outboxes {
    by_kind: Mutex<HashMap<&'static str, Box<dyn Any + Send + Sync>>>,
    /// Their supervisors.
    pub(crate) tasks: TaskTracker,
}

/// Two types of payloads have the same [`DeliveryPayload::KIND`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("deliveries of kind \"{0}\" are of another type already")]
pub struct KindInUse(pub &'static str);

impl Outboxes {
    /// The one of a kind.
    pub(crate) fn of<P: DeliveryPayload>(
        &self,
        make: impl FnOnce() -> Outbox<P>,
    ) -> Result<Outbox<P>, KindInUse> {
        let mut by_kind = self.by_kind.lock();
        let known = by_kind.entry(P::KIND).or_insert_with(|| Box::new(make()));
        known.downcast_ref::<Outbox<P>>().cloned().ok_or(KindInUse(P::KIND))
    }
}
