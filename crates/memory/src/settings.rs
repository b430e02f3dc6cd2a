//! Settings of one index. The defaults are those of OpenClaw's documents; where the values come from is not known here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::chunk::Chunking;

/// Settings of one agent's index.
#[derive(Debug, Clone, PartialEq)]
pub struct MemorySettings {
    /// The workspace: `MEMORY.md`, `memory.md` and `memory/` in it are indexed, and paths are relative to it.
    pub workspace: PathBuf,
    /// The SQLite file of the index. Its directory is made when needed.
    pub store: PathBuf,
    /// Further files and directories, as configured: relative ones are below the workspace.
    pub extra_paths: Vec<String>,
    /// True if memory files are indexed.
    pub memory_files: bool,
    /// True if transcripts are indexed.
    pub sessions: bool,
    /// Sizes of chunks.
    pub chunking: Chunking,
    /// Occasions on which the files are looked at.
    pub sync: SyncSettings,
    /// Rules by which hits are found and ordered.
    pub query: QuerySettings,
    /// True if vectors are stored and searched.
    pub vectors: bool,
    /// Vectors that are remembered.
    pub cache: CacheSettings,
}

impl MemorySettings {
    /// Settings with all defaults.
    #[must_use]
    pub fn new(workspace: &Path, store: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            store: store.to_owned(),
            extra_paths: Vec::new(),
            memory_files: true,
            sessions: false,
            chunking: Chunking::default(),
            sync: SyncSettings::default(),
            query: QuerySettings::default(),
            vectors: true,
            cache: CacheSettings::default(),
        }
    }
}

/// Occasions on which the files are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncSettings {
    /// The first search of a session starts a sync.
    pub on_session_start: bool,
    /// A search starts a sync if something may have changed.
    pub on_search: bool,
    /// The directories are watched.
    pub watch: bool,
    /// Time without a further change before a sync starts.
    pub watch_debounce: Duration,
    /// Time between syncs, or `None` for none.
    pub interval: Option<Duration>,
    /// Bytes that a transcript grows before it is indexed again; 0 for any.
    pub session_bytes: u64,
    /// Lines that a transcript grows before it is indexed again; 0 for any.
    pub session_messages: u64,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            on_session_start: true,
            on_search: true,
            watch: true,
            watch_debounce: Duration::from_millis(1_500),
            interval: None,
            session_bytes: 100_000,
            session_messages: 50,
        }
    }
}

/// Rules by which hits are found and ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct QuerySettings {
    /// Largest number of hits.
    pub max_results: usize,
    /// Smallest score of a hit, see [`crate::SearchRequest`] for what is shown below it.
    pub min_score: f64,
    /// Rules by which vectors and keywords are put together.
    pub hybrid: HybridSettings,
    /// Half life in days of daily notes and transcripts, or `None` if age does not matter.
    pub half_life_days: Option<f64>,
    /// True if marks such as `<!-- importance: 8 -->` change the scores of what they stand in.
    pub importance_marks: bool,
    /// Weight of relevance against difference among hits, or `None` if likeness does not matter.
    pub diversity_lambda: Option<f64>,
}

impl Default for QuerySettings {
    fn default() -> Self {
        Self {
            max_results: 6,
            min_score: 0.35,
            hybrid: HybridSettings::default(),
            half_life_days: None,
            importance_marks: false,
            diversity_lambda: None,
        }
    }
}

/// Rules by which vectors and keywords are put together.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridSettings {
    /// False: keywords are not asked when there are vectors.
    pub enabled: bool,
    /// Weight of the cosine.
    pub vector_weight: f64,
    /// Weight of the keywords' score.
    pub text_weight: f64,
    /// Candidates for each result, in [`Scoring::Compat`] only.
    pub candidate_multiplier: usize,
    /// The formula.
    pub scoring: Scoring,
    /// Numbers that are added up, in [`Scoring::Corrected`] only.
    pub fusion: Fusion,
}

impl Default for HybridSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            vector_weight: 0.7,
            text_weight: 0.3,
            candidate_multiplier: 4,
            scoring: Scoring::Corrected,
            fusion: Fusion::Weighted,
        }
    }
}

impl HybridSettings {
    /// Returns both weights, scaled so that their sum is one.
    #[must_use]
    pub fn weights(&self) -> (f64, f64) {
        let (vector, text) = (self.vector_weight.clamp(0.0, 1.0), self.text_weight.clamp(0.0, 1.0));
        let sum = vector + text;
        if sum > 0.0 { (vector / sum, text / sum) } else { (0.7, 0.3) }
    }
}

/// The formula of hybrid scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scoring {
    /// The score of keywords grows with their weight, and exact matches are shown also below the smallest score.
    #[default]
    Corrected,
    /// The formula and the keyword query of OpenClaw 2026.2.9.
    Compat,
}

/// Numbers from which scores of both searches are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fusion {
    /// The scores themselves.
    #[default]
    Weighted,
    /// The places in both lists (reciprocal rank fusion).
    ReciprocalRank,
}

/// Vectors that are remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// True if vectors are remembered beyond the chunks that have them now.
    pub enabled: bool,
    /// Largest number of remembered vectors.
    pub max_entries: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { enabled: true, max_entries: 50_000 }
    }
}
