//! Places for pages that are taken apart. The libraries that do it can't be stopped, so a call that is given up frees its place at
//! once while its thread may still work. The number of such threads is bounded.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Pages that are taken apart at the same time.
const PLACES: usize = 2;
/// Threads of calls that were given up, beside one for each place.
const LEFT_OVER: usize = 2;

/// Places for work that may outlive its call.
#[derive(Debug)]
pub(crate) struct WorkPermits {
    /// Permits held by calls. They end with the call.
    places: Semaphore,
    /// Permits held by threads until their work ends.
    threads: Arc<Semaphore>,
}

/// Reason why work gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// All threads are taken by work that was given up. Later there is room again.
    #[error("pages that were given up earlier are still being read; try again in a minute")]
    Busy,
    /// The work took too long. Its place is free again.
    #[error("it was not read within {} s", .0.as_secs())]
    TooLong(Duration),
    /// The work ended with a panic.
    #[error("reading it stopped: {0}")]
    Stopped(#[from] JoinError),
}

impl Default for WorkPermits {
    fn default() -> Self {
        Self { places: Semaphore::new(PLACES), threads: Arc::new(Semaphore::new(PLACES + LEFT_OVER)) }
    }
}

impl WorkPermits {
    /// Runs work on a blocking thread once a place is free, and waits for it no longer than `time`.
    ///
    /// # Errors
    ///
    /// Fails if the work takes longer or panics, or if too much work that was given up still runs.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PlaceError> {
        // Held by this future. The semaphore is never closed.
        let _place = self.places.acquire().await;
        let thread = Arc::clone(&self.threads).try_acquire_owned().map_err(|_| PlaceError::Busy)?;
        let work = tokio::task::spawn_blocking(move || {
            let _thread = thread;
            work()
        });
        Ok(tokio::time::timeout(time, work).await.map_err(|_| PlaceError::TooLong(time))??)
    }
}

#[cfg(test)]
mod tests;
