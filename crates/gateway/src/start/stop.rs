//! Ending a gateway: stop taking, let runs finish, close sockets, flush (spec `gateway-protocol.md` §11, KB-39).

use std::time::Duration;

use openclaw_protocol::Payload;
use openclaw_protocol::event::Shutdown;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::parts::GatewayParts;
use crate::events::GatewayEvent;
use crate::handshake::close::Closing;

/// All of it takes no longer: a supervisor waits for us.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Time that runs have to end by themselves, as a part of the stop.
const DRAIN: Duration = Duration::from_secs(3);
/// Time that sockets have to be closed, as a part of the stop.
const CLOSE: Duration = Duration::from_secs(1);

/// Time that runs have to end by themselves before a requested restart (decision 27).
const RESTART_DRAIN: Duration = Duration::from_secs(300);
/// Time in milliseconds after which clients may expect it back.
const BACK_IN: u64 = 1_500;

/// Reason why a gateway ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShutdownReason {
    Stop,
    /// The gateway starts again at once.
    Restart,
}

impl ShutdownReason {
    /// Reason as clients and hooks are told.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Stop => "gateway stopping",
            Self::Restart => "gateway restarting",
        }
    }

    /// Close frame for clients.
    fn closing(self) -> Closing {
        match self {
            Self::Stop => Closing::stopping(),
            Self::Restart => Closing::restarting(),
        }
    }
}

/// Deadline for runs before a restart, counted from now.
pub(super) fn restart_deadline() -> Instant {
    Instant::now() + RESTART_DRAIN
}

/// Lets runs end before a restart, until `deadline`. Meanwhile the gateway serves on: messages are
/// taken, whose runs begin after the restart, and runs can be stopped (spec `operations.md` §2.2).
pub(super) async fn drain(parts: &GatewayParts, deadline: Instant) {
    parts.dispatch.hold_runs();
    parts.health.outdate();
    let runs = parts.dispatch.runs_under_way();
    if runs == 0 {
        return;
    }
    let at_most = deadline.duration_since(Instant::now()).as_secs_f64().round();
    tracing::info!(
        runs,
        "the restart waits for {runs} {} to end, {at_most} s at most; messages are taken, and answered after it",
        if runs == 1 { "run" } else { "runs" },
    );
    if timeout_at(deadline, parts.dispatch.runs_ended()).await.is_ok() {
        tracing::info!("runs have ended; restarting now");
    } else {
        let runs = parts.dispatch.runs_under_way();
        tracing::warn!(runs, "the restart waits no longer; what still runs goes on after it");
    }
}

/// Stops everything in order. Logs the work that did not finish. Before a restart, work has until
/// `deadline`, if that is later, or until there is `hurry`.
pub(super) async fn stop(
    parts: &GatewayParts,
    why: ShutdownReason,
    deadline: Instant,
    hurry: &CancellationToken,
) {
    parts.stopping.cancel();
    // Clients that hear of the stop find nothing accepted after it.
    parts.dispatch.stop_accepting();
    let restart_expected_ms = (why == ShutdownReason::Restart).then_some(BACK_IN);
    let notice = Shutdown { reason: why.reason().to_owned(), restart_expected_ms };
    if let Ok(payload) = Payload::of(&notice) {
        parts.events.publish(GatewayEvent::named("shutdown", payload));
    }
    let drain = match why {
        ShutdownReason::Stop => DRAIN,
        ShutdownReason::Restart => deadline.duration_since(Instant::now()).max(DRAIN),
    };
    let unfinished = tokio::select! { biased;
        unfinished = parts.dispatch.shutdown(drain) => unfinished,
        () = hurry.cancelled() => parts.dispatch.shutdown(DRAIN).await,
    };
    if !unfinished.is_empty() {
        tracing::warn!(count = unfinished.len(), "runs did not finish and go on after the next start");
    }
    parts.dispatch.end_hooks().await;
    parts.events.close_all(&why.closing());
    parts.tasks.close();
    if timeout(CLOSE, parts.tasks.wait()).await.is_err() {
        tracing::warn!(count = parts.tasks.len(), "connections and requests did not end in time");
    }
    if timeout(CLOSE, parts.memories.close()).await.is_err() {
        tracing::warn!("the memory index was not closed in time; the next start looks at it");
    }
    if timeout(CLOSE, parts.models.settle()).await.is_err() {
        tracing::warn!("how credentials did, or models.json, could not be written in time");
    }
    if let Err(error) = parts.sessions.close().await {
        tracing::error!(%error, "the session store was not closed properly");
    }
    tracing::info!("stopped");
}
