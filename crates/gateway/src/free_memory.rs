//! Gives memory that is free back to the operating system now and then: threads hand values to each other, and the heap of
//! each would keep what the others have freed.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The pause between two looks at how much was done, while something is.
const PERIOD: Duration = Duration::from_secs(10);
/// The longest pause, after long rest: a gateway at rest is hardly ever woken.
const AT_REST: Duration = Duration::from_secs(120);
/// Work after which it is worth while: about a hundred turns. A gateway that rests does less in
/// hours. The start itself is such work: reading the configuration and the certificates leaves more
/// memory behind than idle work.
const WORK: Duration = Duration::from_millis(50);

/// Works until the gateway stops.
pub(crate) async fn run(stopping: CancellationToken) {
    let mut trimmed_at: Option<Duration> = None;
    let mut pause = PERIOD;
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = sleep(pause) => {}
        }
        let worked = work_done(&Handle::current());
        if trimmed_at.is_some_and(|at| worked.saturating_sub(at) < WORK) {
            pause = AT_REST.min(pause * 2);
            continue;
        }
        pause = PERIOD;
        trimmed_at = Some(worked);
        if let Err(error) = tokio::task::spawn_blocking(openclaw_heap::trim).await {
            tracing::warn!(%error, "free memory could not be given back");
        }
    }
}

/// Total time for which the runtime's worker threads were busy since the start.
fn work_done(runtime: &Handle) -> Duration {
    let metrics = runtime.metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).sum()
}
