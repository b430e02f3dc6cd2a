//! The file store: rows in memory, OpenClaw's `sessions.json` on disk, a journal beside it.
//!
//! Reading is a look into memory after a look at the file's stamp. Everything else is a command to the store's own
//! thread ([`super::writer`]), which is the only one that changes files and rows.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use openclaw_protocol::AgentId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot};

use super::journal::LineDurability;
use super::query::{Query, Selection};
use super::recent::Recent;
use super::select::SelectRequest;
use super::table::RowTable;
use super::writer::{StoreTarget, StoreWriter, WriterCommand};
use super::{Change, Row, Rows, SessionStore, StoreError, StoreFuture, Visitor};
use crate::disk::{self, FileVersion, SharedDisk};
use crate::key::{KeyRules, SessionKey};
use crate::layout::Layout;

/// Options of a [`FileStore`].
#[derive(Debug, Clone)]
pub struct FileStoreOptions {
    /// Layout of the files.
    pub layout: Layout,
    /// Rules for reading keys.
    pub rules: KeyRules,
    /// Agents that exist by configuration; those on disk are found.
    pub agents: Vec<AgentId>,
    /// Quiet time before `sessions.json` is written; longer for a big store.
    pub quiet: Duration,
    /// Longest delay of that write when the store is never quiet; longer for a big store.
    pub at_most: Duration,
    /// Size of the journal in bytes after which the file is written at once; larger for a big
    /// store.
    pub journal_limit: u64,
    pub(crate) disk: SharedDisk,
}

impl FileStoreOptions {
    /// The defaults: one second of quiet, four at most, 4 MiB of journal. With what a write takes, the file is two seconds
    /// behind a quiet store, and five behind one that never is.
    pub fn new(layout: Layout, rules: KeyRules, agents: Vec<AgentId>) -> Self {
        Self {
            layout,
            rules,
            agents,
            quiet: Duration::from_secs(1),
            at_most: Duration::from_secs(4),
            journal_limit: 4 * 1024 * 1024,
            disk: disk::real(),
        }
    }
}

/// State shared by readers and the writer: the rows of one file and the version of the file they
/// are from.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) table: RowTable,
    pub(crate) stamp: Option<FileVersion>,
    pub(crate) recent: Mutex<Recent>,
}

impl Published {
    pub(crate) fn new(table: RowTable, stamp: Option<FileVersion>) -> Self {
        Self { table, stamp, recent: Mutex::default() }
    }
}

/// Stores by path.
pub(crate) type Shelf = RwLock<HashMap<PathBuf, Arc<RwLock<Published>>>>;

/// [`SessionStore`] on OpenClaw's files. Cheap to clone; all clones share one thread, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct FileStore {
    inner: Arc<FileStoreState>,
}

#[derive(Debug)]
struct FileStoreState {
    options: FileStoreOptions,
    /// Agents that are configured by now.
    agents: RwLock<Vec<AgentId>>,
    shelf: Arc<Shelf>,
    commands: mpsc::Sender<WriterCommand>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Commands that wait for the thread; senders wait when it is full.
const QUEUE: usize = 1024;

impl FileStore {
    /// Starts the store. Files are read when they are first needed.
    pub fn open(options: FileStoreOptions) -> Result<Self, StoreError> {
        let shelf = Arc::new(Shelf::default());
        let (commands, receiver) = mpsc::channel(QUEUE);
        let writer = StoreWriter::new(options.clone(), Arc::clone(&shelf));
        let started =
            std::thread::Builder::new().name("session-store".to_owned()).spawn(move || writer.run(receiver));
        match started {
            Ok(thread) => {
                let thread = Mutex::new(Some(thread));
                let agents = RwLock::new(options.agents.clone());
                Ok(Self { inner: Arc::new(FileStoreState { options, agents, shelf, commands, thread }) })
            }
            Err(source) => {
                let path = options.layout.state_dir().to_path_buf();
                Err(StoreError::Io { what: "start", path, source: Arc::new(source) })
            }
        }
    }

    /// Agents that are configured or have a directory, the default agent first.
    pub fn agents(&self) -> Vec<AgentId> {
        let options = &self.inner.options;
        let mut out = vec![options.rules.default_agent.clone()];
        let configured = self.inner.agents.read().clone();
        for agent in configured.into_iter().chain(options.layout.agents_on_disk()) {
            if !out.contains(&agent) {
                out.push(agent);
            }
        }
        out
    }

    fn target(&self, agent: &AgentId) -> StoreTarget {
        let options = &self.inner.options;
        let owner = if options.layout.is_per_agent() { agent } else { &options.rules.default_agent };
        StoreTarget { path: options.layout.store_path(agent), agent: owner.clone() }
    }

    /// The rows of a file as it is on disk now, read again when it was changed by someone else.
    async fn fresh(&self, target: StoreTarget) -> Result<Arc<RwLock<Published>>, StoreError> {
        if self.inner.commands.is_closed() {
            return Err(StoreError::Closed);
        }
        if let Some(published) = self.inner.shelf.read().get(&target.path).cloned() {
            let known = published.read().stamp;
            let stamp = self.inner.options.disk.stamp(&target.path);
            if stamp.is_ok_and(|stamp| stamp == known) {
                return Ok(published);
            }
        }
        let path = target.path.clone();
        self.ask(|reply| WriterCommand::Load { target, reply }).await?;
        self.inner.shelf.read().get(&path).cloned().ok_or(StoreError::Closed)
    }

    async fn change(
        &self,
        key: &SessionKey,
        change: Change,
        durability: LineDurability,
    ) -> Result<Row, StoreError> {
        let target = self.target(&self.rules().agent_of(key));
        let key = key.clone();
        self.ask(|reply| WriterCommand::Update { target, key, change, durability, reply }).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> WriterCommand,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.inner.commands.send(command(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// A question to the files that hold those rows, as they are on disk now.
    async fn question(&self, which: Rows<'_>, query: &Query) -> Result<SelectRequest, StoreError> {
        let agents = match which {
            Rows::All => self.agents(),
            Rows::Of(agent) => vec![agent.clone()],
        };
        let owner = match which {
            Rows::Of(agent) if !self.inner.options.layout.is_per_agent() => Some(agent.clone()),
            Rows::Of(_) | Rows::All => None,
        };
        let mut seen = Vec::new();
        let mut files = Vec::new();
        for agent in agents {
            let target = self.target(&agent);
            if !seen.contains(&target.path) {
                seen.push(target.path.clone());
                files.push(self.fresh(target).await?);
            }
        }
        Ok(SelectRequest { files, query: query.clone(), rules: self.inner.options.rules.clone(), owner })
    }

    async fn select_in(&self, which: Rows<'_>, query: &Query) -> Result<Selection, StoreError> {
        let ask = self.question(which, query).await?;
        if ask.is_quick() {
            return Ok(ask.answer());
        }
        tokio::task::spawn_blocking(move || ask.answer()).await.map_err(|_| StoreError::Closed)
    }
}

impl SessionStore for FileStore {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>> {
        Box::pin(async move {
            let target = self.target(&self.rules().agent_of(key));
            let published = self.fresh(target).await?;
            let published = published.read();
            let Some((stored, row)) = published.table.find(key) else { return Ok(None) };
            let entry = published.recent.lock().entry(row);
            Ok(Some(Row { key: key.clone().spelled_as(stored), entry }))
        })
    }

    fn select<'a>(&'a self, which: Rows<'a>, query: &'a Query) -> StoreFuture<'a, Selection> {
        Box::pin(self.select_in(which, query))
    }

    fn visit<'a>(&'a self, which: Rows<'a>, query: &'a Query, visitor: Visitor) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let ask = self.question(which, query).await?;
            tokio::task::spawn_blocking(move || ask.show(visitor)).await.map_err(|_| StoreError::Closed)
        })
    }

    fn update<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row> {
        Box::pin(self.change(key, change, LineDurability::Synced))
    }

    fn record<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row> {
        Box::pin(self.change(key, change, LineDurability::Written))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>> {
        let target = self.target(&self.rules().agent_of(key));
        let key = key.clone();
        Box::pin(self.ask(move |reply| WriterCommand::Delete { target, key, reply }))
    }

    fn flush(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.ask(|reply| WriterCommand::Flush { then_close: false, reply }))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            let flushed = self.ask(|reply| WriterCommand::Flush { then_close: true, reply }).await;
            let thread = self.inner.thread.lock().take();
            if let Some(thread) = thread {
                // A thread that panicked has said so itself.
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
            flushed
        })
    }

    fn rules(&self) -> &KeyRules {
        &self.inner.options.rules
    }

    fn prepare(&self) {
        let options = &self.inner.options;
        let dir = options.layout.state_dir().to_path_buf();
        match disk::sync_way_to(&*options.disk, &dir.join("agents"), None) {
            Ok(()) => drop(self.inner.commands.blocking_send(WriterCommand::Rooted { dir })),
            Err(error) => tracing::debug!(dir = %dir.display(), %error, "names could not be made durable"),
        }
    }

    fn set_agents(&self, agents: Vec<AgentId>) {
        *self.inner.agents.write() = agents;
    }

    fn found_agents(&self) -> Vec<AgentId> {
        self.inner.options.layout.agents_on_disk()
    }

    fn location_of(&self, agent: &AgentId) -> String {
        self.inner.options.layout.store_path(agent).display().to_string()
    }

    fn location(&self) -> String {
        self.inner.options.layout.listed_path(&self.rules().default_agent)
    }
}
