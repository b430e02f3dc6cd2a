//! A disk without space: messages that were accepted wait and are tried again. They hold no place in a lane, and the time does
//! not count against their deadlines.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use super::{Ending, RunControl, stopped_early};
use crate::inbox::{Parked, Row};
use crate::journal::JournalError;
use crate::shared::Shared;

/// How long after one try comes the next.
const PAUSE: Duration = Duration::from_secs(2);

/// Whether an error, or what it comes from, is that there is no space.
pub(super) fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error
            .downcast_ref::<io::Error>()
            .or_else(|| error.downcast_ref::<Arc<io::Error>>().map(|io| &**io));
        if io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
            || matches!(error.downcast_ref::<JournalError>(), Some(JournalError::DiskFull))
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// Waits until it is time to try again. Says once a message that it waits. Fails with how the message ends when it is stopped
/// meanwhile, or the gateway is.
pub(super) async fn until_space(
    shared: &Shared,
    row: &Row<Parked>,
    control: &RunControl,
    why: &str,
) -> Result<(), Ending> {
    if control.lock_wait.tells() {
        let (run_id, session) = (&row.run_id, &row.session_key);
        tracing::warn!(%run_id, %session, why, "the disk is full: the message waits until there is space");
    }
    let _waiting = control.lock_wait.begin();
    tokio::select! { biased;
        () = control.cancel.cancelled() => Err(stopped_early(shared, row, control).await),
        // It is taken up again by the next start.
        () = shared.stopping.cancelled() => Err(Ending::Interrupted),
        () = tokio::time::sleep(PAUSE) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_sessions::StoreError;

    use super::*;

    #[test]
    fn a_full_disk_is_known_however_deep_it_is() {
        let io = |kind| io::Error::from(kind);
        let store = |kind| StoreError::Io { what: "write", path: "f".into(), source: Arc::new(io(kind)) };
        let rows: [(Box<dyn Error>, bool); 6] = [
            (Box::new(io(ErrorKind::StorageFull)), true),
            (Box::new(io(ErrorKind::QuotaExceeded)), true),
            (Box::new(io(ErrorKind::PermissionDenied)), false),
            (Box::new(store(ErrorKind::StorageFull)), true),
            (Box::new(JournalError::DiskFull), true),
            (Box::new(JournalError::Closed), false),
        ];
        for (error, expected) in rows {
            assert_eq!(is_full(&*error), expected, "{error}");
        }
    }
}
