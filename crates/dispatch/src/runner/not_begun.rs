//! Why a run could not begin.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::journal::JournalError;

/// Why a run could not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotBegun {
    /// For people.
    pub(crate) message: String,
    /// Whether there is no space on disk: then the message waits for some.
    pub(crate) disk_full: bool,
}

impl NotBegun {
    pub(crate) fn because(message: impl Into<String>) -> Self {
        Self { message: message.into(), disk_full: false }
    }
}

impl<E: Error + 'static> From<E> for NotBegun {
    fn from(error: E) -> Self {
        Self { message: format!("Error: {error}"), disk_full: is_full(&error) }
    }
}

/// Whether an error, or what it comes from, is that there is no space.
fn is_full(error: &(dyn Error + 'static)) -> bool {
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
