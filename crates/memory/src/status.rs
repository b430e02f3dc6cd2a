//! State of an index, for people and for `memory status`.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::cache;
use crate::db::{StoreError, table_exists};
use crate::files::{FileStat, Scan};
use crate::shared::Shared;
use crate::sync::SyncReport;
use crate::writer::{Source, is_shared, read_meta};
use openclaw_embedding::EmbedderIdentity;

/// State of one index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryStatus {
    /// Files in the index.
    pub files: usize,
    /// Chunks in the index.
    pub chunks: usize,
    /// Files and chunks of each source.
    pub sources: Vec<SourceStatus>,
    /// True if files differ from the index, or were not looked at.
    pub dirty: bool,
    /// The embedder that is set, or `None` for keywords alone.
    pub embedder: Option<EmbedderIdentity>,
    /// Provider and model that the index was made with, or `None` if it is empty.
    pub made_with: Option<(String, String)>,
    /// Dimensions of the vectors.
    pub dimensions: Option<usize>,
    /// Chunks that have a vector.
    pub vectors: usize,
    /// Chunks that wait for one.
    pub pending: usize,
    /// Vectors that are remembered.
    pub cache_entries: usize,
    /// True if OpenClaw 2026.2.9 uses this file without indexing anew.
    pub is_shared: bool,
    /// Bytes of the index file with its log.
    pub bytes: u64,
    /// Files that are left out, in words for people.
    pub issues: Vec<String>,
    /// Result of the last sync of this process.
    pub last_sync: SyncReport,
}

/// Files and chunks of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// The source.
    pub source: Source,
    /// Files that are there to be indexed, or `None` if they can't be listed.
    pub total_files: Option<usize>,
    /// Files in the index.
    pub files: usize,
    /// Chunks in the index.
    pub chunks: usize,
}

/// Reads the state. Blocks; writes nothing.
pub(crate) fn read(shared: &Shared) -> Result<MemoryStatus, StoreError> {
    let has_files = shared.settings.memory_files;
    let scan = if has_files { shared.roots.scan() } else { Scan::default() };
    let listed = shared
        .transcripts
        .as_ref()
        .filter(|_| shared.settings.sessions)
        .map(|transcripts| transcripts.list());
    let listed = listed.map(|listed| listed.ok());
    let mut wanted: HashMap<String, FileStat> =
        scan.files.iter().map(|file| (file.path.clone(), file.stat)).collect();
    for file in listed.iter().flatten().flatten() {
        wanted.insert(
            format!("sessions/{}", file.name),
            FileStat { size: file.size, modified: file.modified, inode: 0, device: 0 },
        );
    }
    let mut status = match shared.searcher.read(|connection| read_index(connection, &wanted)) {
        Ok(status) => status,
        Err(StoreError::Missing) => MemoryStatus { dirty: !wanted.is_empty(), ..MemoryStatus::default() },
        Err(error) => return Err(error),
    };
    if has_files {
        status.count_all(Source::Memory, scan.unreadable.is_empty().then_some(scan.files.len()));
    }
    if let Some(listed) = listed {
        status.count_all(Source::Sessions, listed.map(|listed| listed.len()));
    }
    status.issues = scan.issues;
    status.embedder = shared.embedder.lock().as_ref().map(|embedder| embedder.identity().clone());
    status.last_sync = shared.progress.lock().report.clone();
    let size = |suffix: &str| {
        let mut path = shared.settings.store.as_os_str().to_owned();
        path.push(suffix);
        std::fs::metadata(path).map_or(0, |metadata| metadata.len())
    };
    status.bytes = size("") + size("-wal");
    Ok(status)
}

impl MemoryStatus {
    fn count_all(&mut self, source: Source, total_files: Option<usize>) {
        match self.sources.iter_mut().find(|counted| counted.source == source) {
            Some(counted) => counted.total_files = total_files,
            None => self.sources.push(SourceStatus { source, total_files, files: 0, chunks: 0 }),
        }
    }
}

fn read_index(
    connection: &Connection,
    wanted: &HashMap<String, FileStat>,
) -> Result<MemoryStatus, StoreError> {
    for table in ["files", "chunks", "meta", "embedding_cache"] {
        if !table_exists(connection, table)? {
            return Err(StoreError::Missing);
        }
    }
    let has_ours =
        table_exists(connection, "openclaw_cache")? && table_exists(connection, "openclaw_pending")?;
    let count =
        |sql: &str| -> Result<usize, StoreError> { Ok(connection.query_row(sql, [], |row| row.get(0))?) };
    let mut sources: Vec<SourceStatus> = Vec::new();
    for source in [Source::Memory, Source::Sessions] {
        let number = |table: &str| -> Result<usize, StoreError> {
            let sql = format!("SELECT count(*) FROM {table} WHERE source = ?1");
            Ok(connection.query_row(&sql, [source.as_str()], |row| row.get(0))?)
        };
        let (files, chunks) = (number("files")?, number("chunks")?);
        if files + chunks > 0 {
            sources.push(SourceStatus { source, total_files: None, files, chunks });
        }
    }
    let meta = read_meta(connection)?;
    let chunks: usize = sources.iter().map(|source| source.chunks).sum();
    let vectors = if has_ours { count("SELECT count(*) FROM openclaw_vectors")? } else { 0 };
    Ok(MemoryStatus {
        files: sources.iter().map(|source| source.files).sum(),
        chunks,
        sources,
        dirty: !has_ours || is_dirty(connection, wanted)?,
        dimensions: if has_ours {
            crate::embed_pass::dimensions(connection)?
        } else {
            meta.as_ref().and_then(|meta| meta.vector_dims)
        },
        made_with: meta.map(|meta| (meta.provider, meta.model)),
        vectors,
        pending: if has_ours { count("SELECT count(*) FROM openclaw_pending")? } else { 0 },
        cache_entries: if has_ours {
            cache::count(connection)?
        } else {
            count("SELECT count(*) FROM embedding_cache")?
        },
        is_shared: is_shared(connection, i64::try_from(chunks).unwrap_or(i64::MAX), vectors > 0)?,
        ..MemoryStatus::default()
    })
}

/// Returns whether files were added, changed or removed since they were indexed.
fn is_dirty(connection: &Connection, wanted: &HashMap<String, FileStat>) -> Result<bool, StoreError> {
    let sql = "SELECT f.path, o.size, o.modified, f.mtime FROM files f LEFT JOIN openclaw_files o ON o.path = f.path";
    let mut rows = connection.prepare_cached(sql)?;
    let mut rows = rows.query([])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        let path: String = row.get(0)?;
        let Some(stat) = wanted.get(&path) else { return Ok(true) };
        let (size, modified): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
        // A file that was indexed right after it was written has no time in our table: then the other one tells.
        let is_same_time = match modified {
            Some(0) | None => (row.get::<_, f64>(3)? - stat.modified_ms()).abs() < 1.0,
            Some(modified) => modified == stat.modified,
        };
        if size.is_some_and(|size| u64::try_from(size).ok() != Some(stat.size)) || !is_same_time {
            return Ok(true);
        }
        seen += 1;
    }
    Ok(seen != wanted.len())
}
