//! Work that nobody waits for, and its owner.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;

/// Owns tasks; they end with it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Background {
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Background {
    /// Begins a task. Must be called inside of a runtime.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Waits until everything begun so far has ended.
    pub(crate) async fn settle(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }
}
