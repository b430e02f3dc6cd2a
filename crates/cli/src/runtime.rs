//! Running asynchronous work to its end, and no longer.

use std::time::Duration;

use tokio::runtime::Runtime;

/// Time that abandoned blocking work, such as the last write of a file, may still take at the end.
const LEFT_OVER: Duration = Duration::from_millis(500);

/// Runs a future to its end. A thread that is still blocked then, by a dead network disk or a name server, is left behind:
/// dropping the runtime would wait for it.
pub(crate) fn finish<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LEFT_OVER);
    done
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_blocked_thread_is_left_behind() {
        let (release, blocked) = channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let done = finish(runtime, async {
            drop(tokio::task::spawn_blocking(move || blocked.recv()));
            7
        });
        // Reached although the thread is still blocked.
        assert_eq!(done, 7);
        drop(release);
    }
}
