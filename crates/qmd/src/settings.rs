//! Settings of one agent's `qmd`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::settings::{MemoryQmdLimits, MemoryQmdSearch, MemoryQmdUpdate, SendPolicyRules};

/// Place of `qmd`, what it searches, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QmdSettings {
    /// The program, or why it can't be started.
    pub program: Result<PathBuf, String>,
    /// The workspace: paths in it are told without a collection.
    pub workspace: PathBuf,
    /// Directory of all that `qmd` keeps for this agent.
    pub home: PathBuf,
    /// Variables that it inherits.
    pub environment: Vec<(String, String)>,
    /// Directory of models that it has downloaded for its user.
    pub models: Option<PathBuf>,
    /// True if the workspace's own memory files are searched.
    pub default_memory: bool,
    /// Further directories and files.
    pub sources: Vec<QmdSource>,
    /// Transcripts, where they are searched.
    pub exports: Option<QmdExports>,
    /// Command that searches.
    pub search: MemoryQmdSearch,
    /// Moments of updates, and time limits.
    pub update: MemoryQmdUpdate,
    /// Sizes of answers.
    pub limits: MemoryQmdLimits,
    /// Sessions that may search.
    pub scope: SendPolicyRules,
}

/// A directory or file that is searched besides the workspace's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QmdSource {
    /// Absolute path.
    pub path: PathBuf,
    /// Glob of the files that count.
    pub pattern: Option<String>,
    /// Name of the collection, as configured.
    pub name: Option<String>,
}

/// Transcripts as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QmdExports {
    /// Directory of the files.
    pub dir: PathBuf,
    /// Age at which a transcript is left out.
    pub retention: Option<Duration>,
}

impl QmdSettings {
    /// Directory of its cache.
    pub(crate) fn cache(&self) -> PathBuf {
        self.home.join("xdg-cache")
    }

    /// Index file.
    pub(crate) fn index(&self) -> PathBuf {
        self.cache().join("qmd").join("index.sqlite")
    }

    /// The whole environment of the program.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        let own = [
            ("XDG_CONFIG_HOME", text(&self.home.join("xdg-config"))),
            ("XDG_CACHE_HOME", text(&self.cache())),
            ("NO_COLOR", "1".to_owned()),
        ];
        let inherited = self.environment.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        inherited
            .cloned()
            .chain(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())))
            .collect()
    }
}
