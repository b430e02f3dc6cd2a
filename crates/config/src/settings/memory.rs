//! `memory` and `memorySearch`: the index of an agent's memory files, and searching in it.

mod qmd;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use openclaw_protocol::AgentId;
use serde::Deserialize;

use super::{Config, Secret};
use crate::plugin_switches::plugin_switches;
pub use qmd::{
    MemoryQmd, MemoryQmdLimits, MemoryQmdPath, MemoryQmdSearch, MemoryQmdSessions, MemoryQmdUpdate,
};

/// Name of the plugin that memory is in OpenClaw: keys of `plugins` switch it off by this name.
pub const MEMORY_PLUGIN: &str = "memory-core";

/// `memory`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct MemorySection {
    /// Program that searches.
    pub backend: MemoryBackend,
    /// Conversations in which hits of a search name their place as a source.
    pub citations: Citations,
    /// The program `qmd`.
    pub qmd: MemoryQmd,
}

/// `memory.backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBackend {
    /// The index of this program.
    #[default]
    Builtin,
    /// The program `qmd`.
    Qmd,
}

/// `memory.citations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Citations {
    /// In direct chats.
    #[default]
    Auto,
    /// Everywhere.
    On,
    /// Nowhere.
    Off,
}

impl Citations {
    /// The value as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// `agents.defaults.memorySearch` and `agents.list[].memorySearch`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemorySearch {
    /// Offers memory to the agent; default true.
    pub enabled: Option<bool>,
    /// Sources of the index; default memory files alone.
    pub sources: Option<Vec<MemorySource>>,
    /// Things that may change.
    pub experimental: MemoryExperiments,
    /// Further files and directories; relative ones are below the workspace.
    pub extra_paths: Vec<String>,
    /// Provider of embeddings; default the first that can be used.
    pub provider: Option<EmbeddingsFrom>,
    /// Address and credentials of the provider.
    pub remote: MemoryRemote,
    /// Provider that is used if the first one can't be.
    pub fallback: Option<EmbeddingsFrom>,
    /// Model that embeds; default that of the provider.
    pub model: Option<String>,
    /// Model on this machine.
    pub local: MemoryLocal,
    /// Index file.
    pub store: MemoryStore,
    /// Sizes of the pieces that are found.
    pub chunking: MemoryChunking,
    /// Moments at which files are looked at.
    pub sync: MemorySync,
    /// Number and order of hits.
    pub query: MemoryQuery,
    /// Vectors that are remembered.
    pub cache: MemoryCache,
}

/// `memorySearch.sources[]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemorySource {
    /// Memory files of the workspace.
    Memory,
    /// Transcripts of the agent.
    Sessions,
}

/// `memorySearch.provider` and `memorySearch.fallback`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingsFrom {
    /// OpenAI, or a server that speaks its protocol.
    OpenAi,
    /// Google.
    Gemini,
    /// Voyage AI.
    Voyage,
    /// A model on this machine.
    Local,
    /// No provider: words alone are searched for.
    None,
}

impl EmbeddingsFrom {
    /// The value as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Voyage => "voyage",
            Self::Local => "local",
            Self::None => "none",
        }
    }
}

/// `memorySearch.experimental`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryExperiments {
    /// Allows `sessions` among the sources; default false.
    pub session_memory: Option<bool>,
}

/// `memorySearch.remote`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryRemote {
    /// Address of the API, such as `http://127.0.0.1:11434/v1`.
    pub base_url: Option<String>,
    /// Key for it.
    pub api_key: Option<Secret>,
    /// Headers of each request.
    pub headers: Option<BTreeMap<String, Secret>>,
    /// Jobs that embed many texts some time later.
    pub batch: MemoryBatch,
}

/// `memorySearch.remote.batch`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryBatch {
    /// Uses jobs where many texts are missing; default false.
    pub enabled: Option<bool>,
    /// Whoever indexes waits for the job; default true.
    pub wait: Option<bool>,
    /// Jobs at the same time; there is one a sync here, whatever is set.
    pub concurrency: Option<u64>,
    /// Milliseconds between two questions about a job; default 2000.
    pub poll_interval_ms: Option<u64>,
    /// Minutes after which a job is given up; default 60.
    pub timeout_minutes: Option<u64>,
}

/// [`MemoryBatch`] with its defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedBatch {
    /// Uses jobs where many texts are missing.
    pub enabled: bool,
    /// Whoever indexes waits for the job.
    pub wait: bool,
    /// Jobs at the same time, as status shows them.
    pub concurrency: u64,
    /// Time between two questions about a job.
    pub poll_interval: Duration,
    /// Time after which a job is given up.
    pub timeout: Duration,
}

impl ResolvedBatch {
    fn of(own: MemoryBatch, shared: MemoryBatch) -> Self {
        let number = |pick: fn(&MemoryBatch) -> Option<u64>| pick(&own).or_else(|| pick(&shared));
        Self {
            enabled: own.enabled.or(shared.enabled).unwrap_or(false),
            wait: own.wait.or(shared.wait).unwrap_or(true),
            concurrency: number(|batch| batch.concurrency).unwrap_or(2).max(1),
            poll_interval: Duration::from_millis(number(|batch| batch.poll_interval_ms).unwrap_or(2_000)),
            timeout: Duration::from_secs(
                60 * number(|batch| batch.timeout_minutes).unwrap_or(60).min(60 * 24 * 7),
            ),
        }
    }
}

/// `memorySearch.local`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryLocal {
    /// Model directory, or GGUF file, or the `hf:` name of one.
    pub model_path: Option<String>,
    /// Directory of files that were downloaded under `hf:` names.
    pub model_cache_dir: Option<String>,
}

/// `memorySearch.store`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MemoryStore {
    /// Index file; `{agentId}` in it is the agent.
    pub path: Option<String>,
    /// Vectors.
    pub vector: MemoryVectors,
}

/// `memorySearch.store.vector`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MemoryVectors {
    /// Stores vectors and searches in them; default true.
    pub enabled: Option<bool>,
}

/// `memorySearch.chunking`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MemoryChunking {
    /// Size of a piece in tokens of four characters; default 400.
    pub tokens: Option<u64>,
    /// Tokens of a piece that the next one begins with; default 80.
    pub overlap: Option<u64>,
}

/// `memorySearch.sync`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemorySync {
    /// The first search of a session looks at the files; default true.
    pub on_session_start: Option<bool>,
    /// A search looks at the files if they may have changed; default true.
    pub on_search: Option<bool>,
    /// The files are watched; default true.
    pub watch: Option<bool>,
    /// Time without a further change before files are read, in milliseconds; default 1,500.
    pub watch_debounce_ms: Option<u64>,
    /// Minutes between two looks at the files; default 0, which is none.
    pub interval_minutes: Option<u64>,
    /// Growth of transcripts.
    pub sessions: MemorySessionSync,
}

/// `memorySearch.sync.sessions`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemorySessionSync {
    /// Bytes that a transcript grows before it is indexed again; default 100,000.
    pub delta_bytes: Option<u64>,
    /// Lines that it grows before; default 50.
    pub delta_messages: Option<u64>,
}

/// `memorySearch.query`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryQuery {
    /// Largest number of hits; default 6.
    pub max_results: Option<u64>,
    /// Smallest score; default 0.35.
    pub min_score: Option<f64>,
    /// Keywords beside vectors.
    pub hybrid: MemoryHybrid,
}

/// `memorySearch.query.hybrid`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryHybrid {
    /// Asks for keywords too when there are vectors; default true.
    pub enabled: Option<bool>,
    /// Weight of vectors; default 0.7.
    pub vector_weight: Option<f64>,
    /// Weight of keywords; default 0.3.
    pub text_weight: Option<f64>,
    /// Candidates for each hit; default 4.
    pub candidate_multiplier: Option<u64>,
    /// Formula of the scores. Ours.
    pub scoring: Option<MemoryScoring>,
}

/// `memorySearch.query.hybrid.scoring`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScoring {
    /// Better keyword hits have higher scores, and exact ones are shown also below the smallest score.
    #[default]
    Corrected,
    /// The formula of OpenClaw 2026.2.9.
    Compat,
}

/// `memorySearch.cache`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryCache {
    /// Remembers vectors of texts that are not in the index any more; default true.
    pub enabled: Option<bool>,
    /// Largest number of them; default 50,000.
    pub max_entries: Option<u64>,
}

/// Reason why an agent has no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryOff {
    /// `memorySearch.enabled` is false.
    Search,
    /// A key of `plugins` switches the plugin off.
    Plugin {
        /// The key and its value, such as `plugins.slots.memory="none"`.
        setting: String,
    },
}

/// Settings of memory that apply to one agent.
#[derive(Debug, Clone)]
pub struct ResolvedMemory {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the index file.
    pub store: PathBuf,
    /// Further files and directories, as configured.
    pub extra_paths: Vec<String>,
    /// True if memory files are indexed.
    pub memory_files: bool,
    /// True if transcripts are indexed.
    pub sessions: bool,
    /// Configured provider of embeddings.
    pub provider: Option<EmbeddingsFrom>,
    /// Configured model.
    pub model: String,
    /// Provider behind the first one.
    pub fallback: Option<EmbeddingsFrom>,
    /// Address of the API.
    pub base_url: Option<String>,
    /// Key for it.
    pub api_key: Option<Secret>,
    /// Headers of each request.
    pub headers: BTreeMap<String, Secret>,
    /// Jobs that embed many texts some time later.
    pub batch: ResolvedBatch,
    /// Model on this machine.
    pub local: MemoryLocal,
    /// True if `status` shows vectors as enabled. Texts are embedded either way: the key is about sqlite-vec.
    pub vectors: bool,
    /// Tokens of a piece.
    pub chunk_tokens: usize,
    /// Tokens that two pieces share.
    pub chunk_overlap: usize,
    /// The first search of a session looks at the files.
    pub on_session_start: bool,
    /// Searches look at the files.
    pub on_search: bool,
    /// The files are watched.
    pub watch: bool,
    /// Time without a further change before files are read.
    pub watch_debounce: Duration,
    /// Time between two looks at the files.
    pub interval: Option<Duration>,
    /// Growth after which a transcript is indexed again, in bytes.
    pub session_bytes: u64,
    /// The same in lines.
    pub session_messages: u64,
    /// Largest number of hits.
    pub max_results: usize,
    /// Smallest score.
    pub min_score: f64,
    /// Keywords beside vectors.
    pub hybrid: bool,
    /// Weight of vectors.
    pub vector_weight: f64,
    /// Weight of keywords.
    pub text_weight: f64,
    /// Candidates for each hit.
    pub candidate_multiplier: usize,
    /// Formula of the scores.
    pub scoring: MemoryScoring,
    /// True if vectors are remembered.
    pub cache: bool,
    /// Largest number of remembered vectors, as configured.
    pub cache_entries: Option<usize>,
}

impl Config {
    /// Reason why an agent has no memory; `None` if it has one.
    pub fn memory_off(&self, id: &AgentId) -> Option<MemoryOff> {
        let own = self.agent_entry(id).and_then(|entry| entry.memory_search.enabled);
        self.memory_off_by(own)
    }

    pub(super) fn memory_off_by(&self, own: Option<bool>) -> Option<MemoryOff> {
        if let Some(setting) = self.memory_plugin_off() {
            return Some(MemoryOff::Plugin { setting });
        }
        let enabled = own.or(self.agents.defaults.memory_search.enabled).unwrap_or(true);
        (!enabled).then_some(MemoryOff::Search)
    }

    /// The key of `plugins` that switches memory off for all agents, with its value.
    pub fn memory_plugin_off(&self) -> Option<String> {
        // Asked for each run: a pointer would be taken apart into texts.
        let plugins = self.document().get("plugins")?;
        let slot = plugins.get("slots").and_then(|slots| slots.get("memory"));
        if slot.and_then(|slot| slot.as_str()).is_some_and(|slot| slot.trim().eq_ignore_ascii_case("none")) {
            return Some("plugins.slots.memory=\"none\"".to_owned());
        }
        plugin_switches(self.document(), MEMORY_PLUGIN).first().map(ToString::to_string)
    }

    /// Settings of memory that apply to an agent, whether it is switched on or not.
    pub fn memory_search(&self, id: &AgentId) -> ResolvedMemory {
        let nothing = MemorySearch::default();
        let own = self.agent_entry(id).map_or(&nothing, |entry| &entry.memory_search);
        let shared = &self.agents.defaults.memory_search;
        let sources = own.sources.as_ref().or(shared.sources.as_ref());
        let may_index_sessions =
            own.experimental.session_memory.or(shared.experimental.session_memory).unwrap_or(false);
        let sessions =
            may_index_sessions && sources.is_some_and(|sources| sources.contains(&MemorySource::Sessions));
        // Where nothing would be left, files are what is indexed.
        let memory_files =
            !sessions || sources.is_some_and(|sources| sources.contains(&MemorySource::Memory));
        let tokens = count(own.chunking.tokens.or(shared.chunking.tokens), 400).max(1);
        let sync = (&own.sync, &shared.sync);
        let hybrid = (&own.query.hybrid, &shared.query.hybrid);
        let minutes = sync.0.interval_minutes.or(sync.1.interval_minutes).filter(|minutes| *minutes > 0);
        ResolvedMemory {
            workspace: self.agent(id).workspace,
            store: self.memory_store(id, own.store.path.as_ref().or(shared.store.path.as_ref())),
            extra_paths: extra_paths(shared, own),
            memory_files,
            sessions,
            provider: own.provider.or(shared.provider),
            model: text(own.model.as_ref().or(shared.model.as_ref())).unwrap_or_default(),
            fallback: own.fallback.or(shared.fallback).filter(|fallback| *fallback != EmbeddingsFrom::None),
            base_url: text(own.remote.base_url.as_ref()).or_else(|| text(shared.remote.base_url.as_ref())),
            api_key: own.remote.api_key.clone().or_else(|| shared.remote.api_key.clone()),
            headers: own
                .remote
                .headers
                .as_ref()
                .or(shared.remote.headers.as_ref())
                .cloned()
                .unwrap_or_default(),
            batch: ResolvedBatch::of(own.remote.batch, shared.remote.batch),
            local: MemoryLocal {
                model_path: text(own.local.model_path.as_ref().or(shared.local.model_path.as_ref())),
                model_cache_dir: text(
                    own.local.model_cache_dir.as_ref().or(shared.local.model_cache_dir.as_ref()),
                ),
            },
            vectors: own.store.vector.enabled.or(shared.store.vector.enabled).unwrap_or(true),
            chunk_tokens: tokens,
            chunk_overlap: count(own.chunking.overlap.or(shared.chunking.overlap), 80).min(tokens - 1),
            on_session_start: sync.0.on_session_start.or(sync.1.on_session_start).unwrap_or(true),
            on_search: sync.0.on_search.or(sync.1.on_search).unwrap_or(true),
            watch: sync.0.watch.or(sync.1.watch).unwrap_or(true),
            watch_debounce: Duration::from_millis(
                sync.0.watch_debounce_ms.or(sync.1.watch_debounce_ms).unwrap_or(1_500),
            ),
            interval: minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
            session_bytes: sync.0.sessions.delta_bytes.or(sync.1.sessions.delta_bytes).unwrap_or(100_000),
            session_messages: sync.0.sessions.delta_messages.or(sync.1.sessions.delta_messages).unwrap_or(50),
            max_results: count(own.query.max_results.or(shared.query.max_results), 6).max(1),
            min_score: own.query.min_score.or(shared.query.min_score).unwrap_or(0.35),
            hybrid: hybrid.0.enabled.or(hybrid.1.enabled).unwrap_or(true),
            vector_weight: hybrid.0.vector_weight.or(hybrid.1.vector_weight).unwrap_or(0.7),
            text_weight: hybrid.0.text_weight.or(hybrid.1.text_weight).unwrap_or(0.3),
            candidate_multiplier: count(hybrid.0.candidate_multiplier.or(hybrid.1.candidate_multiplier), 4)
                .clamp(1, 20),
            scoring: hybrid.0.scoring.or(hybrid.1.scoring).unwrap_or_default(),
            cache: own.cache.enabled.or(shared.cache.enabled).unwrap_or(true),
            cache_entries: own
                .cache
                .max_entries
                .or(shared.cache.max_entries)
                .map(|most| count(Some(most), 1)),
        }
    }

    /// Another agent whose index would be the same file as that of `id`. Two agents never share one.
    pub fn agent_with_same_memory(&self, id: &AgentId) -> Option<AgentId> {
        let path_of = |id: &AgentId| {
            let own = self.agent_entry(id).and_then(|entry| entry.memory_search.store.path.as_ref());
            self.memory_store(id, own.or(self.agents.defaults.memory_search.store.path.as_ref()))
        };
        let store = path_of(id);
        self.agent_ids()
            .into_iter()
            .find(|other| other != id && self.memory_off(other).is_none() && path_of(other) == store)
    }

    fn memory_store(&self, id: &AgentId, configured: Option<&String>) -> PathBuf {
        match text(configured) {
            Some(template) => self.environment().expand_path(&template.replace("{agentId}", id.as_str())),
            None => self.paths().state_dir().join("memory").join(format!("{id}.sqlite")),
        }
    }
}

/// The shared paths and the agent's own, each once, in this order.
fn extra_paths(shared: &MemorySearch, own: &MemorySearch) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for path in shared.extra_paths.iter().chain(&own.extra_paths) {
        let path = path.trim();
        if !path.is_empty() && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

fn text(configured: Option<&String>) -> Option<String> {
    configured.map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn count(configured: Option<u64>, default: u64) -> usize {
    usize::try_from(configured.unwrap_or(default)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    fn config(text: &str) -> std::sync::Arc<Config> {
        Config::from_json5(text, &Environment::new([("HOME", "/home/u")], "/")).unwrap()
    }

    fn main() -> AgentId {
        AgentId::normalize("main")
    }

    #[test]
    fn what_is_indexed_follows_from_the_sources() {
        let rows = [
            (r#"{}"#, (true, false)),
            (r#"{sources: ["sessions"]}"#, (true, false)),
            (r#"{sources: ["sessions"], experimental: {sessionMemory: true}}"#, (false, true)),
            (r#"{sources: [], experimental: {sessionMemory: true}}"#, (true, false)),
        ];
        for (search, expect) in rows {
            let config = config(&format!("{{agents: {{defaults: {{memorySearch: {search}}}}}}}"));
            let found = config.memory_search(&main());
            assert_eq!((found.memory_files, found.sessions), expect, "{search}");
        }
    }

    #[test]
    fn an_agents_values_stand_above_the_shared_ones_leaf_by_leaf() {
        let config = config(
            r#"{agents: {
                defaults: {memorySearch: {
                    chunking: {tokens: 500, overlap: 100}, query: {maxResults: 4, minScore: 0.2},
                    store: {vector: {enabled: false}}, extraPaths: ["/shared/notes", " docs ", ""],
                    remote: {baseUrl: "A", apiKey: "K", headers: {h: "1"}}, sources: ["memory", "sessions"],
                    experimental: {sessionMemory: true},
                }},
                list: [
                    {id: "main", memorySearch: {
                        chunking: {tokens: 320}, query: {maxResults: 8}, store: {vector: {enabled: true}},
                        extraPaths: ["/shared/notes", "../team-notes"], remote: {baseUrl: "B"},
                        experimental: {sessionMemory: false},
                    }},
                    {id: "work"},
                ],
            }}"#,
        );
        let found = config.memory_search(&main());
        assert_eq!((found.chunk_tokens, found.chunk_overlap), (320, 100));
        assert_eq!((found.max_results, found.min_score, found.vectors), (8, 0.2, true));
        assert_eq!(found.extra_paths, ["/shared/notes", "docs", "../team-notes"]);
        assert_eq!(
            (found.base_url.as_deref(), found.api_key.is_some(), found.headers.len()),
            (Some("B"), true, 1)
        );
        assert!(!found.sessions && found.memory_files);
        let work = config.memory_search(&AgentId::normalize("work"));
        assert!(work.sessions && work.memory_files);
        assert_eq!(work.store, PathBuf::from("/home/u/.openclaw/memory/work.sqlite"));
        assert_eq!(config.agent_with_same_memory(&main()), None);
    }

    #[test]
    fn the_defaults_are_those_of_the_documents() {
        let found = config("{}").memory_search(&main());
        assert_eq!((found.chunk_tokens, found.chunk_overlap, found.max_results), (400, 80, 6));
        assert_eq!((found.min_score, found.vector_weight, found.text_weight), (0.35, 0.7, 0.3));
        assert_eq!(
            (found.candidate_multiplier, found.session_bytes, found.session_messages),
            (4, 100_000, 50)
        );
        assert_eq!(
            (found.watch, found.watch_debounce, found.interval),
            (true, Duration::from_millis(1_500), None)
        );
        assert_eq!((found.provider, found.fallback, found.cache_entries), (None, None, None));
    }

    #[test]
    fn keys_of_plugins_and_of_the_search_switch_memory_off() {
        let off = |text: &str| config(text).memory_off(&main());
        let plugin = |setting: &str| Some(MemoryOff::Plugin { setting: setting.to_owned() });
        assert_eq!(off("{}"), None);
        assert_eq!(off("{agents: {defaults: {memorySearch: {enabled: false}}}}"), Some(MemoryOff::Search));
        assert_eq!(off(r#"{plugins: {slots: {memory: "none"}}}"#), plugin(r#"plugins.slots.memory="none""#));
        assert!(matches!(off(r#"{plugins: {deny: ["memory-core"]}}"#), Some(MemoryOff::Plugin { .. })));
        let own = r#"{agents: {defaults: {memorySearch: {enabled: false}}, list: [{id: "main", memorySearch: {enabled: true}}]}}"#;
        assert_eq!(off(own), None);
    }

    #[test]
    fn two_agents_with_one_index_are_found() {
        let config = config(
            r#"{agents: {defaults: {memorySearch: {store: {path: "~/m.sqlite"}}}, list: [{id: "main"}, {id: "work"}]}}"#,
        );
        assert_eq!(config.agent_with_same_memory(&main()), Some(AgentId::normalize("work")));
    }
}
