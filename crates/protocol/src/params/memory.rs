//! `memory.*`: the memory of agents, for the command line while a gateway runs. Ours: OpenClaw 2026.2.9 opens the index
//! from both processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;

super::calls! {
    /// Tells what the index of each agent holds. Writes nothing, unless `index` is set.
    MemoryStatus: "memory.status" as Strict, MemoryStatusParams => MemoryStatusResult;
    /// Brings the index in step with the files, and waits for it.
    MemoryIndex: "memory.index" as Strict, MemoryIndexParams => MemoryIndexResult;
    /// Searches the memory of one agent.
    MemorySearch: "memory.search" as Strict, MemorySearchParams => MemorySearchResult;
}

/// Params of `memory.status`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryStatusParams {
    /// Id of one agent; absent is all of them.
    pub agent_id: Option<NonEmpty>,
    /// Asks the provider of embeddings for a vector.
    pub deep: Option<bool>,
    /// Brings the index in step with the files first.
    pub index: Option<bool>,
}

/// Result of `memory.status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatusResult {
    /// Agents that have memory.
    pub agents: Vec<AgentMemoryStatus>,
    /// Agents that have none.
    #[serde(default)]
    pub absent: Vec<MemoryAbsent>,
}

/// Agent without memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryAbsent {
    /// The agent.
    pub agent_id: String,
    /// Reason, for people.
    pub reason: String,
    /// True if memory is switched off; false if something is wrong.
    pub switched_off: bool,
}

/// Memory of one agent. The keys of this and of what is in it are those of OpenClaw 2026.2.9, in its order.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMemoryStatus {
    /// The agent.
    pub agent_id: String,
    /// The index.
    pub status: MemoryIndexStatus,
    /// Answer of the provider of embeddings, where it was asked.
    pub embedding_probe: Option<EmbeddingProbe>,
    /// Reason why the index could not be brought in step.
    pub index_error: Option<String>,
    /// The files that are there.
    pub scan: MemoryScan,
}

/// State of an index.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryIndexStatus {
    /// `builtin` or `qmd`.
    pub backend: String,
    /// Files in the index.
    pub files: u64,
    /// Chunks in the index.
    pub chunks: u64,
    /// True if files differ from the index.
    pub dirty: bool,
    /// The workspace.
    pub workspace_dir: String,
    /// The index file.
    pub db_path: String,
    /// Provider of embeddings; `none` for keywords alone.
    pub provider: String,
    /// Model of the provider.
    pub model: String,
    /// Provider that is configured, or `auto`.
    pub requested_provider: String,
    /// Sources that are indexed.
    pub sources: Vec<String>,
    /// Further files and directories.
    pub extra_paths: Vec<String>,
    /// Files and chunks of each source.
    pub source_counts: Vec<MemorySourceCount>,
    /// Vectors that are remembered; absent where `qmd` searches.
    pub cache: Option<MemoryCacheStatus>,
    /// Keywords; absent where `qmd` searches.
    pub fts: Option<MemoryPart>,
    /// Provider that was asked for and can't be used.
    pub fallback: Option<MemoryFallback>,
    /// Vectors.
    pub vector: MemoryVectorStatus,
    /// Jobs of embeddings.
    pub batch: MemoryBatchStatus,
    /// State of the program that searches in the place of the index.
    pub custom: Option<MemoryCustomStatus>,
    /// Bytes of the index file. Ours.
    pub bytes: Option<u64>,
    /// Chunks that wait for a vector. Ours, absent where there are none.
    pub pending: Option<u64>,
    /// Remarks for people: why there are no vectors, and what to do. Ours, absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// State of a program that searches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryCustomStatus {
    /// The program `qmd`.
    pub qmd: MemoryQmdStatus,
}

/// State of `qmd`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryQmdStatus {
    /// Number of its collections.
    pub collections: u64,
    /// Time of its last update by this process, in Unix milliseconds.
    pub last_update_at: Option<i64>,
}

/// Files and chunks of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySourceCount {
    /// `memory` or `sessions`.
    pub source: String,
    /// Files in the index.
    pub files: u64,
    /// Chunks in the index.
    pub chunks: u64,
}

/// Vectors that are remembered.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryCacheStatus {
    /// True if they are.
    pub enabled: bool,
    /// Number of them.
    pub entries: u64,
    /// Configured limit.
    pub max_entries: Option<u64>,
}

/// Part of an index.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPart {
    /// True if it is switched on.
    pub enabled: bool,
    /// True if it works.
    pub available: bool,
    /// Reason why it does not.
    pub error: Option<String>,
}

/// Provider in whose place another one is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFallback {
    /// The provider that was asked for.
    pub from: String,
    /// Reason why it can't be used.
    pub reason: String,
}

/// Vectors of an index.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryVectorStatus {
    /// True if they are switched on.
    pub enabled: bool,
    /// True if they can be searched.
    pub available: bool,
    /// Dimensions, once there are some.
    pub dims: Option<u64>,
}

/// Jobs by which many texts are embedded at once.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryBatchStatus {
    /// True if they are used.
    pub enabled: bool,
    /// Failures in a row.
    pub failures: u64,
    /// Failures after which they are not used any more.
    pub limit: u64,
    /// Waits for their end.
    pub wait: bool,
    /// Jobs at once.
    pub concurrency: u64,
    /// Pause between two looks at a job, in milliseconds.
    pub poll_interval_ms: u64,
    /// Longest time for a job, in milliseconds.
    pub timeout_ms: u64,
    /// Reason why the last job failed.
    pub last_error: Option<String>,
}

/// Answer of a provider of embeddings to a trial.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmbeddingProbe {
    /// True if it gave a vector.
    pub ok: bool,
    /// Reason why it did not.
    pub error: Option<String>,
}

/// Files that are there to be indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryScan {
    /// By source.
    pub sources: Vec<MemorySourceScan>,
    /// Number of all files; `null` where a directory can't be read.
    pub total_files: Option<u64>,
    /// Problems: files and directories that are missing or can't be read.
    pub issues: Vec<String>,
}

/// Files of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemorySourceScan {
    /// `memory` or `sessions`.
    pub source: String,
    /// Files; `null` where a directory can't be read.
    pub total_files: Option<u64>,
    /// Problems: files and directories that are missing or can't be read.
    pub issues: Vec<String>,
}

/// Params of `memory.index`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryIndexParams {
    /// Id of one agent; absent is all of them.
    pub agent_id: Option<NonEmpty>,
    /// Writes everything anew.
    pub force: Option<bool>,
}

/// Result of `memory.index`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryIndexResult {
    /// Agents that have memory.
    pub agents: Vec<AgentMemoryIndexed>,
    /// Agents that have none.
    #[serde(default)]
    pub absent: Vec<MemoryAbsent>,
}

/// Work that was done on the index of an agent.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMemoryIndexed {
    /// The agent.
    pub agent_id: String,
    /// Provider of embeddings; `none` for keywords alone.
    pub provider: String,
    /// Provider that is configured, or `auto`.
    pub requested_provider: String,
    /// Model of the provider.
    pub model: String,
    /// Sources of the index, for people.
    pub sources: Vec<String>,
    /// Further files and directories.
    pub extra_paths: Vec<String>,
    /// Files that were written.
    pub indexed: u64,
    /// Files that were removed.
    pub removed: u64,
    /// Files that stayed as they were.
    pub unchanged: u64,
    /// Reason why everything was written anew.
    pub reindexed: Option<String>,
    /// Files that were left out.
    pub issues: Vec<String>,
    /// Reason why it failed.
    pub error: Option<String>,
}

/// Params of `memory.search`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemorySearchParams {
    /// Id of the agent; absent is the default one.
    pub agent_id: Option<NonEmpty>,
    /// Words to look for.
    pub query: NonEmpty,
    /// Largest number of hits.
    pub max_results: Option<u64>,
    /// Smallest score.
    pub min_score: Option<f64>,
}

/// Result of `memory.search`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemorySearchResult {
    /// The hits, the best first.
    pub results: Vec<MemoryHit>,
    /// Reason why the answer is less than it could be.
    pub warning: Option<String>,
}

/// Piece of a file that a search found.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryHit {
    /// Path relative to the workspace.
    pub path: String,
    /// First line.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Larger is better.
    pub score: f64,
    /// The beginning of the piece.
    pub snippet: String,
    /// `memory` or `sessions`.
    pub source: String,
    /// Place of the piece, where answers name it.
    pub citation: Option<String>,
}
