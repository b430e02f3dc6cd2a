//! Tasks that a stop waits for.

use tokio_util::task::TaskTracker;

/// Tasks that a stop waits for, by their work. Clones track the same tasks.
#[derive(Debug, Clone, Default)]
pub struct WorkTasks {
    /// Messages between the client and their lane.
    pub accepting: TaskTracker,
    /// Shows that somebody writes until all of an answer is out.
    pub showing: TaskTracker,
    /// Runs under way, until their lane is done with them.
    pub working: TaskTracker,
}
