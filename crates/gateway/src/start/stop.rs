//! Ending a gateway: stop taking, let runs finish, close sockets, flush (spec `gateway-protocol.md` §11, KB-39).

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::Payload;
use openclaw_protocol::event::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::events::Event;
use crate::handshake::close::Closing;
use crate::state::GatewayState;

/// All of it takes no longer: a supervisor waits for us.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Of which runs have this long to end by themselves.
const DRAIN: Duration = Duration::from_secs(3);
/// And sockets this long to be closed.
const CLOSE: Duration = Duration::from_secs(1);

/// How long runs have to end by themselves before a restart that was asked for (decision 27).
const RESTART_DRAIN: Duration = Duration::from_secs(300);
/// When clients may expect it back, in milliseconds.
const BACK_IN: u64 = 1_500;

/// Why a gateway ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Stop,
    /// It starts again at once.
    Restart,
}

impl Why {
    /// As clients and hooks are told.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Stop => "gateway stopping",
            Self::Restart => "gateway restarting",
        }
    }
}

/// The signals a gateway listens to.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    user: Signal,
}

/// What a signal asks for.
enum Asked {
    Stop(&'static str),
    Restart,
}

impl Signals {
    /// Listens from now on; before, the system's own way ends the process.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop("SIGTERM"),
            _ = self.interrupt.recv() => Asked::Stop("SIGINT"),
            _ = self.user.recv() => Asked::Restart,
        }
    }

    /// Waits until the gateway is to stop, or to start again where it may.
    pub(super) async fn stop_asked(&mut self, may_restart: impl Fn() -> bool) -> Why {
        loop {
            match self.next().await {
                Asked::Stop(name) => {
                    tracing::info!("signal {name} received");
                    tracing::info!("received {name}; shutting down");
                    return Why::Stop;
                }
                Asked::Restart if may_restart() => {
                    tracing::info!("received SIGUSR1; restarting");
                    return Why::Restart;
                }
                Asked::Restart => tracing::warn!(
                    "SIGUSR1 restart ignored (not authorized; enable commands.restart or use gateway tool)."
                ),
            }
        }
    }

    /// Waits for a signal to stop, while the gateway is about to start again.
    pub(super) async fn terminated(&mut self) {
        while let Asked::Restart = self.next().await {}
        tracing::info!("told to stop during a restart; shutting down");
    }

    /// Tells of further signals while the gateway stops.
    pub(super) async fn ignored(&mut self) {
        loop {
            if let Asked::Stop(name) = self.next().await {
                tracing::info!("received {name} during shutdown; ignoring");
            }
        }
    }
}

/// How long runs have before a restart, from now on.
pub(super) fn restart_deadline() -> Instant {
    Instant::now() + RESTART_DRAIN
}

/// Before a restart: lets runs end, until `deadline`. Meanwhile the gateway serves on: messages are taken, whose runs begin after the restart, and runs
/// can be stopped (spec `operations.md` §2.2).
pub(super) async fn drain(state: &GatewayState, deadline: Instant) {
    state.dispatch.hold_runs();
    state.outdate_health();
    let runs = state.dispatch.runs_under_way();
    if runs == 0 {
        return;
    }
    let at_most = deadline.duration_since(Instant::now()).as_secs_f64().round();
    tracing::info!(
        runs,
        "the restart waits for {runs} {} to end, {at_most} s at most; messages are taken, and answered after it",
        if runs == 1 { "run" } else { "runs" },
    );
    if timeout_at(deadline, state.dispatch.runs_ended()).await.is_ok() {
        tracing::info!("runs have ended; restarting now");
    } else {
        let runs = state.dispatch.runs_under_way();
        tracing::warn!(runs, "the restart waits no longer; what still runs goes on after it");
    }
}

/// Stops everything in order. Names what did not finish. Before a restart, what is under way has until `deadline`, if that is later, or until there is
/// `hurry`.
pub(super) async fn stop(state: &Arc<GatewayState>, why: Why, deadline: Instant, hurry: &CancellationToken) {
    state.stopping.cancel();
    // Who hears of the stop finds nothing accepted behind it.
    state.dispatch.stop_accepting();
    let restart_expected_ms = (why == Why::Restart).then_some(BACK_IN);
    let notice = Shutdown { reason: why.reason().to_owned(), restart_expected_ms };
    if let Ok(payload) = Payload::of(&notice) {
        state.events.publish(Event::named("shutdown", payload));
    }
    let drain = match why {
        Why::Stop => DRAIN,
        Why::Restart => deadline.duration_since(Instant::now()).max(DRAIN),
    };
    let unfinished = tokio::select! { biased;
        unfinished = state.dispatch.shutdown(drain) => unfinished,
        () = hurry.cancelled() => state.dispatch.shutdown(DRAIN).await,
    };
    if !unfinished.is_empty() {
        tracing::warn!(count = unfinished.len(), "runs did not finish and go on after the next start");
    }
    state.dispatch.end_hooks().await;
    state.events.close_all(&Closing::stopping());
    state.tasks.close();
    if timeout(CLOSE, state.tasks.wait()).await.is_err() {
        tracing::warn!(count = state.tasks.len(), "connections and requests did not end in time");
    }
    if timeout(CLOSE, state.models.settle()).await.is_err() {
        tracing::warn!("how credentials did, or models.json, could not be written in time");
    }
    if let Err(error) = state.sessions.close().await {
        tracing::error!(%error, "the session store was not closed properly");
    }
    tracing::info!("stopped");
}
