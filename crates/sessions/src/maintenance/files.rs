//! Files of a sessions directory, by kind.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use openclaw_protocol::SessionId;

use crate::entry::SessionEntry;
use crate::key::{KeyRules, SessionKey};
use crate::layout::Layout;
use crate::store::Row;
use crate::time::parse_iso;

/// A sessions directory and the rows of its store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// The rows.
    pub rows: Vec<SessionRow>,
    /// The files.
    pub files: Vec<StateFile>,
}

/// Facts of a row that maintenance decides by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Session key.
    pub key: SessionKey,
    /// Last activity, Unix milliseconds.
    pub updated_at: i64,
    /// True if the row stays whatever its age: a main session, a labelled one, or one with work.
    pub stays: bool,
    /// Transcripts of the session in the directory.
    pub transcripts: Vec<PathBuf>,
}

/// A file of a sessions directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Kind of the file.
    pub kind: FileKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Time at which it was archived, or else last changed; Unix milliseconds.
    pub since: i64,
}

/// Kinds of files in a sessions directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `*.jsonl`
    Transcript,
    /// `*.jsonl.deleted.<time>` and `*.jsonl.reset.<time>`: of sessions that are no more.
    Archive,
    /// `*.jsonl.bak…` and other earlier versions of transcripts.
    Backup,
    /// The store, its journal, locks, anything else.
    Other,
}

impl FileKind {
    /// The kind of a file by its name, and the time in it.
    pub(crate) fn of(name: &str) -> (Self, Option<i64>) {
        if name.ends_with(".jsonl") {
            return (Self::Transcript, None);
        }
        let Some((_, rest)) = name.split_once(".jsonl.") else { return (Self::Other, None) };
        match rest.split_once('.') {
            Some(("deleted" | "reset", stamp)) => (Self::Archive, archived_at(stamp)),
            Some(("bak", stamp)) => (Self::Backup, archived_at(stamp)),
            _ if rest.starts_with("bak") => (Self::Backup, None),
            _ => (Self::Other, None),
        }
    }
}

/// The time in an archive's name: ISO with `-` for `:`.
fn archived_at(stamp: &str) -> Option<i64> {
    let (date, time) = stamp.split_once('T')?;
    parse_iso(&format!("{date}T{}", time.replacen('-', ":", 2)))
}

/// The id of the session that a transcript's name tells: what stands before the topic.
pub(crate) fn session_of(name: &str) -> &str {
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    stem.split_once("-topic-").map_or(stem, |(id, _)| id)
}

/// A row, and how its transcripts are found.
#[derive(Debug)]
pub(super) struct TranscriptRow {
    /// Row, without its transcripts.
    row: SessionRow,
    session_id: Option<SessionId>,
    /// The file it names, where it is in the directory.
    file: Option<PathBuf>,
}

impl TranscriptRow {
    pub(super) fn of(layout: &Layout, rules: &KeyRules, row: &Row, is_busy: bool) -> Self {
        let listed = SessionRow {
            key: row.key.clone(),
            updated_at: row.entry.updated_at_ms(),
            stays: is_busy || stays(rules, row),
            transcripts: Vec::new(),
        };
        let file = file_of(layout, rules, &row.key, &row.entry);
        Self { row: listed, session_id: row.entry.session_id.clone(), file }
    }
}

/// Lists a sessions directory and what rows are to it. Blocking.
///
/// # Errors
/// When the directory can't be read; a missing one is empty.
pub(super) fn inventory(dir: &Path, rows: Vec<TranscriptRow>) -> io::Result<Inventory> {
    let files = list(dir)?;
    let all = Transcripts::of(&files);
    let rows = rows
        .into_iter()
        .map(|TranscriptRow { row, session_id, file }| {
            let transcripts = all.named(session_id.as_ref(), file);
            SessionRow { transcripts, ..row }
        })
        .collect();
    Ok(Inventory { rows, files })
}

fn file_of(layout: &Layout, rules: &KeyRules, key: &SessionKey, entry: &SessionEntry) -> Option<PathBuf> {
    layout.named_beside_store(&rules.agent_of(key), entry)
}

fn stays(rules: &KeyRules, row: &Row) -> bool {
    let is_special = row.key.is_global() || row.key.is_unknown() || rules.is_main(&row.key);
    is_special || row.entry.label.as_deref().is_some_and(|label| !label.trim().is_empty())
}

/// The files of a directory; a missing one has none.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<StateFile>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let (Ok(name), Ok(meta)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
        if !meta.is_file() {
            continue;
        }
        let (kind, archived) = FileKind::of(&name);
        let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        files.push(StateFile {
            path: entry.path(),
            kind,
            bytes: meta.len(),
            since: archived.unwrap_or(modified),
        });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Transcripts by the session that their name tells.
pub(crate) struct Transcripts<'a> {
    by_session: std::collections::HashMap<&'a str, Vec<&'a Path>>,
    all: HashSet<&'a Path>,
}

impl<'a> Transcripts<'a> {
    pub(crate) fn of(files: &'a [StateFile]) -> Self {
        let mut by_session: std::collections::HashMap<&str, Vec<&Path>> = std::collections::HashMap::new();
        let mut all = HashSet::new();
        for file in files.iter().filter(|file| file.kind == FileKind::Transcript) {
            if let Some(name) = file.path.file_name().and_then(|name| name.to_str()) {
                by_session.entry(session_of(name)).or_default().push(&file.path);
                all.insert(&*file.path);
            }
        }
        Self { by_session, all }
    }

    /// The transcripts of a row in this directory: those that bear its session id, and its explicit one.
    pub(crate) fn of_entry(
        &self,
        layout: &Layout,
        rules: &KeyRules,
        key: &SessionKey,
        entry: &SessionEntry,
    ) -> Vec<PathBuf> {
        self.named(entry.session_id.as_ref(), file_of(layout, rules, key, entry))
    }

    fn named(&self, session_id: Option<&SessionId>, file: Option<PathBuf>) -> Vec<PathBuf> {
        let by_id = session_id.and_then(|id| self.by_session.get(id.as_str()));
        let mut found: Vec<PathBuf> = by_id.into_iter().flatten().map(|path| path.to_path_buf()).collect();
        if let Some(path) = file.filter(|path| self.all.contains(&**path) && !found.contains(path)) {
            found.push(path);
        }
        found
    }
}
