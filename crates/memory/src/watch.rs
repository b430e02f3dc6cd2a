//! Word of changed files. Directories are watched one by one, without those that are not indexed; the operating system
//! needs one descriptor for all.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// Most directories that are watched.
const MOST_DIRECTORIES: usize = 8_192;

/// Watches directories. Without it, or after it failed, files are looked at every now and then.
#[derive(Debug)]
pub(crate) struct DirectoryWatch {
    watcher: RecommendedWatcher,
    watched: HashSet<PathBuf>,
    /// Cleared when words may have been lost.
    is_reliable: Arc<AtomicBool>,
    has_warned: bool,
}

impl DirectoryWatch {
    /// Begins to watch; `changed` is called from another thread for each change of a Markdown file or a directory.
    /// Returns `None` if nothing can be watched.
    pub(crate) fn new(changed: impl Fn() + Send + 'static) -> Option<Self> {
        let is_reliable = Arc::new(AtomicBool::new(true));
        let reliable = Arc::clone(&is_reliable);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => changed(),
            Ok(event) if concerns(&event) => changed(),
            Ok(_) => {}
            Err(_) => {
                reliable.store(false, Ordering::Relaxed);
                changed();
            }
        });
        match watcher {
            Ok(watcher) => Some(Self { watcher, watched: HashSet::new(), is_reliable, has_warned: false }),
            Err(error) => {
                tracing::warn!(%error, "memory files can't be watched; they are looked at every 30 seconds instead");
                None
            }
        }
    }

    /// Watches these directories and no others.
    pub(crate) fn set(&mut self, directories: impl IntoIterator<Item = PathBuf>) {
        let wanted: HashSet<PathBuf> = directories.into_iter().take(MOST_DIRECTORIES).collect();
        let gone: Vec<PathBuf> = self.watched.difference(&wanted).cloned().collect();
        for directory in gone {
            let _ = self.watcher.unwatch(&directory);
            self.watched.remove(&directory);
        }
        let mut is_complete = wanted.len() < MOST_DIRECTORIES;
        for directory in wanted {
            if self.watched.contains(&directory) {
                continue;
            }
            match self.watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(directory);
                }
                Err(error) => {
                    is_complete &= !directory.exists();
                    if directory.exists() && !self.has_warned {
                        self.has_warned = true;
                        tracing::warn!(%error, "not all memory directories can be watched; they are looked at every 30 seconds instead");
                    }
                }
            }
        }
        self.is_reliable.store(is_complete, Ordering::Relaxed);
    }

    /// Returns whether every change is told of.
    pub(crate) fn is_reliable(&self) -> bool {
        self.is_reliable.load(Ordering::Relaxed)
    }
}

/// Returns whether an event can change what is indexed.
fn concerns(event: &notify::Event) -> bool {
    match event.kind {
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => event.paths.iter().any(|path| is_markdown_or_directory(path)),
    }
}

fn is_markdown_or_directory(path: &Path) -> bool {
    match path.extension() {
        Some(extension) => extension == "md",
        // A directory, or one that has gone.
        None => true,
    }
}
