//! Ending a gateway: stop taking, let runs finish, close sockets, flush (spec `gateway-protocol.md` §11, KB-39).

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::Payload;
use openclaw_protocol::event::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::events::Event;
use crate::handshake::close::Closing;
use crate::state::GatewayState;

/// All of it takes no longer: a supervisor waits for us.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Of which runs have this long to end by themselves.
const DRAIN: Duration = Duration::from_secs(3);
/// And sockets this long to be closed.
const CLOSE: Duration = Duration::from_secs(1);

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

    /// Waits until the gateway is to stop.
    pub(super) async fn stop_asked(&mut self) {
        loop {
            match self.next().await {
                Asked::Stop(name) => {
                    tracing::info!("signal {name} received");
                    tracing::info!("received {name}; shutting down");
                    return;
                }
                Asked::Restart => tracing::warn!(
                    "SIGUSR1 restart ignored (restarting in the same process is not supported yet; restart the service)"
                ),
            }
        }
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

/// Stops everything in order. Names what did not finish.
pub(super) async fn stop(state: &Arc<GatewayState>) {
    state.stopping.cancel();
    // Who hears of the stop finds nothing accepted behind it.
    state.dispatch.stop_accepting();
    let notice = Shutdown { reason: "gateway stopping".to_owned(), restart_expected_ms: None };
    if let Ok(payload) = Payload::of(&notice) {
        state.events.publish(Event::named("shutdown", payload));
    }
    let unfinished = state.dispatch.shutdown(DRAIN).await;
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
