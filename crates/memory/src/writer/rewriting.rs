//! Writing everything anew, file by file: searches go on with what stands there, no transaction is long, and a process
//! that ends in the middle is followed by one that goes on.
//!
//! What is being written is recorded, and the rows that tell unchanged files are removed. A file whose row is there again
//! is done. The record of what the index is made with changes at the end: until then OpenClaw 2026.2.9 takes the index for
//! one of the settings before.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::IndexWriter;
use crate::counters;
use crate::db::StoreError;
use crate::identity::IndexMeta;
use crate::steps::{Step, reached};

/// Treatment of chunks that the index has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Rewrite {
    /// Unchanged chunks stay.
    Changed,
    /// All chunks are written anew; their vectors are kept.
    All,
    /// All chunks are written anew without vectors, because the model is another one.
    NewIdentity,
}

/// Reindex that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rewriting {
    /// Record of the finished index.
    pub(crate) meta: IndexMeta,
    pub(crate) rewrite: Rewrite,
}

impl Rewriting {
    const KEY: &str = "rewriting";

    /// Returns what a pass before has begun to write and has not ended.
    pub(crate) fn read(connection: &Connection) -> Result<Option<Self>, StoreError> {
        let text = counters::text(connection, Self::KEY)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Returns whether it leads to an index that is made with `meta`.
    pub(crate) fn is_to(&self, meta: &IndexMeta) -> bool {
        IndexMeta { vector_dims: None, ..self.meta.clone() }
            == IndexMeta { vector_dims: None, ..meta.clone() }
    }
}

impl IndexWriter<'_> {
    /// Records that everything is written anew from now on.
    pub(crate) fn begin_rewriting(&mut self, rewriting: &Rewriting) -> Result<(), StoreError> {
        self.has_changed = true;
        self.is_rewriting = true;
        let text = serde_json::to_string(rewriting).map_err(|error| StoreError::Other(error.to_string()))?;
        counters::set_text(&self.transaction, Rewriting::KEY, &text)?;
        self.transaction.execute("DELETE FROM openclaw_files", [])?;
        if rewriting.rewrite == Rewrite::NewIdentity {
            self.clear_vectors()?;
        }
        reached(Step::RewritingBegun);
        Ok(())
    }

    /// Records that everything was written anew.
    pub(crate) fn end_rewriting(&mut self, meta: &IndexMeta) -> Result<(), StoreError> {
        self.is_rewriting = false;
        counters::remove(&self.transaction, Rewriting::KEY)?;
        self.set_meta(meta)?;
        reached(Step::RewritingEnded);
        Ok(())
    }
}
