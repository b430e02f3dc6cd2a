//! The session store: rows by key, durable when an update's future ends (design, "Durability").
//!
//! [`SessionStore`] is the narrow interface the product knows; [`FileStore`] keeps OpenClaw's `sessions.json` files.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub(crate) mod document;
mod file;
mod head;
mod journal;
mod listed;
#[cfg(any(test, feature = "contract"))]
mod memory;
pub(crate) mod on_disk;
mod overruled;
mod query;
mod recent;
mod rows;
mod select;
mod stored;
mod table;
mod writer;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_protocol::{AgentId, SessionId};
use serde_json::value::RawValue;

use stored::RowText;

use crate::entry::{ModelName, SessionEntry};
use crate::key::{KeyRules, SessionKey};

pub use file::{FileStore, FileStoreOptions};
#[cfg(any(test, feature = "contract"))]
pub use memory::{MemoryStore, StoredRows};
pub use on_disk::{StoredRow, read_newest_rows, read_row, read_rows};
pub use query::{Hidden, Query, Selection};

/// A future of the storage interface.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Row of the store, as it was when read.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Session key, as the store spells it.
    pub key: SessionKey,
    /// The row.
    pub entry: Arc<SessionEntry>,
}

/// A change of one row. It gets the row as it is, or an empty one when there is none, runs on the store's own thread and
/// must be short. Refusing leaves the row alone.
pub type Change = Box<dyn FnOnce(Edit<'_>) -> Result<(), Refused> + Send>;

/// Row that a [`Change`] edits.
pub struct Edit<'a> {
    /// The row to change.
    pub entry: &'a mut SessionEntry,
    /// True if there was no such row.
    pub is_new: bool,
    /// Now, Unix milliseconds.
    pub now: i64,
}

/// A [`Change`] did not want to happen; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Callback that is shown rows one at a time ([`SessionStore::visit`]). It runs where blocking is
/// allowed, and must not ask the store.
pub type Visitor = Box<dyn FnMut(VisitedRow) + Send>;

/// A row that is shown to a [`Visitor`]: read when it is asked for.
#[derive(Debug)]
pub struct VisitedRow {
    key: SessionKey,
    text: Arc<RowText>,
}

impl VisitedRow {
    /// Session key, as the store spells it.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// All of it.
    pub fn read(&self) -> Row {
        Row { key: self.key.clone(), entry: Arc::new(self.text.entry()) }
    }

    /// JSON of the row for lists of an agent with this default model: kept from before, or else
    /// made by `make`.
    pub(crate) fn listed(
        &self,
        default_model: &Arc<ModelName>,
        make: impl FnOnce(&Row) -> Arc<RawValue>,
    ) -> Arc<RawValue> {
        self.text.listed().get(default_model, || make(&self.read()))
    }
}

/// Owners of the rows that [`SessionStore::select`] and [`SessionStore::visit`] look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows<'a> {
    /// Rows of all agents, configured or found on disk.
    All,
    /// Rows in the store of one agent.
    Of(&'a AgentId),
}

/// Reason why a store operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The change refused itself.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Another row of the same store has the label.
    #[error("label already in use: {0}")]
    LabelInUse(String),
    /// The disk refused. Nothing was changed, in memory neither; the caller may try again.
    #[error("cannot {what} the session store {path}: {source}")]
    Io {
        /// `read`, `write`, …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error from the system.
        source: Arc<io::Error>,
    },
    /// The store is closed or its thread is gone.
    #[error("the session store is closed")]
    Closed,
}

/// Rows by key. Every implementation keeps the laws of the module `contract`.
pub trait SessionStore: Send + Sync {
    /// The row of a key.
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>>;

    /// The rows that meet every condition of a query, newest first. The newest without a condition cost no more in a big
    /// store than in a small one.
    fn select<'a>(&'a self, which: Rows<'a>, query: &'a Query) -> StoreFuture<'a, Selection>;

    /// Shows the rows that meet every condition of a query to a visitor, newest first, as they were at one moment: for
    /// those who need a little of each of many rows ([`gather`]). Each is read when the visitor asks for it.
    fn visit<'a>(&'a self, which: Rows<'a>, query: &'a Query, visitor: Visitor) -> StoreFuture<'a, ()>;

    /// All rows, newest first.
    #[cfg(any(test, feature = "contract"))]
    fn rows<'a>(&'a self, which: Rows<'a>) -> StoreFuture<'a, Vec<Row>> {
        Box::pin(async move { Ok(self.select(which, &Query::default()).await?.rows) })
    }

    /// Changes or creates a row and makes it durable. Afterwards the row has a `sessionId` and an `updatedAt`, and its
    /// delivery fields agree; `updatedAt` is never less than before. An unchanged row is not written. Changes of one row happen one after the other.
    fn update<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row>;

    /// [`Self::update`] that does not wait for the disk, for what a row tells of turns: the end of this process does it no harm,
    /// a power cut within the next seconds may take it back. An update that waits makes it durable too.
    fn record<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row>;

    /// Removes a row, durably; returns what it was.
    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>>;

    /// Brings OpenClaw's own files up to date with everything that was acknowledged.
    fn flush(&self) -> StoreFuture<'_, ()>;

    /// Flushes and lets go of everything. Further calls fail with [`StoreError::Closed`].
    fn close(&self) -> StoreFuture<'_, ()>;

    /// Does beforehand what the first change of a row would wait for: makes the names of the state
    /// directory and of those above it durable. Blocks on the disk. An error is told by that change.
    fn prepare(&self) {}

    /// Rules for reading keys.
    fn rules(&self) -> &KeyRules;

    /// The agents that are configured from now on. Agents that the store knows by itself are not
    /// forgotten.
    fn set_agents(&self, agents: Vec<AgentId>);

    /// Agents that have room in the store, configured or not. Blocking.
    fn found_agents(&self) -> Vec<AgentId>;

    /// Location of an agent's rows, for people.
    fn location_of(&self, agent: &AgentId) -> String;

    /// Location of all rows, for people.
    fn location(&self) -> String;
}

/// Takes something of each row that meets every condition of a query, newest first.
pub async fn gather<T, F>(
    store: &dyn SessionStore,
    which: Rows<'_>,
    query: &Query,
    mut pick: F,
) -> Result<Vec<T>, StoreError>
where
    T: Send + 'static,
    F: FnMut(Row) -> Option<T> + Send + 'static,
{
    gather_shown(store, which, query, move |shown| pick(shown.read())).await
}

/// [`gather`] from rows that need not be read.
pub(crate) async fn gather_shown<T, F>(
    store: &dyn SessionStore,
    which: Rows<'_>,
    query: &Query,
    mut pick: F,
) -> Result<Vec<T>, StoreError>
where
    T: Send + 'static,
    F: FnMut(VisitedRow) -> Option<T> + Send + 'static,
{
    let (picked, found) = std::sync::mpsc::channel();
    let visitor = move |row| {
        // The receiver lives until the visit's future ends; when it is gone nobody waits for the result.
        let _ = pick(row).map(|thing| picked.send(thing));
    };
    store.visit(which, query, Box::new(visitor)).await?;
    Ok(found.try_iter().collect())
}

/// The key whose row has this transcript, the newest where several have.
///
/// # Errors
/// When the store can't be read.
pub async fn key_of_transcript(
    store: &dyn SessionStore,
    which: Rows<'_>,
    id: &SessionId,
) -> Result<Option<SessionKey>, StoreError> {
    let query = Query { session_id: Some(id.as_str().to_owned()), ..Query::newest(1) };
    let found = store.select(which, &query).await?;
    Ok(found.rows.into_iter().next().map(|row| row.key))
}

/// Key spelled as its row is stored, for people and clients. The key of a session without a row, or
/// with one that can't be read, is spelled as new rows are. Keys that are spelled in one way only
/// are not looked up.
pub async fn spelled(store: &dyn SessionStore, key: SessionKey) -> SessionKey {
    if !key.has_spellings() {
        return key;
    }
    match store.get(&key).await {
        Ok(Some(row)) => row.key,
        Ok(None) | Err(_) => key.spelled_anew(),
    }
}

/// An update whose change has an error or a result of its own.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The change refused, in its own words.
    #[error(transparent)]
    Refused(E),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

/// [`SessionStore::update`] with a typed result and error.
pub async fn update_with<T, E, F>(
    store: &dyn SessionStore,
    key: &SessionKey,
    change: F,
) -> Result<(Row, T), UpdateError<E>>
where
    T: Send + 'static,
    E: std::fmt::Display + Send + 'static,
    F: FnOnce(Edit<'_>) -> Result<T, E> + Send + 'static,
{
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let boxed: Change = Box::new(move |edit| {
        let result = change(edit);
        let verdict = result.as_ref().map(|_| ()).map_err(|error| Refused(error.to_string()));
        // The receiver lives until the update's future ends; when it is gone nobody waits for the result.
        let _ = sender.send(result);
        verdict
    });
    let outcome = store.update(key, boxed).await;
    match (outcome, receiver.await) {
        (Ok(row), Ok(Ok(value))) => Ok((row, value)),
        (Err(StoreError::Refused(_)), Ok(Err(error))) => Err(UpdateError::Refused(error)),
        (Err(error), _) => Err(UpdateError::Store(error)),
        (Ok(_), _) => Err(UpdateError::Store(StoreError::Closed)),
    }
}

#[cfg(test)]
mod tests;
