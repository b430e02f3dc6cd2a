//! Tasks that look after sub-agents.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that look after the sub-agents of a gateway.
#[derive(Debug, Default)]
pub(crate) struct ChildTasks {
    tasks: TaskTracker,
    /// Cancelled when no more changes come; the rest is written then.
    pub(crate) closing: CancellationToken,
}

impl ChildTasks {
    /// Begins work that ends by itself.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Begins work that ends with the gateway, wherever it is: the next start does it again.
    pub(crate) fn spawn_until(
        &self,
        stopping: CancellationToken,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.spawn(async move {
            tokio::select! { biased;
                () = stopping.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Waits until the rest of the changes is written.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
