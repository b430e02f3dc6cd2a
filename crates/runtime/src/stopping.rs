//! Phases of a stop.

use tokio_util::sync::CancellationToken;

/// Phases of a stop, in the order in which they begin. Clones are the same stop.
#[derive(Debug, Clone, Default)]
pub struct Stopping {
    /// No run is begun before the next start; all else goes on.
    pub holding: CancellationToken,
    /// No run is started any more.
    pub stopping: CancellationToken,
    /// Cancelled when runs stop where they are. Parent of every run's token.
    pub kill: CancellationToken,
}
