//! The `models.json` files of all agents, read again when they change.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::FILE;
use super::read::{Providers, read};

/// Interval at which a run checks for models to write. A file that lacks a new model for so long
/// lacks nothing that a run of ours needs.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Knows what the files say. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileKeeper {
    known: Arc<Mutex<HashMap<PathBuf, KnownFile>>>,
}

/// Content of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileView {
    /// Providers of the file; none if there is no file or it breaks a rule.
    pub(crate) providers: Arc<Providers>,
    /// Reason why the file is ignored, for a person.
    pub(crate) warning: Option<String>,
}

#[derive(Debug, Default)]
struct KnownFile {
    stamp: Option<ModelsFileStamp>,
    view: FileView,
    looked: Option<Instant>,
}

/// Values by which a change of the file is noticed.
type ModelsFileStamp = (SystemTime, u64);

impl FileKeeper {
    /// Returns the current content of the file in an agent's directory. Blocks: one look at the
    /// file, a read when it is another one.
    pub(crate) fn view(&self, agent_dir: &Path) -> FileView {
        let path = agent_dir.join(FILE);
        let stamp = stamp(&path);
        {
            let known = self.known.lock();
            match known.get(agent_dir) {
                Some(known) if known.stamp == stamp => return known.view.clone(),
                None if stamp.is_none() => return FileView::default(),
                Some(_) | None => {}
            }
        }
        let view = match read(agent_dir) {
            Ok(providers) => FileView { providers: Arc::new(providers), warning: None },
            Err(problem) => FileView {
                warning: Some(format!("{} is ignored: {problem}", path.display())),
                ..FileView::default()
            },
        };
        let mut known = self.known.lock();
        let entry = known.entry(agent_dir.to_path_buf()).or_default();
        (entry.stamp, entry.view) = (stamp, view.clone());
        view
    }

    /// Returns true if it is time to check if the file lacks something; counts as having checked.
    pub(crate) fn is_due(&self, agent_dir: &Path, now: Instant) -> bool {
        let mut known = self.known.lock();
        let entry = known.entry(agent_dir.to_path_buf()).or_default();
        let due = entry.looked.is_none_or(|at| now.saturating_duration_since(at) >= LOOK_EVERY);
        if due {
            entry.looked = Some(now);
        }
        due
    }
}

fn stamp(path: &Path) -> Option<ModelsFileStamp> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len()))
}
