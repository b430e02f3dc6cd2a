//! The skills of all agents, kept between turns (spec `agent-runtime.md` §6.5). A turn that finds nothing changed looks at no
//! file: [`super::watch`] does that beside the turns.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use openclaw_protocol::AgentId;
use openclaw_sessions::entry::Json;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::library::Library;
use super::snapshot::Snapshot;
use super::source::{Root, roots};

/// Workspaces that are kept; a host has few agents.
const MOST_SHELVES: usize = 64;
/// Snapshots that sessions still go on with although a newer one has been made, for each agent.
const MOST_FORMER: usize = 8;

/// Cache of the skills of all agents.
#[derive(Debug, Default)]
pub struct SkillBook {
    shelves: Mutex<HashMap<PathBuf, Shelf>>,
    /// True if a watcher observes the files between turns.
    is_watched: AtomicBool,
    /// Notifies that a library was read from other directories, or for the first time.
    shelved: Notify,
}

/// Agent whose skills are requested.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The settings in force.
    pub config: &'a Arc<Config>,
    /// The agent.
    pub agent: &'a AgentId,
    /// Workspace of the agent.
    pub workspace: &'a Path,
}

/// Turn of a session for which skills are requested.
#[derive(Debug, Clone, Copy)]
pub enum Occasion<'a> {
    /// The first one: programs are looked for anew.
    Begins,
    /// A later one, of a session whose row has this mark.
    GoesOn(Option<&'a Json>),
}

/// The skills of one workspace.
#[derive(Debug)]
struct Shelf {
    roots: Vec<Root>,
    library: Arc<Library>,
    /// Grows when something changes. Begins with the time, so that sessions of an earlier process look again.
    version: i64,
    agents: HashMap<AgentId, Offered>,
}

/// Skills that the runs of one agent were given.
#[derive(Debug)]
struct Offered {
    config: Arc<Config>,
    latest: Arc<Snapshot>,
    /// Earlier snapshots of the same version, made before a program came or went.
    former: Vec<Arc<Snapshot>>,
}

/// Source from which a snapshot was made.
enum Basis {
    /// Cached library at this version.
    Kept(Arc<Library>, i64),
    /// Library that was read from disk.
    Read(Arc<Library>),
}

impl SkillBook {
    /// Returns the snapshot for a turn.
    pub async fn for_turn(&self, wanted: Wanted<'_>, occasion: Occasion<'_>) -> Arc<Snapshot> {
        match self.kept(wanted, occasion) {
            Some(kept) => kept,
            None => self.make(wanted).await,
        }
    }

    /// Returns the snapshot of an earlier turn if it is still valid.
    fn kept(&self, wanted: Wanted<'_>, occasion: Occasion<'_>) -> Option<Arc<Snapshot>> {
        let shelves = self.shelves.lock();
        let shelf = shelves.get(wanted.workspace)?;
        let offered = shelf.agents.get(wanted.agent)?;
        if !Arc::ptr_eq(&offered.config, wanted.config) || offered.latest.version != shelf.version {
            return None;
        }
        match occasion {
            Occasion::GoesOn(mark) => Some(offered.marked(mark)),
            // Without skills, no installed program can make one usable.
            Occasion::Begins if self.keeps(wanted.config) && shelf.library.skills.is_empty() => {
                Some(Arc::clone(&offered.latest))
            }
            Occasion::Begins => None,
        }
    }

    async fn make(&self, wanted: Wanted<'_>) -> Arc<Snapshot> {
        let roots = roots(wanted.config, wanted.workspace);
        let kept = self.library_of(wanted, &roots);
        let (config, agent) = (Arc::clone(wanted.config), wanted.agent.clone());
        let making = tokio::task::spawn_blocking(move || {
            let basis = kept.unwrap_or_else(|| Basis::Read(Arc::new(Library::read(&roots))));
            let (Basis::Kept(library, _) | Basis::Read(library)) = &basis;
            let made = Snapshot::of(library, &config, &agent);
            (roots, basis, made)
        });
        match making.await {
            Ok((roots, basis, made)) => self.keep(wanted, roots, basis, made),
            Err(error) => {
                tracing::error!(%error, agent = %wanted.agent, "the skills could not be read, this turn has none");
                Arc::default()
            }
        }
    }

    /// Returns the cached library of these directories if a watcher keeps it current.
    fn library_of(&self, wanted: Wanted<'_>, roots: &[Root]) -> Option<Basis> {
        let shelves = self.shelves.lock();
        let shelf = shelves.get(wanted.workspace)?;
        let is_true = self.keeps(wanted.config) && shelf.roots == roots;
        is_true.then(|| Basis::Kept(Arc::clone(&shelf.library), shelf.version))
    }

    /// Returns true if cached libraries are re-read when they change.
    fn keeps(&self, config: &Config) -> bool {
        self.is_watched.load(Ordering::Relaxed) && config.skills.load.is_watched()
    }

    fn keep(&self, wanted: Wanted<'_>, roots: Vec<Root>, basis: Basis, made: Snapshot) -> Arc<Snapshot> {
        let mut shelves = self.shelves.lock();
        if shelves.len() >= MOST_SHELVES && !shelves.contains_key(wanted.workspace) {
            shelves.clear();
        }
        if matches!(basis, Basis::Read(_)) {
            self.shelved.notify_one();
        }
        let shelf = match (shelves.get_mut(wanted.workspace), basis) {
            // Changed meanwhile: the next turn makes it anew.
            (Some(shelf), Basis::Kept(_, version)) if shelf.version != version => {
                return Arc::new(made.at_version(version));
            }
            (Some(shelf), Basis::Kept(..)) => shelf,
            (Some(shelf), Basis::Read(library)) => {
                shelf.put(library);
                shelf.roots = roots;
                shelf
            }
            (None, Basis::Kept(library, _) | Basis::Read(library)) => {
                library.report(None);
                let shelf = Shelf { roots, library, version: now_ms(), agents: HashMap::new() };
                shelves.entry(wanted.workspace.to_owned()).or_insert(shelf)
            }
        };
        shelf.offer(wanted, made)
    }

    /// Has every session look again at what there is for skills, such as after a program was installed.
    pub fn look_again(&self) {
        self.shelves.lock().values_mut().for_each(Shelf::bump);
    }

    /// Switches to watched mode: from now on the watcher calls [`Self::put`] when something
    /// changes.
    pub(super) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Waits until something is kept that was read by a turn.
    pub(super) async fn shelved(&self) {
        self.shelved.notified().await;
    }

    /// Returns the cache: each workspace with its roots and its library.
    pub(super) fn libraries(&self) -> Vec<(PathBuf, Vec<Root>, Arc<Library>)> {
        let shelves = self.shelves.lock();
        let kept = |(workspace, shelf): (&PathBuf, &Shelf)| {
            (workspace.clone(), shelf.roots.clone(), Arc::clone(&shelf.library))
        };
        shelves.iter().map(kept).collect()
    }

    /// Stores the current library of a workspace.
    pub(super) fn put(&self, workspace: &Path, roots: &[Root], library: Library) {
        let mut shelves = self.shelves.lock();
        if let Some(shelf) = shelves.get_mut(workspace).filter(|shelf| shelf.roots == roots) {
            shelf.put(Arc::new(library));
        }
    }
}

impl Shelf {
    fn put(&mut self, library: Arc<Library>) {
        library.report(Some(&self.library));
        if library.skills != self.library.skills {
            self.bump();
        }
        self.library = library;
    }

    fn bump(&mut self) {
        self.version = now_ms().max(self.version.saturating_add(1));
    }

    fn offer(&mut self, wanted: Wanted<'_>, made: Snapshot) -> Arc<Snapshot> {
        let config = Arc::clone(wanted.config);
        let Some(offered) = self.agents.get_mut(wanted.agent) else {
            let latest = Arc::new(made.at_version(self.version));
            let offered = Offered { config, latest: Arc::clone(&latest), former: Vec::new() };
            self.agents.insert(wanted.agent.clone(), offered);
            return latest;
        };
        let has_other_settings = !Arc::ptr_eq(&offered.config, &config);
        offered.config = config;
        if offered.latest.version == self.version {
            if offered.latest.is_same(&made) {
                return Arc::clone(&offered.latest);
            }
            // Other settings are for all sessions, a program that came or went for those that begin.
            if has_other_settings {
                self.version = now_ms().max(self.version.saturating_add(1));
            }
        }
        offered.replace(made.at_version(self.version))
    }
}

impl Offered {
    /// Returns the snapshot with which a session with this mark continues.
    fn marked(&self, mark: Option<&Json>) -> Arc<Snapshot> {
        let has_mark = |snapshot: &&Arc<Snapshot>| snapshot.mark.as_ref() == mark;
        let all = std::iter::once(&self.latest).chain(&self.former);
        Arc::clone(all.into_iter().find(has_mark).unwrap_or(&self.latest))
    }

    fn replace(&mut self, snapshot: Snapshot) -> Arc<Snapshot> {
        let version = snapshot.version;
        let latest = Arc::new(snapshot);
        self.former.push(std::mem::replace(&mut self.latest, Arc::clone(&latest)));
        self.former.retain(|former| former.version == version);
        let excess = self.former.len().saturating_sub(MOST_FORMER);
        self.former.drain(..excess);
        latest
    }
}

#[cfg(test)]
mod tests;
