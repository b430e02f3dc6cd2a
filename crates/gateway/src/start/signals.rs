//! The signals a gateway acts on, from the first moment of its process to the next program in it.
//!
//! Until something listens, the system's own way ends the process. So they are [held](hold) from the beginning of `main` until there is
//! something, and again before the program begins anew: what is held stays with the process across `exec`, and is told to whoever
//! listens next.

use std::io;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as Number};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::stop::ShutdownReason;

/// Time that a signal which has arrived may take until it is seen.
const ON_ITS_WAY: Duration = Duration::from_millis(10);

fn of_a_gateway() -> SigSet {
    SigSet::from_iter([Number::SIGTERM, Number::SIGINT, Number::SIGUSR1])
}

/// Holds the signals of a gateway back from this thread and those that it starts. For a process that has no other threads.
pub fn hold() {
    // An error is only possible for an invalid set of signals.
    let _ = of_a_gateway().thread_block();
}

/// Lets them through to this thread, and those that it starts.
pub fn let_through() {
    let _ = of_a_gateway().thread_unblock();
}

/// Hears the signals of a gateway.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    user: Signal,
}

/// Action that a signal asks for.
enum SignalAction {
    Stop(&'static str),
    Restart,
}

impl Signals {
    /// Listens from now on, within any runtime. A signal is delivered in whichever runtime is active when it arrives.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Stop("SIGTERM"),
            _ = self.interrupt.recv() => SignalAction::Stop("SIGINT"),
            _ = self.user.recv() => SignalAction::Restart,
        }
    }

    /// Returns true if the process was told to stop since this listens.
    pub async fn was_told_to_stop(&mut self) -> bool {
        timeout(ON_ITS_WAY, self.terminated()).await.is_ok()
    }

    /// Waits until the gateway is to stop, or to start again where it may.
    pub(super) async fn stop_asked(&mut self, may_restart: impl Fn() -> bool) -> ShutdownReason {
        loop {
            match self.next().await {
                SignalAction::Stop(name) => {
                    tracing::info!("signal {name} received");
                    tracing::info!("received {name}; shutting down");
                    return ShutdownReason::Stop;
                }
                SignalAction::Restart if may_restart() => {
                    tracing::info!("received SIGUSR1; restarting");
                    return ShutdownReason::Restart;
                }
                SignalAction::Restart => tracing::warn!(
                    "SIGUSR1 restart ignored (not authorized; enable commands.restart or use gateway tool)."
                ),
            }
        }
    }

    /// Waits for a signal to stop, while the gateway is about to start again.
    pub(super) async fn terminated(&mut self) {
        while let SignalAction::Restart = self.next().await {}
        tracing::info!("told to stop during a restart; shutting down");
    }

    /// Tells of further signals while the gateway stops.
    pub(super) async fn ignored(&mut self) {
        loop {
            if let SignalAction::Stop(name) = self.next().await {
                tracing::info!("received {name} during shutdown; ignoring");
            }
        }
    }
}
