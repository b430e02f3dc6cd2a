//! Word of edits: tells that files or directories may have changed, without looking at them while nothing happens.
//!
//! The kernel tells it where it can. If the kernel can't (a file system whose files other machines
//! change, too many watches, another system), a notification comes now and then, and the receiver
//! looks by itself. Word that comes for nothing does no harm but a look.

#[cfg(target_os = "linux")]
mod kernel;
#[cfg(not(target_os = "linux"))]
#[path = "file_watch/no_kernel.rs"]
mod kernel;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use kernel::Kernel;

/// The pause between two words where the kernel tells nothing.
const NOW_AND_THEN: Duration = Duration::from_secs(2);

/// Watches files and directories.
#[derive(Debug)]
pub struct FileWatch {
    kernel: Option<Kernel>,
    /// True if the kernel tells of all changes of what is watched.
    hears_all: bool,
}

/// The part of a directory that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Interest {
    /// All events of the path itself and, if it is a directory, of its entries.
    All,
    /// Changes of entries of these names.
    Names(HashSet<OsString>),
}

impl FileWatch {
    /// Watches nothing yet. For use within a runtime.
    pub fn new() -> Self {
        Self { kernel: Kernel::new(), hears_all: false }
    }

    /// Watches these from now on, and nothing else. Paths that do not exist are watched for. To be
    /// done before they are looked at: a change meanwhile is then told.
    pub fn set(&mut self, places: &[PathBuf]) {
        let wanted = wanted(places);
        let heard = self.kernel.as_mut().map(|kernel| kernel.set(wanted));
        self.hears_all = heard.unwrap_or(false);
    }

    /// Waits until something may have changed.
    pub async fn changed(&mut self) {
        let told = async {
            match &mut self.kernel {
                Some(kernel) => kernel.changed().await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! { biased;
            heard = told => heard,
            () = sleep(NOW_AND_THEN), if !self.hears_all => Ok(()),
        };
        if let Err(error) = heard {
            tracing::warn!(%error, "the system tells of edits no longer; files are looked at now and then");
            self.kernel = None;
            self.hears_all = false;
        }
    }
}

impl Default for FileWatch {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns what is to be watched for these places: each that exists, and its entry in the nearest directory above that does.
fn wanted(places: &[PathBuf]) -> HashMap<PathBuf, Interest> {
    let mut wanted: HashMap<PathBuf, Interest> = HashMap::new();
    for place in places {
        if place.exists() {
            wanted.insert(place.clone(), Interest::All);
        }
        let Some((above, name)) = entry_of(place) else { continue };
        match wanted.entry(above).or_insert_with(|| Interest::Names(HashSet::new())) {
            Interest::All => {}
            Interest::Names(names) => drop(names.insert(name)),
        }
    }
    wanted
}

/// The nearest directory above that exists, and the name in it that leads to a path.
fn entry_of(path: &Path) -> Option<(PathBuf, OsString)> {
    let found = path.ancestors().zip(path.ancestors().skip(1)).find(|(_, above)| above.is_dir());
    found.and_then(|(below, above)| Some((above.to_owned(), below.file_name()?.to_owned())))
}

#[cfg(test)]
mod tests;
