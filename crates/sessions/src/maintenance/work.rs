//! Carrying out a maintenance plan.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::AgentId;

use super::files::{TranscriptRow, inventory};
use super::{FileKind, Inventory, MaintenancePlan, Mode, Policy, RowRemoval, plan};
use crate::disk;
use crate::key::SessionKey;
use crate::layout::{ArchiveReason, Layout, archive_path};
use crate::store::{Query, Row, Rows, SessionStore, StoreError, gather};
use crate::transcript::{TranscriptLock, TranscriptRef, Transcripts};

/// Copies of a big store that are kept beside it.
const ROTATED_KEPT: usize = 3;
/// Time to wait for a transcript that is in use; after that its session counts as in use.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);
/// Things to be done that the log names one by one.
const NAMED: usize = 20;

/// The files that are maintained. Made at start, where the implementation of the stores is chosen.
#[derive(Debug, Clone)]
pub struct Maintenance {
    layout: Layout,
}

impl Maintenance {
    /// Maintains the files of a layout.
    pub fn new(layout: Layout) -> Self {
        Self { layout }
    }

    /// Work for these configured agents; agents found on disk are added. `is_busy` tells whether a
    /// session has work that waits or is under way.
    pub fn work(
        &self,
        store: Arc<dyn SessionStore>,
        agents: Vec<AgentId>,
        is_busy: Arc<dyn Fn(&SessionKey) -> bool + Send + Sync>,
    ) -> MaintenanceJob {
        MaintenanceJob { store, layout: self.layout.clone(), agents, is_busy }
    }
}

/// Store, layout, agents and policy that maintenance works on.
#[derive(Clone)]
pub struct MaintenanceJob {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) layout: Layout,
    pub(super) agents: Vec<AgentId>,
    pub(super) is_busy: Arc<dyn Fn(&SessionKey) -> bool + Send + Sync>,
}

/// Result of maintenance: the changes made, or those it would make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaintenanceReport {
    /// Rows removed.
    pub removed: usize,
    /// Transcripts archived.
    pub archived: usize,
    /// Files deleted for good.
    pub deleted: usize,
    /// Bytes that freed.
    pub freed: u64,
}

/// Maintenance could not be done; the next one tries again.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk refused.
    #[error("cannot maintain {path}: {source}")]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// Error from the system.
        #[source]
        source: io::Error,
    },
}

/// Maintains every store. `now` in Unix milliseconds.
///
/// # Errors
/// [`MaintenanceError`]; what was done before it stays done.
pub async fn run(
    work: &MaintenanceJob,
    policy: &Policy,
    now: i64,
) -> Result<MaintenanceReport, MaintenanceError> {
    let mut report = MaintenanceReport::default();
    let default = work.store.rules().default_agent.clone();
    let agents = [default].into_iter().chain(work.agents.iter().cloned()).chain(work.layout.agents_on_disk());
    let mut seen = HashSet::new();
    for agent in agents {
        if seen.insert(work.layout.store_path(&agent)) {
            let done = maintain(work, &agent, policy, now).await?;
            report.removed += done.removed;
            report.archived += done.archived;
            report.deleted += done.deleted;
            report.freed += done.freed;
        }
    }
    Ok(report)
}

async fn maintain(
    work: &MaintenanceJob,
    agent: &AgentId,
    policy: &Policy,
    now: i64,
) -> Result<MaintenanceReport, MaintenanceError> {
    let store = work.layout.store_path(agent);
    let found = look(work, agent).await?;
    let planned = plan(&found, policy, now);
    if planned.still_too_big {
        tracing::warn!(
            store = %store.display(),
            "the sessions directory is over session.maintenance.maxDiskBytes, and what is left in it stays"
        );
    }
    if planned.remove.is_empty() && planned.delete.is_empty() {
        return Ok(MaintenanceReport::default());
    }
    tell(&store, &planned, policy.mode);
    match policy.mode {
        Mode::Warn => Ok(MaintenanceReport::default()),
        Mode::Enforce => carry_out(work, &store, planned, policy, now).await,
    }
}

async fn look(work: &MaintenanceJob, agent: &AgentId) -> Result<Inventory, MaintenanceError> {
    let which = if work.layout.is_per_agent() { Rows::Of(agent) } else { Rows::All };
    let (layout, rules, busy) = (work.layout.clone(), work.store.rules().clone(), Arc::clone(&work.is_busy));
    let look = move |row: Row| Some(TranscriptRow::of(&layout, &rules, &row, busy(&row.key)));
    let rows = gather(&*work.store, which, &Query::default(), look).await?;
    let dir = work.layout.sessions_dir(agent);
    let at = dir.clone();
    blocking(&dir, move || inventory(&at, rows)).await
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, MaintenanceError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|_| Err(io::Error::other("interrupted")));
    done.map_err(|source| MaintenanceError::Io { path: path.to_path_buf(), source })
}

/// Logs one line for each kind of change, with the first few items by name.
fn tell(store: &Path, planned: &MaintenancePlan, mode: Mode) {
    let store = store.display();
    let verb = match mode {
        Mode::Warn => "would be",
        Mode::Enforce => "is",
    };
    for removal in planned.remove.iter().take(NAMED) {
        tracing::info!(key = %removal.key, reason = removal.reason.as_str(), "session {verb} removed");
    }
    for deletion in planned.delete.iter().take(NAMED) {
        tracing::info!(file = %deletion.path.display(), reason = deletion.reason.as_str(), "file {verb} deleted");
    }
    let bytes: u64 = planned.delete.iter().map(|deletion| deletion.bytes).sum();
    let (sessions, files) = (planned.remove.len(), planned.delete.len());
    match mode {
        Mode::Warn => tracing::warn!(
            %store, sessions, files, bytes,
            "session maintenance would remove this much; set session.maintenance.mode to \"enforce\" to let it"
        ),
        Mode::Enforce => {
            tracing::info!(%store, sessions, files, bytes, "session maintenance removes this much")
        }
    }
}

async fn carry_out(
    work: &MaintenanceJob,
    store: &Path,
    planned: MaintenancePlan,
    policy: &Policy,
    now: i64,
) -> Result<MaintenanceReport, MaintenanceError> {
    let mut report = MaintenanceReport::default();
    if !planned.remove.is_empty()
        && let Some(limit) = policy.rotate_bytes
    {
        work.store.flush().await?;
        let at = store.to_path_buf();
        blocking(store, move || rotate(&at, limit, now)).await?;
    }
    // Transcripts of rows that were used meanwhile stay, also where the plan would delete them.
    let mut spared: HashSet<PathBuf> = HashSet::new();
    let doomed: HashSet<&Path> = planned.delete.iter().map(|deletion| &*deletion.path).collect();
    for removal in &planned.remove {
        match remove(work, removal, &doomed, now).await? {
            Some(archived) => {
                report.removed += 1;
                report.archived += archived;
            }
            None => spared.extend(removal.archive.iter().cloned()),
        }
    }
    let used = if planned.delete.is_empty() { Used::default() } else { Used::now(work).await? };
    for deletion in planned.delete {
        if spared.contains(&deletion.path) || used.has(&deletion.path) {
            continue;
        }
        let path = deletion.path.clone();
        blocking(store, move || remove_file(&path)).await?;
        report.deleted += 1;
        report.freed += deletion.bytes;
    }
    tracing::info!(
        store = %store.display(), sessions = report.removed, archived = report.archived, files = report.deleted,
        bytes = report.freed, "session maintenance done"
    );
    Ok(report)
}

/// The transcripts that rows use: some may have come to do so since the plan was made.
#[derive(Default)]
struct Used {
    sessions: HashSet<String>,
    /// Names of files, wherever the rows say that they are.
    files: HashSet<OsString>,
}

impl Used {
    async fn now(work: &MaintenanceJob) -> Result<Self, MaintenanceError> {
        let mut used = Self::default();
        let names = |row: Row| {
            let id = row.entry.session_id.as_ref().map(|id| id.as_str().to_owned());
            let file = row.entry.session_file.as_deref().map(|file| Path::new(file.trim()));
            Some((id, file.and_then(Path::file_name).map(OsString::from)))
        };
        for (session, file) in gather(&*work.store, Rows::All, &Query::default(), names).await? {
            used.sessions.extend(session);
            used.files.extend(file);
        }
        Ok(used)
    }

    /// Archives are used by none.
    fn has(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        FileKind::of(name).0 == FileKind::Transcript
            && (self.files.contains(OsStr::new(name))
                || self.sessions.contains(super::files::session_of(name)))
    }
}

/// Removes a row and archives its transcripts, unless it is or was used meanwhile. Returns how many were archived.
async fn remove(
    work: &MaintenanceJob,
    removal: &RowRemoval,
    doomed: &HashSet<&Path>,
    now: i64,
) -> Result<Option<usize>, MaintenanceError> {
    let mut locks = Vec::new();
    let transcripts = Transcripts::in_files(work.layout.clone());
    for transcript in removal.archive.iter().map(TranscriptRef::new) {
        let lock = TranscriptLock::acquire_now(&transcripts, &transcript);
        match tokio::time::timeout(LOCK_PATIENCE, lock).await {
            Ok(Ok(lock)) => locks.push(lock),
            Ok(Err(_)) | Err(_) => return Ok(None),
        }
    }
    let row = work.store.get(&removal.key).await?;
    let is_unused = row.is_some_and(|row| row.entry.updated_at_ms() == removal.updated_at);
    if !is_unused || (work.is_busy)(&removal.key) {
        return Ok(None);
    }
    work.store.delete(&removal.key).await?;
    let mut archived = 0;
    for transcript in removal.archive.iter().filter(|transcript| !doomed.contains(&***transcript)) {
        let (from, to) = (transcript.clone(), archive_path(transcript, ArchiveReason::Deleted, now));
        match blocking(transcript, move || std::fs::rename(from, to)).await {
            Ok(()) => archived += 1,
            Err(error) => tracing::warn!(%error, "cannot archive the transcript of a removed session"),
        }
    }
    Ok(Some(archived))
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Keeps a copy of a big store as `<store>.bak.<ms>`, and of such copies the newest.
fn rotate(store: &Path, limit: u64, now: i64) -> io::Result<()> {
    let size = match std::fs::metadata(store) {
        Ok(meta) => meta.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if size <= limit {
        return Ok(());
    }
    let copy = disk::beside(store, &format!("bak.{now}"));
    std::fs::copy(store, &copy)?;
    crate::backup::make_private(&copy)?;
    tracing::info!(store = %store.display(), copy = %copy.display(), "kept a copy of the session store");
    let prefix = format!("{}.bak.", store.file_name().unwrap_or_default().to_string_lossy());
    let mut copies: Vec<(i64, PathBuf)> = std::fs::read_dir(store.parent().unwrap_or(Path::new(".")))?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let ms = entry.file_name().to_str()?.strip_prefix(&prefix)?.parse().ok()?;
            Some((ms, entry.path()))
        })
        .collect();
    copies.sort_unstable();
    let surplus = copies.len().saturating_sub(ROTATED_KEPT);
    copies.into_iter().take(surplus).try_for_each(|(_, path)| remove_file(&path))
}
