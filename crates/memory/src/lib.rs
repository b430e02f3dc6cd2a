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
//! - `worker`, `text_pass`, `embed_pass`, `watch`: keeping in step with the files.
//!
//! The crate knows nothing of agents, the gateway or configuration files, and never reaches the network.

mod beneath;
mod cache;
pub mod chunk;
mod codes;
mod counters;
mod db;
mod embed_pass;
pub mod embedder;
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
mod status;
mod stems;
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

    /// Renders a transcript.
    #[must_use]
    pub fn transcript(jsonl: &str) -> String {
        crate::sessions::render(jsonl, str::to_owned).text
    }

    /// Reads a list of documents.
    pub fn postings(bytes: &[u8]) {
        crate::postings::for_each_posting(bytes, |_, _| {});
    }
}

#[cfg(test)]
mod tests;

pub use embedder::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};
pub use forget::ForgetEntry;
pub use get::{GetAnswer, GetError, GetRequest};
pub use memory::{Memory, MemoryError, SearchAnswer, SearchMode, SearchRequest};
pub use search::Hit;
pub use sessions::{TranscriptFile, TranscriptSource};
pub use settings::MemorySettings;
pub use status::{MemoryStatus, SourceStatus};
pub use worker::{SyncReport, SyncRequest, SyncUntil};
pub use writer::Source;
