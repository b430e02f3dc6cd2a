//! Listener that runs before the gateway is put together.
//!
//! Opening the stores takes longer than a supervisor should wait for a sign of life, so the listeners serve from the
//! first moment: health at once, everything else as soon as there is a gateway behind it.

use std::sync::Arc;

use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handshake::origin::PageRules;
use crate::places::{PlaceLimits, Places};
use crate::state::GatewayState;

/// The listening side of a gateway.
#[derive(Debug)]
pub(crate) struct Front {
    /// Cancelled when the gateway begins to stop.
    pub(crate) stopping: CancellationToken,
    /// Owns the tasks of connections and requests.
    pub(crate) tasks: TaskTracker,
    /// Names of this gateway that a page may use.
    pub(crate) pages: PageRules,
    /// Places for HTTP connections; WebSockets leave theirs.
    pub(crate) places: Places,
    /// Places for WebSockets that are not authenticated yet.
    pub(crate) handshakes: Places,
    state: SetOnce<Arc<GatewayState>>,
}

impl Front {
    /// The front of a gateway with these rules for pages and so many places.
    pub(crate) fn new(pages: PageRules, limits: PlaceLimits) -> Self {
        Self {
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            pages,
            places: Places::new(limits.connections),
            handshakes: Places::new(limits.handshakes),
            state: SetOnce::new(),
        }
    }

    /// The gateway is put together.
    pub(crate) fn open(&self, state: Arc<GatewayState>) {
        // Set only once: the front is opened once.
        let _ = self.state.set(state);
    }

    /// The gateway, if it is put together.
    pub(crate) fn state(&self) -> Option<&Arc<GatewayState>> {
        self.state.get()
    }

    /// The gateway, once it is put together; `None` when it stops before.
    pub(crate) async fn wait(&self) -> Option<&Arc<GatewayState>> {
        tokio::select! { biased;
            state = self.state.wait() => Some(state),
            () = self.stopping.cancelled() => None,
        }
    }
}
