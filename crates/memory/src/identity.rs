//! Identity of an index: model, endpoint and sizes of chunks. OpenClaw 2026.2.9 makes an index anew when it differs from
//! the settings.

use serde::{Deserialize, Serialize};

use crate::chunk::{Chunking, sha256_hex};
use openclaw_embedding::EmbedderIdentity;

/// Model name of chunks that were indexed without an embedder.
const NO_MODEL: &str = "fts-only";

/// The record `memory_index_meta_v1` of an index file. Its fields are written in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexMeta {
    pub(crate) model: String,
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) provider_key: String,
    pub(crate) chunk_tokens: usize,
    pub(crate) chunk_overlap: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) vector_dims: Option<usize>,
}

impl IndexMeta {
    /// Returns the record that an index with these settings has.
    pub(crate) fn new(embedder: Option<&EmbedderIdentity>, chunking: Chunking) -> Self {
        let chunking = chunking.resolved();
        Self {
            model: embedder.map_or_else(|| NO_MODEL.to_owned(), |identity| identity.model.clone()),
            provider: embedder.map_or_else(|| "none".to_owned(), |identity| identity.provider.clone()),
            provider_key: embedder.map(|identity| identity.provider_key.clone()).unwrap_or_default(),
            chunk_tokens: chunking.tokens,
            chunk_overlap: chunking.overlap,
            vector_dims: None,
        }
    }

    /// Returns whether `embedder` made the vectors of this index.
    pub(crate) fn is_of(&self, embedder: &EmbedderIdentity) -> bool {
        self.provider == embedder.provider
            && self.model == embedder.model
            && (self.provider_key == embedder.provider_key
                || embedder.equivalent_keys.contains(&self.provider_key))
    }

    /// Returns whether its chunks have these sizes.
    pub(crate) fn has_chunking(&self, chunking: Chunking) -> bool {
        let chunking = chunking.resolved();
        self.chunk_tokens == chunking.tokens && self.chunk_overlap == chunking.overlap
    }
}

/// Returns the id of a chunk. `ordinal` counts chunks of one file that would have the same id, from 0.
pub(crate) fn chunk_id(
    source: &str,
    path: &str,
    lines: (u32, u32),
    hash: &str,
    model: &str,
    ordinal: usize,
) -> String {
    let mut name = format!("{source}:{path}:{}:{}:{hash}:{model}", lines.0, lines.1);
    if ordinal > 0 {
        name.push_str(&format!(":{ordinal}"));
    }
    sha256_hex(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::golden;

    #[test]
    fn the_record_is_written_as_2026_2_9_writes_it() {
        let golden = golden("memory-schema.json");
        let recorded = golden["meta"][0]["value"].as_str().unwrap();
        let meta: IndexMeta = serde_json::from_str(recorded).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), recorded);
    }

    #[test]
    fn ids_are_those_recorded() {
        for chunk in golden("memory-corpus.json")["expected_chunks"].as_array().unwrap() {
            let text = |key: &str| chunk[key].as_str().unwrap();
            let line = |key: &str| u32::try_from(chunk[key].as_u64().unwrap()).unwrap();
            let lines = (line("startLine"), line("endLine"));
            assert_eq!(
                chunk_id(text("source"), text("path"), lines, text("hash"), text("model"), 0),
                text("id")
            );
        }
    }
}
