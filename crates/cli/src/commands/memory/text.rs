//! Memory in words, those of OpenClaw 2026.2.9.

use std::path::Path;

use openclaw_protocol::params::memory::{
    AgentMemoryIndexed, AgentMemoryStatus, MemoryHit, MemoryIndexStatus, MemoryPart, MemoryVectorStatus,
};
use openclaw_protocol::printable::one_line;

use crate::context::CliContext;

/// State of an agent's memory, with an empty line behind it.
pub(super) fn status(agent: &AgentMemoryStatus, was_indexed: bool, context: &CliContext) -> Vec<String> {
    let status = &agent.status;
    let short = |path: &str| context.short(Path::new(path));
    let total = |files: Option<u64>| files.map_or_else(|| "?".to_owned(), |files| files.to_string());
    let mut lines = Vec::new();
    if was_indexed {
        lines.push(match &agent.index_error {
            None => "Memory index complete.".to_owned(),
            Some(error) => format!("Memory index failed: {error}"),
        });
    }
    lines.push(format!("Memory Search ({})", agent.agent_id));
    lines.push(format!("Provider: {} (requested: {})", status.provider, status.requested_provider));
    push(&mut lines, "Model", &status.model);
    lines.push(format!("Sources: {}", status.sources.join(", ")));
    push(&mut lines, "Extra paths", &extra_paths(&status.extra_paths, &status.workspace_dir, context));
    lines.push(format!(
        "Indexed: {}/{} files · {} chunks",
        status.files,
        total(agent.scan.total_files),
        status.chunks
    ));
    lines.push(format!("Dirty: {}", if status.dirty { "yes" } else { "no" }));
    lines.push(format!("Store: {}", short(&status.db_path)));
    lines.push(format!("Workspace: {}", short(&status.workspace_dir)));
    if let Some(probe) = &agent.embedding_probe {
        lines.push(format!("Embeddings: {}", if probe.ok { "ready" } else { "unavailable" }));
        push(&mut lines, "Embeddings error", probe.error.as_deref().unwrap_or_default());
    }
    lines.push("By source:".to_owned());
    for count in &status.source_counts {
        let scan = agent.scan.sources.iter().find(|scan| scan.source == count.source);
        let all = total(scan.and_then(|scan| scan.total_files));
        lines.push(format!("  {} · {}/{all} files · {} chunks", count.source, count.files, count.chunks));
    }
    if let Some(fallback) = &status.fallback {
        lines.push(format!("Fallback: {}", fallback.from));
    }
    lines.push(format!("Vector: {}", vector(&status.vector)));
    if let Some(dims) = status.vector.dims {
        lines.push(format!("Vector dims: {dims}"));
    }
    if let Some(fts) = &status.fts {
        lines.push(format!("FTS: {}", keywords(fts)));
        push(&mut lines, "FTS error", fts.error.as_deref().unwrap_or_default());
    }
    if let Some(cache) = &status.cache {
        lines.push(match cache.enabled {
            true => format!("Embedding cache: enabled ({} entries)", cache.entries),
            false => "Embedding cache: disabled".to_owned(),
        });
        if let Some(most) = cache.max_entries.filter(|_| cache.enabled) {
            lines.push(format!("Cache cap: {most}"));
        }
    }
    let batch = &status.batch;
    let is_on = if batch.enabled { "enabled" } else { "disabled" };
    lines.push(format!("Batch: {is_on} (failures {}/{})", batch.failures, batch.limit));
    lines.extend(batch.last_error.iter().map(|error| format!("Batch error: {error}")));
    lines.extend(status.fallback.iter().map(|fallback| fallback.reason.clone()));
    if let Some(pending) = status.pending {
        lines.push(format!("Waiting for vectors: {pending} chunks"));
    }
    if let Some(error) = &agent.index_error {
        lines.push(format!("Index error: {error}"));
    }
    if !agent.scan.issues.is_empty() {
        lines.push("Issues:".to_owned());
        lines
            .extend(agent.scan.issues.iter().map(|issue| format!("  {}", shortened(issue, status, context))));
    }
    lines.extend(status.notes.iter().cloned());
    lines.push(String::new());
    lines
}

/// Description of an index, before `memory index --verbose` says how it went.
pub(super) fn indexed(agent: &AgentMemoryIndexed, context: &CliContext) -> Vec<String> {
    let config = context.config_or_default();
    let id = openclaw_protocol::AgentId::normalize(&agent.agent_id);
    let resolved = config.agent(&id);
    let places = agent.sources.iter().map(|source| match source.as_str() {
        "memory" => {
            let files = resolved.workspace.join("memory").join("*.md");
            format!("memory (MEMORY.md + {})", context.short(&files))
        }
        other => format!("{other} ({})", context.short(&resolved.sessions_dir.join("*.jsonl"))),
    });
    let mut lines = vec![
        format!("Memory Index ({})", agent.agent_id),
        format!("Provider: {} (requested: {})", agent.provider, agent.requested_provider),
    ];
    push(&mut lines, "Model", &agent.model);
    lines.push(format!("Sources: {}", places.collect::<Vec<_>>().join(", ")));
    let workspace = resolved.workspace.display().to_string();
    push(&mut lines, "Extra paths", &extra_paths(&agent.extra_paths, &workspace, context));
    lines.push(String::new());
    if let Some(reason) = &agent.reindexed {
        lines.push(format!("Everything was written anew: {reason}"));
    }
    lines.push(format!(
        "Files: {} indexed, {} removed, {} unchanged",
        agent.indexed, agent.removed, agent.unchanged
    ));
    lines.extend(agent.issues.iter().cloned());
    lines
}

/// The hits of a search.
pub(super) fn hits(hits: &[MemoryHit]) -> String {
    let mut lines = Vec::new();
    for hit in hits {
        let path = one_line(&hit.path);
        lines.push(format!("{:.3} {path}:{}-{}", hit.score, hit.start_line, hit.end_line));
        lines.push(hit.snippet.clone());
        lines.push(String::new());
    }
    lines.join("\n").trim().to_owned()
}

/// Memory in the overview of `openclaw status`.
pub(crate) fn row(status: &MemoryIndexStatus) -> String {
    let mut parts = vec![format!("{} files", status.files), format!("{} chunks", status.chunks)];
    parts.extend(status.dirty.then(|| "dirty".to_owned()));
    parts.push(format!("sources {}", status.sources.join(", ")));
    parts.push(format!("plugin {}", openclaw_config::settings::MEMORY_PLUGIN));
    parts.push(format!("vector {}", if status.vector.enabled { vector(&status.vector) } else { "off" }));
    parts.extend(
        status.fts.as_ref().map(|fts| format!("fts {}", if fts.enabled { keywords(fts) } else { "off" })),
    );
    parts.extend(status.cache.as_ref().map(|cache| match cache.enabled {
        true => format!("cache on ({})", cache.entries),
        false => "cache off".to_owned(),
    }));
    parts.join(" · ")
}

fn push(lines: &mut Vec<String>, label: &str, value: &str) {
    if !value.is_empty() {
        lines.push(format!("{label}: {value}"));
    }
}

/// Further paths as people read them: whole, with `~` for the home directory.
fn extra_paths(paths: &[String], workspace: &str, context: &CliContext) -> String {
    let whole = paths.iter().map(|path| context.short(&Path::new(workspace).join(path)));
    whole.collect::<Vec<_>>().join(", ")
}

fn shortened(issue: &str, status: &MemoryIndexStatus, context: &CliContext) -> String {
    issue.replace(&status.workspace_dir, &context.short(Path::new(&status.workspace_dir)))
}

fn vector(vector: &MemoryVectorStatus) -> &'static str {
    match (vector.enabled, vector.available) {
        (false, _) => "disabled",
        (true, true) => "ready",
        (true, false) => "unavailable",
    }
}

fn keywords(fts: &MemoryPart) -> &'static str {
    match (fts.enabled, fts.available) {
        (false, _) => "disabled",
        (true, true) => "ready",
        (true, false) => "unavailable",
    }
}
