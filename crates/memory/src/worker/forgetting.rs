//! Forgetting: what the index holds of texts that were removed from their files.

use std::collections::HashSet;

use rusqlite::Connection;

use super::{PassWork, Worker};
use crate::db::StoreError;
use crate::text_pass::SessionScope;
use crate::writer::{IndexWriter, read_meta};

impl Worker {
    /// Removes what the index holds of texts that were forgotten: rows, terms and vectors, also from free pages.
    pub(super) async fn forget(&mut self, paths: Vec<String>) -> Result<(), StoreError> {
        // Vectors of what is forgotten may be on their way.
        (self.flight, self.may_embed) = (None, true);
        let before = self.with_index({
            let paths = paths.clone();
            move |connection| hashes_of(connection, &paths)
        });
        let before = before.await?;
        self.with_index(|connection| Ok(connection.pragma_update(None, "secure_delete", "ON")?)).await?;
        self.pass(PassWork {
            force: false,
            sessions: SessionScope::Only(HashSet::new()),
            is_damaged: false,
            waiting: Vec::new(),
        })
        .await;
        if let Some(error) = self.report().error {
            return Err(StoreError::Other(error));
        }
        let purged = self.with_index(move |connection| {
            let after = hashes_of(connection, &paths)?;
            let Some(meta) = read_meta(connection)? else { return Ok(()) };
            let mut writer = IndexWriter::begin(connection, &meta, false)?;
            for hash in before.difference(&after) {
                writer.forget_text(hash)?;
            }
            writer.forget_unheld()?;
            writer.merge_all_segments()?;
            writer.commit()?;
            connection.execute("INSERT INTO chunks_fts(chunks_fts) VALUES('optimize')", [])?;
            // Pages may hold copies in space that is free; both fail while a search is under way, and the space is
            // written over later.
            let _ = connection.execute_batch("VACUUM");
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            connection.pragma_update(None, "secure_delete", "OFF")?;
            Ok(())
        });
        purged.await
    }
}

fn hashes_of(connection: &Connection, paths: &[String]) -> Result<HashSet<String>, StoreError> {
    let mut hashes = HashSet::new();
    let mut rows = connection.prepare_cached("SELECT hash FROM chunks WHERE path = ?1")?;
    for path in paths {
        for hash in rows.query_map([path], |row| row.get::<_, String>(0))? {
            hashes.insert(hash?);
        }
    }
    Ok(hashes)
}
