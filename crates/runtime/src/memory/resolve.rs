//! From the configuration to the settings of an index.

use openclaw_config::settings::{MemoryScoring, ResolvedMemory};
use openclaw_memory::MemorySettings;
use openclaw_memory::chunk::Chunking;
use openclaw_memory::settings::{CacheSettings, HybridSettings, QuerySettings, Scoring, SyncSettings};

/// Settings of the index of an agent.
pub(super) fn index_settings(resolved: &ResolvedMemory) -> MemorySettings {
    let query = QuerySettings {
        max_results: resolved.max_results,
        min_score: resolved.min_score,
        hybrid: HybridSettings {
            enabled: resolved.hybrid,
            vector_weight: resolved.vector_weight,
            text_weight: resolved.text_weight,
            candidate_multiplier: resolved.candidate_multiplier,
            scoring: match resolved.scoring {
                MemoryScoring::Corrected => Scoring::Corrected,
                MemoryScoring::Compat => Scoring::Compat,
            },
            ..HybridSettings::default()
        },
        ..QuerySettings::default()
    };
    let sync = SyncSettings {
        on_session_start: resolved.on_session_start,
        on_search: resolved.on_search,
        watch: resolved.watch,
        watch_debounce: resolved.watch_debounce,
        interval: resolved.interval,
        session_bytes: resolved.session_bytes,
        session_messages: resolved.session_messages,
    };
    let most = CacheSettings::default().max_entries;
    MemorySettings {
        extra_paths: resolved.extra_paths.clone(),
        memory_files: resolved.memory_files,
        sessions: resolved.sessions,
        chunking: Chunking { tokens: resolved.chunk_tokens, overlap: resolved.chunk_overlap },
        sync,
        query,
        // Without sqlite-vec OpenClaw 2026.2.9 compares vectors all the same; its table is written for it alone.
        vectors: true,
        cache: CacheSettings { enabled: resolved.cache, max_entries: resolved.cache_entries.unwrap_or(most) },
        ..MemorySettings::new(&resolved.workspace, &resolved.store)
    }
}
