//! Memory: the index over `MEMORY.md` and `memory/*.md`, and search in it.
//!
//! The files are the truth and belong to the workspace. The index is derived from them: one SQLite file for each agent,
//! with the tables of OpenClaw 2026.2.9, so that either program reads and writes it, and with tables of our own beside
//! them that can be dropped at any time.
//!
//! Begin with [`Memory`]: it is opened with [`MemorySettings`], an optional [`Embedder`] and optional [`TranscriptSource`],
//! and is asked to [`sync`](Memory::sync), [`search`](Memory::search), [`get`](Memory::get), tell its
//! [`status`](Memory::status) and [`forget`](Memory::forget). Keywords always work; vectors join in while an embedder
//! answers. Below it:
//!
//! - `files`, `chunk`, `sessions`: what is indexed, and in which pieces;
//! - `db`, `writer`, `counters`, `identity`, `cache`: the index file and its changes;
//! - `words`, `stems`, `postings`, `segments`: keywords;
//! - `codes`, `resident`: vectors;
//! - `rank`, `search`: from a query to hits;
//! - `sync`, `shared`, `worker`, `text_pass`, `embed_pass`, `watch`: keeping in step with the files.
//!
//! The crate knows nothing of agents, the gateway or configuration files, and never reaches the network.

mod beneath;
mod cache;
pub mod chunk;
mod codes;
mod counters;
mod db;
mod embed_pass;
mod files;
mod forget;
mod get;
pub mod identity;
mod memory;
mod postings;
mod rank;
mod resident;
mod search;
mod segments;
mod sessions;
pub mod settings;
mod shared;
mod status;
mod stems;
mod steps;
mod sync;
mod text_pass;
mod watch;
mod words;
mod worker;
mod writer;

/// Entries of fuzz targets into private parts.
#[doc(hidden)]
pub mod fuzzing {
    /// Reads the terms of a text and those of a query, and returns how many the query has.
    #[must_use]
    pub fn terms(text: &str) -> usize {
        use crate::words::WordForm::Stem;

        crate::words::for_each_term(text, Stem, |_| {});
        crate::words::query_terms(text, Stem, 256).len()
    }

    /// Asks SQLite what OpenClaw 2026.2.9 would ask for a query, and returns whether it understands that.
    #[must_use]
    pub fn keyword_query(query: &str) -> bool {
        thread_local! {
            static TABLE: Option<rusqlite::Connection> = {
                let table = rusqlite::Connection::open_in_memory().ok();
                let sql = "CREATE VIRTUAL TABLE chunks_fts USING fts5(text); INSERT INTO chunks_fts VALUES ('apple trees')";
                table.filter(|table| table.execute_batch(sql).is_ok())
            };
        }
        let Some(query) = crate::search::compat_query(query) else { return true };
        let sql = "SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?1";
        TABLE.with(|table| {
            table
                .as_ref()
                .is_some_and(|table| table.query_row(sql, [query], |row| row.get::<_, i64>(0)).is_ok())
        })
    }

    /// Renders a transcript, and returns its lines with their numbers in the file.
    #[must_use]
    pub fn transcript(jsonl: &str) -> (String, Vec<u32>) {
        crate::sessions::render(jsonl, str::to_owned).into_parts()
    }

    /// Reads a list of documents.
    pub fn postings(bytes: &[u8]) {
        crate::postings::for_each_posting(bytes, |_, _| {});
    }
}

#[cfg(test)]
mod tests;

pub use forget::{ForgetEntry, ForgetOutcome};
pub use get::{GetAnswer, GetError, GetRequest, cut, get_below};
pub use memory::{Memory, MemoryError, SearchAnswer, SearchMode, SearchRequest};
pub use openclaw_embedding::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};
pub use search::Hit;
pub use sessions::{TranscriptFile, TranscriptSource, transcript_text};
pub use settings::MemorySettings;
pub use status::{MemoryStatus, SourceStatus};
pub use sync::{SyncReport, SyncRequest, SyncUntil};
pub use writer::Source;
