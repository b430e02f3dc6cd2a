//! Listener that runs before the gateway is put together.
//!
//! Opening the stores takes longer than a supervisor should wait for a sign of life, so the listeners serve from the
//! first moment: health at once, everything else as soon as there is a gateway behind it.

use std::sync::Arc;

use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Served;
use crate::handshake::origin::PageRules;
use crate::places::{ConnectionPlaces, PlaceLimits};

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
    pub(crate) places: ConnectionPlaces,
    /// Places for WebSockets that are not authenticated yet.
    pub(crate) handshakes: ConnectionPlaces,
    served: SetOnce<Arc<Served>>,
}

impl Front {
    /// The front of a gateway with these rules for pages and so many places.
    pub(crate) fn new(pages: PageRules, limits: PlaceLimits) -> Self {
        Self {
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            pages,
            places: ConnectionPlaces::new(limits.connections),
            handshakes: ConnectionPlaces::new(limits.handshakes),
            served: SetOnce::new(),
        }
    }

    /// The gateway is put together.
    pub(crate) fn open(&self, served: Arc<Served>) {
        // Set only once: the front is opened once.
        let _ = self.served.set(served);
    }

    /// The gateway, if it is put together.
    pub(crate) fn served(&self) -> Option<&Arc<Served>> {
        self.served.get()
    }

    /// The gateway, once it is put together; `None` when it stops before.
    pub(crate) async fn wait(&self) -> Option<&Arc<Served>> {
        tokio::select! { biased;
            served = self.served.wait() => Some(served),
            () = self.stopping.cancelled() => None,
        }
    }
}
