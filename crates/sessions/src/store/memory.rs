//! Rows in memory alone, for tests of code that uses a [`SessionStore`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_protocol::AgentId;
use parking_lot::RwLock;

use super::file::Published;
use super::rows::Rows as RowTexts;
use super::select::SelectRequest;
use super::table::RowTable;
use super::{Change, Query, Row, Rows, Selection, SessionStore, StoreError, StoreFuture, Visitor};
use crate::key::{KeyRules, SessionKey};

/// The rows of a [`MemoryStore`]. They outlive it: another store over them sees what the first one left.
#[derive(Debug, Clone)]
pub struct StoredRows {
    rules: KeyRules,
    rows: Arc<RwLock<Published>>,
}

impl StoredRows {
    /// Creates a store without rows.
    pub fn new(rules: KeyRules) -> Self {
        let table = RowTable::new(RowTexts::default(), rules.default_agent.clone(), rules.clone());
        Self { rules, rows: Arc::new(RwLock::new(Published::new(table, None))) }
    }

    /// The same rows once more, as a crash would leave them to another process.
    pub fn copied(&self) -> Self {
        let rows = self.rows.read().table.rows().clone();
        let table = RowTable::new(rows, self.rules.default_agent.clone(), self.rules.clone());
        Self { rules: self.rules.clone(), rows: Arc::new(RwLock::new(Published::new(table, None))) }
    }

    /// A store over these rows.
    pub fn open(&self) -> MemoryStore {
        MemoryStore { stored: self.clone(), is_closed: AtomicBool::new(false) }
    }
}

/// [`SessionStore`] in memory.
#[derive(Debug)]
pub struct MemoryStore {
    stored: StoredRows,
    is_closed: AtomicBool,
}

impl MemoryStore {
    fn table<T>(&self, work: impl FnOnce(&mut RowTable) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.open()?;
        work(&mut self.stored.rows.write().table)
    }

    fn open(&self) -> Result<(), StoreError> {
        if self.is_closed.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) }
    }

    fn ask(&self, which: Rows<'_>, query: &Query) -> Result<SelectRequest, StoreError> {
        self.open()?;
        let owner = match which {
            Rows::All => None,
            Rows::Of(agent) => Some(agent.clone()),
        };
        let files = vec![Arc::clone(&self.stored.rows)];
        Ok(SelectRequest { files, query: query.clone(), rules: self.stored.rules.clone(), owner })
    }

    fn update_now(&self, key: &SessionKey, change: Change) -> Result<Row, StoreError> {
        self.table(|table| {
            let old = table.find(key).map(|(_, row)| row.entry());
            let new = table.changed(old.as_ref(), change)?;
            let made = table.made(&new, None).map_err(|source| StoreError::Io {
                what: "write",
                path: self.location().into(),
                source: Arc::new(io::Error::from(source)),
            })?;
            let spelling = table.spelling_for_write(key);
            let _ = table.put(&spelling, made);
            Ok(Row { key: key.clone().spelled_as(&spelling), entry: Arc::new(new) })
        })
    }

    fn delete_now(&self, key: &SessionKey) -> Result<Option<Row>, StoreError> {
        self.table(|table| {
            let Some((stored, row)) = table.find(key) else { return Ok(None) };
            let (stored, entry) = (Arc::clone(stored), Arc::new(row.entry()));
            let _ = table.remove(&stored);
            Ok(Some(Row { key: key.clone().spelled_as(&stored), entry }))
        })
    }
}

impl SessionStore for MemoryStore {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>> {
        let row = |table: &mut RowTable| {
            let Some((stored, row)) = table.find(key) else { return Ok(None) };
            Ok(Some(Row { key: key.clone().spelled_as(stored), entry: Arc::new(row.entry()) }))
        };
        Box::pin(std::future::ready(self.table(row)))
    }

    fn select<'a>(&'a self, which: Rows<'a>, query: &'a Query) -> StoreFuture<'a, Selection> {
        Box::pin(std::future::ready(self.ask(which, query).map(|ask| ask.answer())))
    }

    fn visit<'a>(&'a self, which: Rows<'a>, query: &'a Query, visitor: Visitor) -> StoreFuture<'a, ()> {
        Box::pin(std::future::ready(self.ask(which, query).map(|ask| ask.show(visitor))))
    }

    fn update<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row> {
        Box::pin(async { self.update_now(key, change) })
    }

    fn record<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row> {
        self.update(key, change)
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>> {
        Box::pin(async { self.delete_now(key) })
    }

    fn flush(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(self.open()))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        let closed =
            if self.is_closed.swap(true, Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) };
        Box::pin(std::future::ready(closed))
    }

    fn rules(&self) -> &KeyRules {
        &self.stored.rules
    }

    fn set_agents(&self, _agents: Vec<AgentId>) {}

    fn found_agents(&self) -> Vec<AgentId> {
        Vec::new()
    }

    fn location_of(&self, _agent: &AgentId) -> String {
        self.location()
    }

    fn location(&self) -> String {
        "(memory)".to_owned()
    }
}
