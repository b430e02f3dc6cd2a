//! Identity of an index: model, endpoint and sizes of chunks. OpenClaw 2026.2.9 makes an index anew when it differs from
//! the settings.

use serde::{Deserialize, Serialize};

use crate::chunk::{Chunking, sha256_hex};
use crate::embedder::EmbedderIdentity;

/// Model name of chunks that were indexed without an embedder.
const NO_MODEL: &str = "fts-only";

/// Headers that say nothing of the endpoint, by provider; the fingerprint leaves them out.
const LEFT_OUT: &[(&str, &[&str])] =
    &[("openai", &["authorization"]), ("gemini", &["authorization", "x-goog-api-key"])];

/// Returns the fingerprint of an endpoint as OpenClaw 2026.2.9 computes it: SHA-256 of compact JSON. `base_url` is the
/// address as configured, and `headers` are those of its requests, also the one for the content type.
#[must_use]
pub fn provider_key(provider: &str, base_url: &str, model: &str, headers: &[(String, String)]) -> String {
    let Some((_, left_out)) = LEFT_OUT.iter().find(|(name, _)| *name == provider) else {
        return sha256_hex(serde_json::json!({"provider": provider, "model": model}).to_string().as_bytes());
    };
    let mut headers: Vec<_> =
        headers.iter().filter(|(name, _)| !left_out.contains(&name.to_lowercase().as_str())).collect();
    headers.sort_by_key(|(name, _)| (name.to_lowercase(), name.clone()));
    let key =
        serde_json::json!({"provider": provider, "baseUrl": base_url, "model": model, "headers": headers});
    sha256_hex(key.to_string().as_bytes())
}

/// Returns the fingerprints under which the same endpoint may be known: with and without a slash at its end, and without
/// headers that look like secrets.
#[must_use]
pub fn equivalent_keys(
    provider: &str,
    base_url: &str,
    model: &str,
    headers: &[(String, String)],
) -> Vec<String> {
    let bare = base_url.trim_end_matches('/');
    let is_secret = |name: &str| {
        ["key", "token", "secret", "auth", "cookie"].iter().any(|part| name.to_lowercase().contains(part))
    };
    let open: Vec<(String, String)> = headers.iter().filter(|(name, _)| !is_secret(name)).cloned().collect();
    let own = provider_key(provider, base_url, model, headers);
    let mut keys = Vec::new();
    for url in [bare.to_owned(), format!("{bare}/")] {
        for headers in [headers, &open] {
            let key = provider_key(provider, &url, model, headers);
            if key != own && !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

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

    fn headers(value: &serde_json::Value) -> Vec<(String, String)> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }

    #[test]
    fn fingerprints_are_those_recorded() {
        for row in golden("memory-schema.json")["provider_key_vectors"].as_array().unwrap() {
            let input = &row["input_json"];
            let text = |key: &str| input[key].as_str().unwrap_or_default();
            let mut headers = headers(&input["headers"]);
            headers.push(("Authorization".into(), "Bearer secret".into()));
            let made = provider_key(text("provider"), text("baseUrl"), text("model"), &headers);
            assert_eq!(made, row["sha256"].as_str().unwrap(), "{input}");
        }
    }

    #[test]
    fn a_slash_and_secret_headers_do_not_change_the_endpoint() {
        let plain = [("Content-Type".to_owned(), "application/json".to_owned())];
        let keyed = [plain[0].clone(), ("X-Api-Key".to_owned(), "s".to_owned())];
        let known = equivalent_keys("openai", "http://host/v1", "m", &keyed);
        for key in [
            provider_key("openai", "http://host/v1/", "m", &keyed),
            provider_key("openai", "http://host/v1", "m", &plain),
        ] {
            assert!(known.contains(&key));
        }
        assert!(!known.contains(&provider_key("openai", "http://other/v1", "m", &plain)));
    }

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
