//! Answers of the tools of a run (spec `memory.md` §3). The keys, and their order, are those of OpenClaw 2026.2.9;
//! what is ours comes behind them.

use openclaw_agent::host::{MemoryLines, MemoryQuestion};
use openclaw_config::settings::Citations;
use openclaw_config::without_dots;
use openclaw_memory::{GetError, GetRequest, Hit, SearchAnswer, SearchMode, SearchRequest, Source, cut};
use openclaw_protocol::params::memory::{MemoryFallback, MemoryHit};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_qmd::{QmdGetError, QmdQuestion};
use serde::Serialize;
use serde_json::{Value, json};

use super::Memories;
use super::embedder::EmbedderChoice;
use super::held::AgentMemory;
use super::qmd::{QMD, QmdAnswer};

/// Largest number of hits that a model may ask for.
const MOST_RESULTS: usize = 50;

/// Largest sum of what the hits of an answer quote, in UTF-16 units.
const BUDGET: usize = 6 * 760;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotesFound {
    results: Vec<MemoryHit>,
    provider: String,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<MemoryFallback>,
    citations: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl Memories {
    /// Answers a call of `memory_search` of a run in a session.
    pub async fn answer_search(
        &self,
        agent: &AgentId,
        session: &SessionKey,
        question: MemoryQuestion,
    ) -> Value {
        let memory = match self.of(agent).await {
            Ok(memory) => memory,
            Err(reason) => return no_search(&reason.to_string()),
        };
        let citations = self.settings().config.memory.citations;
        let is_cited = cites(citations, session);
        let asked = QmdQuestion {
            query: question.query.clone(),
            max_results: question.max_results,
            min_score: question.min_score,
        };
        let fallback = match self.ask_qmd(&memory, Some(session), asked).await {
            QmdAnswer::NotChosen => None,
            QmdAnswer::Failed(fallback) => Some(fallback),
            QmdAnswer::Denied => return found_by_qmd(Vec::new(), citations, 0),
            QmdAnswer::Found(hits) => {
                let most = self.settings().config.memory.qmd.limits.max_injected_chars();
                let results = hits.into_iter().map(|hit| shown(hit, is_cited)).collect();
                return found_by_qmd(results, citations, most);
            }
        };
        let request = SearchRequest {
            query: question.query,
            max_results: question.max_results.map(|most| most.min(MOST_RESULTS)),
            min_score: question.min_score.map(|least| least.clamp(0.0, 1.0)),
            session: Some(session.as_str().to_owned()),
        };
        match self.search_index(&memory, &request).await {
            Ok(mut answer) => {
                if !is_direct(session) {
                    // What was said elsewhere is not for a group.
                    answer.hits.retain(|hit| hit.source != Source::Sessions);
                }
                let fallback = fallback.or_else(|| memory.choice().fallback.clone());
                let found = found(answer, &memory.choice(), citations, is_cited, fallback);
                serde_json::to_value(found).unwrap_or_else(|error| no_search(&error.to_string()))
            }
            Err(error) => no_search(&error.to_string()),
        }
    }

    /// Answers a call of `memory_get` of a run.
    pub async fn answer_get(&self, agent: &AgentId, wish: MemoryLines) -> Value {
        let memory = match self.of(agent).await {
            Ok(memory) => memory,
            Err(reason) => {
                return json!({"path": wish.path, "text": "", "disabled": true, "error": reason.to_string()});
            }
        };
        let request = GetRequest { path: wish.path.clone(), from: wish.from, lines: wish.lines };
        let refused = |error: String| json!({"path": wish.path, "text": "", "error": error});
        let qmd = self.qmd(&memory).await;
        let by_qmd = match &qmd {
            Some(qmd) => qmd.get(&request).await,
            None => None,
        };
        match by_qmd {
            Some(Ok(answer)) => return json!({"text": answer.text, "path": answer.path}),
            Some(Err(QmdGetError::Get(error))) => return refused(advice(&error)),
            Some(Err(error)) => return refused(error.to_string()),
            None => {}
        }
        match memory.index.get(&request).await {
            Ok(answer) => json!({"text": answer.text, "path": answer.path}),
            Err(GetError::PathRequired) if qmd.is_some() && escapes(&memory, &wish.path) => {
                refused("path escapes workspace".to_owned())
            }
            Err(error) => refused(advice(&error)),
        }
    }
}

/// True if a path leads out of the workspace.
fn escapes(memory: &AgentMemory, path: &str) -> bool {
    let workspace = without_dots(&memory.resolved().workspace);
    !without_dots(&workspace.join(path.trim())).starts_with(&workspace)
}

/// Words for a model that asked for lines that it can't have.
fn advice(error: &GetError) -> String {
    match error {
        GetError::PathRequired => {
            "path required: MEMORY.md, a file memory/*.md, or a path that memory_search returned".to_owned()
        }
        GetError::NotFound => "not found; memory_search tells which files there are".to_owned(),
        GetError::Transcript | GetError::Unreadable(_) => error.to_string(),
    }
}

fn no_search(error: &str) -> Value {
    json!({"results": [], "disabled": true, "error": error})
}

fn found(
    answer: SearchAnswer,
    choice: &EmbedderChoice,
    citations: Citations,
    is_cited: bool,
    fallback: Option<MemoryFallback>,
) -> NotesFound {
    let mode = (answer.mode == SearchMode::Keyword).then_some("keyword");
    let note = (!answer.is_confident && !answer.hits.is_empty())
        .then_some("No confident match: these are the closest notes, and may be about something else.");
    let mut left = BUDGET;
    let hits = answer.hits.into_iter().map(|hit| shown(hit, is_cited));
    let results = hits
        .take_while(|hit| {
            let size = hit.snippet.encode_utf16().count();
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        })
        .collect();
    NotesFound {
        results,
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        fallback,
        citations: citations.as_str(),
        mode,
        warning: answer.warning,
        note,
    }
}

/// Hits of `qmd`, with texts whose sum is at most `most` UTF-16 units.
fn found_by_qmd(mut results: Vec<MemoryHit>, citations: Citations, most: usize) -> Value {
    let mut left = most;
    results.retain_mut(|hit| {
        let is_kept = left > 0;
        let text = cut(&hit.snippet, left);
        left = left.saturating_sub(text.encode_utf16().count());
        hit.snippet.truncate(text.len());
        is_kept
    });
    let found = NotesFound {
        results,
        provider: QMD.to_owned(),
        model: QMD.to_owned(),
        fallback: None,
        citations: citations.as_str(),
        mode: None,
        warning: None,
        note: None,
    };
    serde_json::to_value(found).unwrap_or_else(|error| no_search(&error.to_string()))
}

/// A hit as it is shown, with its place as a source if `is_cited`.
pub(super) fn shown(hit: Hit, is_cited: bool) -> MemoryHit {
    let citation = is_cited.then(|| citation(&hit));
    let snippet = match &citation {
        Some(citation) => format!("{}\n\nSource: {citation}", hit.snippet.trim_end()),
        None => hit.snippet,
    };
    MemoryHit {
        path: hit.path,
        start_line: hit.start_line,
        end_line: hit.end_line,
        score: hit.score,
        snippet,
        source: hit.source.as_str().to_owned(),
        citation,
    }
}

fn citation(hit: &Hit) -> String {
    match hit.start_line == hit.end_line {
        true => format!("{}#L{}", hit.path, hit.start_line),
        false => format!("{}#L{}-L{}", hit.path, hit.start_line, hit.end_line),
    }
}

/// True if hits name their place as a source in this session.
fn cites(citations: Citations, session: &SessionKey) -> bool {
    match citations {
        Citations::On => true,
        Citations::Off => false,
        Citations::Auto => is_direct(session),
    }
}

/// True if a session is no chat of a group or channel.
fn is_direct(session: &SessionKey) -> bool {
    session.agent().is_none() || !session.rest().split(':').any(|part| part == "group" || part == "channel")
}
