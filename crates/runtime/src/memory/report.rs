//! Reports of memory for people and clients: `openclaw memory`, and the methods that it calls while a gateway runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::settings::ResolvedMemory;
use openclaw_memory::{MemoryError, SearchRequest, SyncReport, SyncRequest, SyncUntil};
use openclaw_models::embeddings::{BatchHealth, LocalEmbeddingServer};
use openclaw_protocol::AgentId;
use openclaw_protocol::params::memory::{
    AgentMemoryIndexed, AgentMemoryStatus, EmbeddingProbe, MemoryAbsent, MemoryBatchStatus,
    MemoryCacheStatus, MemoryIndexResult, MemoryIndexStatus, MemoryPart, MemoryScan, MemorySearchResult,
    MemorySourceCount, MemorySourceScan, MemoryStatusResult, MemoryVectorStatus,
};
use openclaw_qmd::QmdQuestion;

use super::answers::shown;
use super::embedder::{ADVICE, EmbedderChoice};
use super::held::AgentMemory;
use super::qmd::QmdAnswer;
use super::{Memories, NoMemory};
use crate::settings::Settings;

/// Work of `memory status` beside looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusDepth {
    /// Asks the provider of embeddings for a vector.
    pub probe: bool,
    /// Brings the index in step with the files first.
    pub index: bool,
}

impl Memories {
    /// Tells of the memory of these agents. Writes nothing, unless the index is to be brought in step first.
    pub async fn status(&self, agents: &[AgentId], depth: StatusDepth) -> MemoryStatusResult {
        let mut result = MemoryStatusResult::default();
        for agent in agents {
            match self.of(agent).await {
                Ok(memory) => {
                    let has_qmd = self.qmd(&memory).await.is_some();
                    let own_depth = if has_qmd { StatusDepth::default() } else { depth };
                    let index_error = match own_depth.index {
                        true => {
                            self.synced(&memory, false).await.map_or_else(Some, |report| failure(&report))
                        }
                        false => None,
                    };
                    let mut told = status_of(&memory, &self.settings(), own_depth.probe).await;
                    told.index_error = index_error;
                    self.tell_of_qmd(&memory, depth, &mut told).await;
                    if own_depth.probe && memory.choice().embedder.is_none() {
                        told.status.notes.extend(self.local_servers().await);
                    }
                    result.agents.push(told);
                }
                Err(reason) => result.absent.push(absent(agent, &reason)),
            }
        }
        result
    }

    /// Sentences about programs on this machine that could embed texts, with what to set.
    async fn local_servers(&self) -> Vec<String> {
        let found = self.0.embeddings.local_servers().await.into_iter();
        let sentence = |server: LocalEmbeddingServer| {
            let LocalEmbeddingServer { program, base_url, models } = server;
            let models = models.join(", ");
            format!(
                "{program} on this machine embeds texts: set agents.defaults.memorySearch.provider to openai, its remote.baseUrl to \
                 {base_url} and its model to one of: {models}."
            )
        };
        found.map(sentence).collect()
    }

    /// Brings the index of these agents in step with the files.
    pub async fn index(&self, agents: &[AgentId], force: bool) -> MemoryIndexResult {
        let mut result = MemoryIndexResult::default();
        for agent in agents {
            match self.of(agent).await {
                Ok(memory) => result.agents.push(match self.update_qmd(&memory, force).await {
                    Some(done) => done,
                    None => self.indexed(&memory, force).await,
                }),
                Err(reason) => result.absent.push(absent(agent, &reason)),
            }
        }
        result
    }

    /// Looks at the files of an agent, so that keywords find what stands there now.
    ///
    /// # Errors
    /// The reason why they were not looked at, for people.
    pub async fn look(&self, agent: &AgentId) -> Result<(), String> {
        let memory = self.of(agent).await.map_err(|reason| reason.to_string())?;
        if self.qmd(&memory).await.is_some() {
            return Ok(());
        }
        searchable(&memory).await
    }

    /// Looks at all files, transcripts too, and waits for texts and vectors. If the provider fails and there is a
    /// fallback, its vectors are waited for.
    async fn synced(&self, memory: &AgentMemory, force: bool) -> Result<SyncReport, String> {
        loop {
            let embeds = memory.choice().embedder.is_some();
            let until = if embeds { SyncUntil::Embedded } else { SyncUntil::Searchable };
            let report = memory.index.sync(SyncRequest { force, until }).await;
            let report = report.map_err(|error: MemoryError| error.to_string())?;
            if report.embed_error.is_none() || !self.fall_back(&memory.agent, None).await {
                return Ok(report);
            }
        }
    }

    async fn indexed(&self, memory: &AgentMemory, force: bool) -> AgentMemoryIndexed {
        let synced = self.synced(memory, force).await;
        let (choice, resolved) = (memory.choice(), memory.resolved());
        let (report, error) = match synced {
            Ok(report) => {
                let error = failure(&report);
                (report, error)
            }
            Err(error) => (SyncReport::default(), Some(error)),
        };
        AgentMemoryIndexed {
            agent_id: memory.agent.to_string(),
            provider: choice.provider.clone(),
            requested_provider: choice.requested.to_owned(),
            model: choice.model.clone(),
            sources: sources(&resolved),
            extra_paths: resolved.extra_paths.clone(),
            indexed: report.indexed as u64,
            removed: report.removed as u64,
            unchanged: report.unchanged as u64,
            reindexed: report.reindexed.map(str::to_owned),
            issues: report.issues,
            error,
        }
    }

    /// Searches the memory of an agent for a person.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn search(
        &self,
        agent: &AgentId,
        query: &str,
        max_results: Option<usize>,
        min_score: Option<f64>,
    ) -> Result<MemorySearchResult, String> {
        let memory = self.of(agent).await.map_err(|reason| reason.to_string())?;
        let question = QmdQuestion { query: query.to_owned(), max_results, min_score };
        let fallback = match self.ask_qmd(&memory, None, question).await {
            QmdAnswer::Found(hits) => {
                let results = hits.into_iter().map(|hit| shown(hit, false)).collect();
                return Ok(MemorySearchResult { results, warning: None });
            }
            QmdAnswer::NotChosen | QmdAnswer::Denied => None,
            QmdAnswer::Failed(fallback) => {
                // Nobody else has looked at the files.
                searchable(&memory).await?;
                Some(format!(
                    "QMD does not answer, and the index of this program is searched: {}",
                    fallback.reason
                ))
            }
        };
        let request = SearchRequest { query: query.to_owned(), max_results, min_score, session: None };
        let answer = self.search_index(&memory, &request).await.map_err(|error| error.to_string())?;
        let results = answer.hits.into_iter().map(|hit| shown(hit, false)).collect();
        Ok(MemorySearchResult { results, warning: fallback.or(answer.warning) })
    }
}

/// Looks at the files, so that keywords find what stands there now.
async fn searchable(memory: &AgentMemory) -> Result<(), String> {
    let request = SyncRequest { force: false, until: SyncUntil::Searchable };
    let report = memory.index.sync(request).await.map_err(|error| error.to_string())?;
    report.error.map_or(Ok(()), Err)
}

fn absent(agent: &AgentId, reason: &NoMemory) -> MemoryAbsent {
    MemoryAbsent {
        agent_id: agent.to_string(),
        reason: reason.to_string(),
        switched_off: matches!(reason, NoMemory::Off(_)),
    }
}

/// The reason why a sync did not do all that it was to do.
fn failure(report: &SyncReport) -> Option<String> {
    let needs_force =
        "another model is set, and much text would be embedded anew; run `openclaw memory index --force`";
    report
        .error
        .clone()
        .or_else(|| report.embed_error.clone())
        .or_else(|| report.needs_force.then(|| needs_force.to_owned()))
}

fn sources(resolved: &ResolvedMemory) -> Vec<String> {
    let all = [("memory", resolved.memory_files), ("sessions", resolved.sessions)];
    all.into_iter().filter(|(_, is_indexed)| *is_indexed).map(|(name, _)| name.to_owned()).collect()
}

async fn status_of(memory: &AgentMemory, settings: &Settings, probed: bool) -> AgentMemoryStatus {
    let (choice, resolved) = (memory.choice(), memory.resolved());
    let embedding_probe = if probed { Some(probe(memory).await) } else { None };
    let found = memory.index.status().await;
    let (found, store_error) = match found {
        Ok(found) => (found, None),
        Err(error) => (openclaw_memory::MemoryStatus::default(), Some(error.to_string())),
    };
    let names = sources(&resolved);
    let of = |name: &str| found.sources.iter().find(|source| source.source.as_str() == name);
    let missing = missing(&resolved, settings.config.agent(&memory.agent).sessions_dir).await;
    let issues = |name: &str| match name {
        "memory" if missing.all => missing.memory.iter().cloned().collect(),
        "memory" => missing.memory.iter().chain(&found.issues).cloned().collect(),
        _ => missing.sessions.iter().cloned().collect::<Vec<String>>(),
    };
    let scans: Vec<MemorySourceScan> = names
        .iter()
        .map(|name| MemorySourceScan {
            source: name.clone(),
            total_files: of(name).and_then(|source| source.total_files).map(|files| files as u64),
            issues: issues(name),
        })
        .collect();
    let mut scan = MemoryScan {
        total_files: scans.iter().map(|scan| scan.total_files).sum(),
        issues: scans.iter().flat_map(|scan| scan.issues.clone()).collect(),
        sources: scans,
    };
    if scan.total_files == Some(0) && scan.issues.is_empty() {
        let none = format!("no memory files found in {}", resolved.workspace.display());
        scan.sources.iter_mut().take(1).for_each(|source| source.issues.push(none.clone()));
        scan.issues.push(none);
    }
    let status = MemoryIndexStatus {
        backend: "builtin".to_owned(),
        files: found.files as u64,
        chunks: found.chunks as u64,
        dirty: found.dirty,
        workspace_dir: resolved.workspace.display().to_string(),
        db_path: resolved.store.display().to_string(),
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        requested_provider: choice.requested.to_owned(),
        source_counts: names
            .iter()
            .map(|name| MemorySourceCount {
                source: name.clone(),
                files: of(name).map_or(0, |source| source.files as u64),
                chunks: of(name).map_or(0, |source| source.chunks as u64),
            })
            .collect(),
        sources: names,
        extra_paths: resolved.extra_paths.clone(),
        cache: Some(MemoryCacheStatus {
            enabled: resolved.cache,
            entries: found.cache_entries as u64,
            max_entries: resolved.cache_entries.map(|most| most as u64),
        }),
        fts: Some(MemoryPart {
            enabled: resolved.hybrid,
            available: resolved.hybrid && store_error.is_none(),
            error: store_error,
        }),
        fallback: choice.fallback.clone(),
        vector: MemoryVectorStatus {
            enabled: resolved.vectors,
            available: resolved.vectors && choice.embedder.is_some(),
            dims: found.dimensions.map(|dims| dims as u64),
        },
        batch: batch(&choice, &resolved),
        custom: None,
        bytes: (found.bytes > 0).then_some(found.bytes),
        pending: (found.pending > 0 && choice.embedder.is_some()).then_some(found.pending as u64),
        notes: notes(memory, &found),
    };
    AgentMemoryStatus { agent_id: memory.agent.to_string(), status, embedding_probe, index_error: None, scan }
}

/// Batch jobs of the provider.
fn batch(choice: &EmbedderChoice, resolved: &ResolvedMemory) -> MemoryBatchStatus {
    let health = choice.jobs.as_ref().map(|jobs| jobs.health());
    let settings = resolved.batch;
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (failures, limit) = health.clone().unwrap_or_default().failures();
    MemoryBatchStatus {
        enabled: health.as_ref().is_some_and(BatchHealth::is_enabled),
        failures: failures.into(),
        limit: limit.into(),
        wait: settings.wait,
        concurrency: settings.concurrency,
        poll_interval_ms: milliseconds(settings.poll_interval),
        timeout_ms: milliseconds(settings.timeout),
        last_error: health.and_then(|health| health.last_error().map(str::to_owned)),
    }
}

/// Remarks for people: why there are no vectors, and what to do.
fn notes(memory: &AgentMemory, found: &openclaw_memory::MemoryStatus) -> Vec<String> {
    let choice = memory.choice();
    let mut notes = Vec::new();
    if choice.embedder.is_none() && choice.requested != "none" {
        match &choice.reason {
            Some(reason) if !(choice.lacks_key && choice.requested == "auto") => {
                notes.push(format!("Keywords alone are searched: {reason}"));
            }
            _ => notes.push(ADVICE.to_owned()),
        }
    }
    if let Some(error) = &found.last_sync.embed_error {
        notes.push(format!("Texts are not embedded: {error}"));
    }
    if let Some(error) = &found.last_sync.error {
        notes.push(format!("The index can't be written: {error}"));
    }
    if found.last_sync.needs_force {
        notes.push("Another model is set; `openclaw memory index --force` embeds all texts anew.".to_owned());
    }
    if found.chunks > 0 && !found.is_shared {
        notes.push("OpenClaw 2026.2.9 would index this much text anew.".to_owned());
    }
    notes
}

/// Directories that are not there, in words for people.
#[derive(Default)]
struct MissingDirectories {
    memory: Option<String>,
    sessions: Option<String>,
    /// The workspace is not there: nothing in it can be.
    all: bool,
}

async fn missing(resolved: &ResolvedMemory, sessions: PathBuf) -> MissingDirectories {
    let workspace = resolved.workspace.clone();
    let memory = workspace.join("memory");
    let look = tokio::task::spawn_blocking(move || {
        let absent = |what: &str, dir: &Path| {
            (!dir.is_dir()).then(|| format!("{what} directory missing ({})", dir.display()))
        };
        MissingDirectories {
            memory: absent("memory", &memory),
            sessions: absent("sessions", &sessions),
            all: !workspace.is_dir(),
        }
    });
    look.await.unwrap_or_default()
}

/// Asks the provider for one vector.
async fn probe(memory: &AgentMemory) -> EmbeddingProbe {
    let choice = memory.choice();
    let Some(embedder) = &choice.embedder else {
        let error = choice.reason.clone().or_else(|| Some("no provider of embeddings".to_owned()));
        return EmbeddingProbe { ok: false, error };
    };
    match embedder.embed_batch(&["ping".to_owned()]).await {
        Ok(_) => EmbeddingProbe { ok: true, error: None },
        Err(error) => EmbeddingProbe { ok: false, error: Some(error.to_string()) },
    }
}
