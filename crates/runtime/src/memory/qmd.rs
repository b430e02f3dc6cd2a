//! The program `qmd` as the searcher of an agent's memory, with the index of this program behind it.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::requirements::BinPath;
use openclaw_config::redact::is_secret_name;
use openclaw_config::settings::MemoryBackend;
use openclaw_config::{Config, without_dots};
use openclaw_memory::{Hit, Source, TranscriptSource};
use openclaw_protocol::params::memory::{
    AgentMemoryIndexed, AgentMemoryStatus, EmbeddingProbe, MemoryBatchStatus, MemoryCustomStatus,
    MemoryFallback, MemoryQmdStatus, MemorySourceCount, MemorySourceScan, MemoryVectorStatus,
};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_qmd::{
    Qmd, QmdCall, QmdCallError, QmdExports, QmdPrograms, QmdQuestion, QmdRunning, QmdSettings, QmdSource,
    UpdateWish,
};
use openclaw_tools::{ProgramCall, ProgramFailure};

use super::Memories;
use super::held::AgentMemory;
use super::report::StatusDepth;
use super::transcripts::AgentTranscripts;

/// Name of the program in answers and reports.
pub(super) const QMD: &str = "qmd";
/// Largest output of a call in bytes.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;
/// Bytes of what it says about a failure that are kept.
const MAX_SAID: usize = 2_000;

/// An open `qmd`, and the configuration that it was opened with.
pub(super) struct HeldQmd {
    config: Arc<Config>,
    qmd: Arc<Qmd>,
}

/// Answer of `qmd` to a search.
pub(super) enum QmdAnswer {
    /// The configuration chooses the index of this program.
    NotChosen,
    /// The session may not search.
    Denied,
    Found(Vec<Hit>),
    /// The index of this program is to be searched, and the answer to say why.
    Failed(MemoryFallback),
}

impl Memories {
    /// Returns the `qmd` of an agent as the configuration in force wants it; `None` if it is not chosen. In a gateway its
    /// schedule runs.
    pub(super) async fn qmd(&self, memory: &AgentMemory) -> Option<Arc<Qmd>> {
        let settings = self.settings();
        let config = &settings.config;
        let mut held = memory.qmd.lock().await;
        if config.memory.backend != MemoryBackend::Qmd {
            if let Some(old) = held.take() {
                old.qmd.close().await;
            }
            return None;
        }
        // A program that was not there may have been installed since.
        let is_current =
            |held: &HeldQmd| Arc::ptr_eq(&held.config, config) && held.qmd.settings().program.is_ok();
        if let Some(held) = held.as_ref().filter(|held| is_current(held)) {
            return Some(Arc::clone(&held.qmd));
        }
        let wanted = {
            let (config, agent) = (Arc::clone(config), memory.agent.clone());
            tokio::task::spawn_blocking(move || qmd_settings(&config, &agent)).await.ok()?
        };
        let qmd = match held.take() {
            Some(old) if *old.qmd.settings() == wanted => old.qmd,
            old => {
                if let Some(old) = old {
                    old.qmd.close().await;
                }
                let transcripts = AgentTranscripts::new(&self.0, &settings, &memory.agent);
                let transcripts =
                    wanted.exports.is_some().then(|| Arc::new(transcripts) as Arc<dyn TranscriptSource>);
                Arc::new(Qmd::new(wanted, Arc::new(HostPrograms), transcripts))
            }
        };
        if self.is_in_gateway() && qmd.settings().program.is_ok() {
            qmd.start();
        }
        *held = Some(HeldQmd { config: Arc::clone(config), qmd: Arc::clone(&qmd) });
        Some(qmd)
    }

    /// Asks `qmd`. Without a session it is a person who asks, and no rule of sessions applies.
    pub(super) async fn ask_qmd(
        &self,
        memory: &AgentMemory,
        session: Option<&SessionKey>,
        question: QmdQuestion,
    ) -> QmdAnswer {
        let Some(qmd) = self.qmd(memory).await else { return QmdAnswer::NotChosen };
        if let Some(Err(refusal)) = session.map(|session| qmd.check_scope(session.as_str())) {
            tracing::warn!("{refusal}");
            return QmdAnswer::Denied;
        }
        match qmd.search(&question).await {
            Ok(hits) => QmdAnswer::Found(hits),
            Err(error) => {
                // A model is told this: it names no path of the host.
                let home = self.settings().config.environment().home().display().to_string();
                QmdAnswer::Failed(fallback(error.to_string().replace(&format!("{home}/"), "~/")))
            }
        }
    }

    /// Brings the index of `qmd` in step; `None` if it is not chosen, or can't be started.
    pub(super) async fn update_qmd(&self, memory: &AgentMemory, force: bool) -> Option<AgentMemoryIndexed> {
        let qmd = self.qmd(memory).await.filter(|qmd| qmd.settings().program.is_ok())?;
        let done = qmd.update(if force { UpdateWish::Forced } else { UpdateWish::IfDue }).await;
        let sources = qmd.status().await.documents;
        Some(AgentMemoryIndexed {
            agent_id: memory.agent.to_string(),
            provider: QMD.to_owned(),
            requested_provider: QMD.to_owned(),
            model: QMD.to_owned(),
            sources: sources.iter().map(|(source, _)| source.as_str().to_owned()).collect(),
            extra_paths: Vec::new(),
            indexed: sources.iter().map(|(_, count)| count).sum(),
            removed: 0,
            unchanged: 0,
            reindexed: None,
            issues: Vec::new(),
            error: done.err().map(|error| error.to_string()),
        })
    }

    /// Makes a report on the index of this program one on `qmd`, where that is chosen: on its index, or why the other one
    /// is searched. Starts and writes nothing, unless the index is to be brought in step.
    pub(super) async fn tell_of_qmd(
        &self,
        memory: &AgentMemory,
        depth: StatusDepth,
        told: &mut AgentMemoryStatus,
    ) {
        let Some(qmd) = self.qmd(memory).await else { return };
        if depth.index {
            told.index_error = qmd.update(UpdateWish::IfDue).await.err().map(|error| error.to_string());
        }
        if let Some(reason) = qmd.failure() {
            told.status.fallback = Some(fallback(reason));
            return;
        }
        let found = qmd.status().await;
        let status = &mut told.status;
        let total = found.documents.iter().map(|(_, count)| count).sum();
        (status.files, status.chunks, status.dirty) = (total, total, false);
        for name in
            [&mut status.backend, &mut status.provider, &mut status.model, &mut status.requested_provider]
        {
            QMD.clone_into(name);
        }
        status.db_path = found.index.display().to_string();
        status.sources = found.documents.iter().map(|(source, _)| source.as_str().to_owned()).collect();
        let count = |(source, count): &(Source, u64)| MemorySourceCount {
            source: source.as_str().to_owned(),
            files: *count,
            chunks: *count,
        };
        status.source_counts = found.documents.iter().map(count).collect();
        status.extra_paths = Vec::new();
        (status.cache, status.fts, status.fallback, status.bytes, status.pending) =
            (None, None, None, None, None);
        status.vector = MemoryVectorStatus { enabled: true, available: true, dims: None };
        status.batch = MemoryBatchStatus::default();
        let own = MemoryQmdStatus { collections: found.collections as u64, last_update_at: found.updated_at };
        status.custom = Some(MemoryCustomStatus { qmd: own });
        let update_error = found.update_error.map(|error| format!("The index is not updated: {error}"));
        status.notes = update_error.into_iter().chain(found.error).collect();
        told.embedding_probe = depth.probe.then_some(EmbeddingProbe { ok: true, error: None });
        self.count_transcripts(memory, told).await;
    }

    /// Counts the files that `qmd` may have: those of memory are counted, transcripts are not yet.
    async fn count_transcripts(&self, memory: &AgentMemory, told: &mut AgentMemoryStatus) {
        let scan = &mut told.scan;
        scan.sources.retain(|found| told.status.sources.contains(&found.source));
        let sessions = Source::Sessions.as_str();
        let is_searched = told.status.sources.iter().any(|name| name == sessions);
        if is_searched && scan.sources.iter().all(|found| found.source != sessions) {
            let transcripts = AgentTranscripts::new(&self.0, &self.settings(), &memory.agent);
            let listed = tokio::task::spawn_blocking(move || transcripts.list().ok());
            let total_files = listed.await.ok().flatten().map(|listed| listed.len() as u64);
            scan.sources.push(MemorySourceScan {
                source: sessions.to_owned(),
                total_files,
                issues: Vec::new(),
            });
        }
        // Documents of further directories are not among the files that were counted.
        for found in &mut scan.sources {
            let counts = told.status.source_counts.iter().find(|count| count.source == found.source);
            found.total_files = found.total_files.max(counts.map(|count| count.files));
        }
        scan.total_files = scan.sources.iter().map(|found| found.total_files).sum();
        scan.issues = scan.sources.iter().flat_map(|found| found.issues.clone()).collect();
    }
}

/// The fact that the index of this program is searched in the place of `qmd`.
fn fallback(reason: String) -> MemoryFallback {
    MemoryFallback { from: QMD.to_owned(), reason }
}

/// Finds the program that the configuration names. Blocking.
///
/// # Errors
/// The reason why it can't be started, for people.
pub fn qmd_program(config: &Config) -> Result<PathBuf, String> {
    let named = config.memory.qmd.program();
    let path = BinPath::of(config);
    let found = match named.contains('/') {
        true => {
            let program = config.environment().expand_path(&named);
            let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let dir = program.parent().map(|dir| dir.display().to_string()).unwrap_or_default();
            let found = BinPath::new(&dir).find(name);
            found.filter(|program| !path.sandboxes().holds(program))
        }
        false => path.find(&named),
    };
    found.ok_or_else(|| {
        format!("{named} is not installed, or not on the PATH of the gateway (memory.qmd.command names the program)")
    })
}

/// Settings of an agent's `qmd`. Blocking: looks for the program.
fn qmd_settings(config: &Config, agent: &AgentId) -> QmdSettings {
    let environment = config.environment();
    let qmd = &config.memory.qmd;
    let cache = environment.get_nonblank("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| environment.home().join(".cache"));
    let source = |path: &openclaw_config::settings::MemoryQmdPath| QmdSource {
        path: config.workspace_path(agent, &path.path),
        pattern: path.pattern.clone(),
        name: path.name.clone(),
    };
    let inherited =
        environment.vars().filter(|(name, _)| !is_secret_name(name) && !name.starts_with("OPENCLAW_"));
    QmdSettings {
        program: qmd_program(config),
        workspace: without_dots(&config.agent(agent).workspace),
        home: config.memory_qmd_home(agent),
        environment: inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        models: Some(cache.join("qmd").join("models")),
        default_memory: qmd.includes_default_memory(),
        sources: qmd.paths.iter().filter(|path| !path.path.trim().is_empty()).map(source).collect(),
        exports: qmd.sessions.is_on().then(|| QmdExports {
            dir: config.memory_qmd_exports(agent),
            retention: qmd.sessions.retention(),
        }),
        search: qmd.search_mode(),
        update: qmd.update.clone(),
        limits: qmd.limits.clone(),
        scope: qmd.scope(),
    }
}

/// Runs `qmd` as other programs that are asked for something.
struct HostPrograms;

impl QmdPrograms for HostPrograms {
    fn run(&self, call: QmdCall) -> QmdRunning<'_> {
        Box::pin(async move {
            let QmdCall { program, arguments, environment, directory, limit } = call;
            let call = ProgramCall {
                program: program.into(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment,
                directory,
                limit,
                max_answer: MAX_OUTPUT,
                max_said: MAX_SAID,
                ..ProgramCall::default()
            };
            call.answer().await.map(|answer| answer.output).map_err(|failure| match failure {
                ProgramFailure::NotStarted(error) => QmdCallError::NotStarted(error.to_string()),
                ProgramFailure::TimedOut(_) => QmdCallError::TimedOut,
                ProgramFailure::TooMuchOutput(_) => QmdCallError::TooMuchOutput,
                ProgramFailure::Failed { status, said } => QmdCallError::Failed { code: status.code(), said },
            })
        })
    }
}

impl HeldQmd {
    pub(super) async fn close(self) {
        self.qmd.close().await;
    }
}
