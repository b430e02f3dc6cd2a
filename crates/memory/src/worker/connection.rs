//! The connection that writes: it is opened when needed, and a damaged file is moved aside and built anew.

use std::cell::Cell;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::Worker;
use crate::db::{self, FileMark, StoreError};

/// The connection that writes, and which file it has open.
pub(super) struct OpenIndex {
    connection: Connection,
    of: Option<FileMark>,
    /// Version of the data after the last look at the files; it changes when another connection writes.
    pub(super) version: Cell<Option<i64>>,
}

impl Deref for OpenIndex {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Worker {
    /// Calls `work` on the blocking pool with the connection that writes. A damaged file is moved aside, and `work` is
    /// done again on a new one.
    pub(super) async fn with_index<T: Send + 'static>(
        &mut self,
        work: impl Fn(&OpenIndex) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.shared.settings.store.clone();
        let open = self.connection.take();
        let done = tokio::task::spawn_blocking(move || {
            let mut open = open.filter(|open| open.of.is_some() && open.of == FileMark::of(&path));
            let mut answer = Err(StoreError::Missing);
            for _ in 0..2 {
                let connection = match open.take() {
                    Some(open) => Ok(open),
                    None => open_index(&path),
                };
                answer = connection.and_then(|connection| {
                    let answer = work(&connection);
                    open = Some(connection);
                    answer
                });
                let Err(StoreError::Damaged(reason)) = &answer else { break };
                open = None;
                rebuild_damaged(&path, reason)?;
            }
            Ok((open, answer))
        });
        match done.await {
            Ok(Ok((open, answer))) => {
                self.connection = open;
                answer
            }
            Ok(Err(error)) => Err(error),
            Err(error) => Err(StoreError::Other(error.to_string())),
        }
    }

    pub(super) async fn discard_damaged(&mut self) {
        let is_damaged = self.with_index(|connection| {
            let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if answer == "ok" { Ok(()) } else { Err(StoreError::Damaged(answer)) }
        });
        if let Err(error) = is_damaged.await {
            tracing::warn!(%error, "the memory index can't be checked");
        }
    }

    /// Gives back memory and open files.
    pub(super) async fn release(&mut self) {
        let (shared, connection) = (Arc::clone(&self.shared), self.connection.take());
        let released = tokio::task::spawn_blocking(move || {
            shared.searcher.release();
            drop(connection);
            openclaw_heap::trim();
        });
        // It panics only if a connection does.
        let _ = released.await;
    }
}

fn open_index(path: &Path) -> Result<OpenIndex, StoreError> {
    db::remove_leftovers(path);
    let connection = db::open_for_writing(path)?;
    Ok(OpenIndex { connection, of: FileMark::of(path), version: Cell::new(None) })
}

/// Moves a damaged index aside and saves the vectors that can still be read in it.
fn rebuild_damaged(path: &Path, reason: &str) -> Result<(), StoreError> {
    let aside = db::move_aside(path)?;
    tracing::warn!(reason, aside = %aside.display(), "the memory index was damaged; it was moved aside and is built anew");
    let new = db::open_for_writing(path)?;
    let Ok(Some(old)) = db::open_for_reading(&aside) else { return Ok(()) };
    let saved = || -> Result<(), rusqlite::Error> {
        let mut rows = old.prepare(
            "SELECT provider, model, provider_key, hash, embedding, dims, updated_at FROM embedding_cache",
        )?;
        let mut rows = rows.query([])?;
        let mut insert =
            new.prepare("INSERT OR IGNORE INTO embedding_cache VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        new.execute_batch("BEGIN")?;
        while let Ok(Some(row)) = rows.next() {
            let values = (0..7)
                .map(|column| row.get::<_, rusqlite::types::Value>(column))
                .collect::<Result<Vec<_>, _>>()?;
            insert.execute(rusqlite::params_from_iter(values))?;
        }
        Ok(())
    };
    if let Err(error) = saved() {
        tracing::debug!(%error, "not all remembered vectors could be saved");
    }
    if !new.is_autocommit() {
        new.execute_batch("COMMIT")?;
    }
    Ok(())
}
