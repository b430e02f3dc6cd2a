//! Gives memory that is free back to the operating system now and then: threads hand values to each other, and the heap of
//! each would keep what the others have freed.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Between two looks at how much was done.
const PERIOD: Duration = Duration::from_secs(10);
/// Work after which it is worth while: about a hundred turns. A gateway that rests does less in hours. The start itself is such work: what
/// reads the configuration and the certificates leaves more behind than all that rests.
const WORK: Duration = Duration::from_millis(50);

/// Works until the gateway stops.
pub(crate) async fn run(stopping: CancellationToken) {
    let mut trimmed_at: Option<Duration> = None;
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = sleep(PERIOD) => {}
        }
        let worked = work_done(&Handle::current());
        if trimmed_at.is_some_and(|at| worked.saturating_sub(at) < WORK) {
            continue;
        }
        trimmed_at = Some(worked);
        if let Err(error) = tokio::task::spawn_blocking(openclaw_heap::trim).await {
            tracing::warn!(%error, "free memory could not be given back");
        }
    }
}

/// How long the threads that run tasks were busy since the start.
fn work_done(runtime: &Handle) -> Duration {
    let metrics = runtime.metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).sum()
}
