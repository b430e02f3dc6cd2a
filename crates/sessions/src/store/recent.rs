//! The rows that were read whole last, as the product sees them: a turn looks at its session's row several times.
//!
//! A row's text never changes, another one takes its place; so what was read of it is never stale.

use std::collections::VecDeque;
use std::sync::Arc;

use super::stored::RowText;
use crate::entry::SessionEntry;

/// Rows that are remembered: those of the sessions that may run at once, several times over. A few KiB each.
const MOST: usize = 64;

/// The rows of one store that were read last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    rows: VecDeque<(Arc<RowText>, Arc<SessionEntry>)>,
}

impl Recent {
    /// Entry parsed from a row, cached.
    pub(crate) fn entry(&mut self, row: &Arc<RowText>) -> Arc<SessionEntry> {
        if let Some((_, entry)) = self.rows.iter().find(|(known, _)| Arc::ptr_eq(known, row)) {
            return Arc::clone(entry);
        }
        let entry = Arc::new(row.entry());
        self.add(Arc::clone(row), Arc::clone(&entry));
        entry
    }

    /// Remembers what a row says that takes the place of another.
    pub(crate) fn replace(
        &mut self,
        old: Option<&Arc<RowText>>,
        row: Arc<RowText>,
        entry: Arc<SessionEntry>,
    ) {
        if let Some(old) = old {
            self.rows.retain(|(known, _)| !Arc::ptr_eq(known, old));
        }
        self.add(row, entry);
    }

    fn add(&mut self, row: Arc<RowText>, entry: Arc<SessionEntry>) {
        if self.rows.len() >= MOST {
            self.rows.pop_front();
        }
        self.rows.push_back((row, entry));
    }
}
