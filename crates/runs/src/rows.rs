//! Rows of sessions, as runs read and write them.

use std::sync::Arc;

use openclaw_sessions::store::{Edit, Refused};
use openclaw_sessions::{KeyRules, Row, SessionEntry, SessionKey, SessionStore, StoreError};

use crate::result::Figures;

/// The rows of all sessions.
pub struct SessionRows {
    store: Arc<dyn SessionStore>,
}

impl SessionRows {
    pub(crate) fn new(store: Arc<dyn SessionStore>) -> Self {
        Self { store }
    }

    /// Rules by which session keys are read.
    pub fn key_rules(&self) -> &KeyRules {
        self.store.rules()
    }

    /// Returns the session's row with its key as the store spells it.
    pub(crate) async fn get(&self, session_key: &SessionKey) -> Result<Option<Row>, StoreError> {
        self.store.get(session_key).await
    }

    pub(crate) async fn entry(
        &self,
        session_key: &SessionKey,
    ) -> Result<Option<Arc<SessionEntry>>, StoreError> {
        Ok(self.store.get(session_key).await?.map(|row| row.entry))
    }

    /// Returns the session's row for uses that have a default; `None` also if the store can't be
    /// read, which shows when the run begins.
    pub async fn entry_or_none(&self, session_key: &SessionKey) -> Option<Arc<SessionEntry>> {
        self.entry(session_key).await.ok().flatten()
    }

    pub(crate) async fn store_figures(&self, key: &SessionKey, figures: Figures) -> Result<(), StoreError> {
        let change = Box::new(move |edit: Edit<'_>| {
            if edit.is_new || edit.entry.session_id.as_ref() != Some(&figures.session_id) {
                return Err(Refused("the session was deleted or reset while its run ended".to_owned()));
            }
            figures.apply(edit.entry, edit.now);
            Ok(())
        });
        match self.store.record(key, change).await {
            Ok(_) => Ok(()),
            Err(StoreError::Refused(reason)) => {
                tracing::debug!(session = %key, %reason, "figures of a run have no row to go to");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
