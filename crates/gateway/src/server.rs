//! The gateway's one port: listeners and HTTP.

pub(crate) mod accept;
pub(crate) mod front;
pub(crate) mod http;
pub(crate) mod listen;
mod not_there;
pub(crate) mod own_page;
mod tools_invoke;
mod watched;
pub(crate) mod web_ui;

pub use listen::ListenError;

use std::sync::Arc;

use openclaw_dispatch::Dispatch;
use openclaw_runtime::memory::Memories;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::current_settings::CurrentSettings;
use crate::entrance::Entrance;
use crate::socket::SocketParts;

/// Parts of the gateway that HTTP requests reach.
pub(crate) struct Served {
    /// Parts for those requests that become sockets.
    pub(crate) sockets: Arc<SocketParts>,
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) settings: CurrentSettings,
    pub(crate) memories: Memories,
    pub(crate) dispatch: Dispatch,
    /// Owns the tasks of sockets.
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").finish_non_exhaustive()
    }
}
