//! Documents and their terms: the keyword index, beside the tables of OpenClaw 2026.2.9.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::{IndexWriter, mark};
use crate::db::StoreError;
use crate::segments;
use crate::steps::{Step, reached};

/// Documents of one segment at most.
const SEGMENT_DOCUMENTS: u32 = 8_192;

/// Ends of documents that are remembered for searches that follow the index.
const MOST_ENDED: i64 = 10_000;

impl IndexWriter<'_> {
    /// Takes a document out of the index. Its row stays for searches that follow it.
    pub(crate) fn end_document(&mut self, document: i64) -> Result<(), StoreError> {
        self.has_changed = true;
        let mut row = self.transaction.prepare_cached(
            "UPDATE openclaw_docs SET words = -1, chunk = -1, revision = ?2 WHERE doc = ?1",
        )?;
        row.execute(params![document, self.counters.revision + 1])?;
        for table in ["openclaw_vectors", "openclaw_codes", "openclaw_pending"] {
            self.transaction
                .prepare_cached(&format!("DELETE FROM {table} WHERE doc = ?1"))?
                .execute([document])?;
        }
        Ok(())
    }

    pub(super) fn add_document(
        &mut self,
        row: i64,
        id: &str,
        fts: Option<i64>,
        text: &str,
    ) -> Result<i64, StoreError> {
        let document = self.counters.next_doc;
        self.counters.next_doc += 1;
        let words = self.segment.add(u32::try_from(document).unwrap_or(u32::MAX), text);
        let sql = "INSERT INTO openclaw_docs (doc, chunk, mark, fts, words, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        insert.execute(params![document, row, mark(id), fts, words, self.counters.revision + 1])?;
        drop(insert);
        if self.segment.documents >= SEGMENT_DOCUMENTS {
            self.write_segment()?;
        }
        Ok(document)
    }

    pub(super) fn write_segment(&mut self) -> Result<(), StoreError> {
        if self.segment.documents > 0 {
            self.segment.write(&self.transaction, self.counters.next_segment)?;
            self.counters.next_segment += 1;
            reached(Step::SegmentWritten);
        }
        Ok(())
    }

    /// Merges segments of one size, once. Returns whether there were any.
    pub(crate) fn merge_segments(&mut self) -> Result<bool, StoreError> {
        let Some(together) = segments::to_merge(&segments::list(&self.transaction)?) else {
            return Ok(false);
        };
        self.merge(&together)?;
        self.forget_ended()?;
        reached(Step::SegmentsMerged);
        Ok(true)
    }

    /// Merges all segments, so that no term is left that only texts had which are no more.
    pub(crate) fn merge_all_segments(&mut self) -> Result<(), StoreError> {
        let together: Vec<i64> =
            segments::list(&self.transaction)?.into_iter().map(|(segment, _)| segment).collect();
        self.merge(&together)
    }

    fn merge(&mut self, together: &[i64]) -> Result<(), StoreError> {
        let live = live_documents(&self.transaction)?;
        segments::merge(&self.transaction, together, self.counters.next_segment, |document| {
            live.contains(&i64::from(document))
        })?;
        self.counters.next_segment += 1;
        self.has_changed = true;
        Ok(())
    }

    /// Forgets documents that are no more, when there are many. Searches read the index anew then.
    fn forget_ended(&mut self) -> Result<(), StoreError> {
        let ended: i64 =
            self.transaction
                .query_row("SELECT count(*) FROM openclaw_docs WHERE words < 0", [], |row| row.get(0))?;
        if ended > MOST_ENDED {
            self.transaction.execute("DELETE FROM openclaw_docs WHERE words < 0", [])?;
            self.counters.epoch += 1;
        }
        Ok(())
    }
}

fn live_documents(connection: &Connection) -> Result<HashSet<i64>, StoreError> {
    let mut rows = connection.prepare_cached("SELECT doc FROM openclaw_docs WHERE words >= 0")?;
    let rows = rows.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
