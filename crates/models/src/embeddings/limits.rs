//! Bounds of one request, and of its time.

use std::time::Duration;

use openclaw_embedding::BatchLimits;

use super::provider::EmbeddingProvider;

/// Endpoints of which nothing is known get requests as OpenClaw 2026.2.9 sends them.
const UNKNOWN: BatchLimits = BatchLimits { query_timeout: Duration::from_secs(60), ..BatchLimits::UNKNOWN };
/// A program on this machine works on one request at a time, and slowly.
const ON_THIS_MACHINE: BatchLimits = BatchLimits {
    requests: 1,
    batch_timeout: Duration::from_secs(600),
    query_timeout: Duration::from_secs(300),
    ..UNKNOWN
};
/// OpenAI takes 2,048 texts and about 300,000 tokens; a unit may be more than one token.
const OPENAI: BatchLimits = BatchLimits { texts: 2_048, units: 150_000, ..UNKNOWN };
/// Gemini takes 100 texts.
const GEMINI: BatchLimits = BatchLimits { texts: 100, units: 100_000, ..UNKNOWN };
/// Voyage takes 1,000 texts and 120,000 tokens.
const VOYAGE: BatchLimits = BatchLimits { texts: 1_000, units: 80_000, ..UNKNOWN };

/// Kind of server behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// The provider's own.
    Own,
    /// A program on this machine.
    OnThisMachine,
    /// Some other server.
    Foreign,
}

/// Returns the limits of an endpoint.
pub(super) fn limits_of(provider: EmbeddingProvider, kind: ServerKind) -> BatchLimits {
    match (kind, provider) {
        (ServerKind::OnThisMachine, _) | (_, EmbeddingProvider::Local) => ON_THIS_MACHINE,
        (ServerKind::Foreign, _) => UNKNOWN,
        (ServerKind::Own, EmbeddingProvider::OpenAi) => OPENAI,
        (ServerKind::Own, EmbeddingProvider::Gemini) => GEMINI,
        (ServerKind::Own, EmbeddingProvider::Voyage) => VOYAGE,
    }
}

/// Models whose number of dimensions is known before they answer.
const DIMENSIONS: &[(&str, usize)] = &[
    ("text-embedding-3-small", 1536),
    ("text-embedding-3-large", 3072),
    ("gemini-embedding-001", 3072),
    ("voyage-4-large", 1024),
    ("embeddinggemma-300m", 768),
    ("all-minilm-l6-v2", 384),
];

/// Returns the number of dimensions of a model, if it is known without asking.
pub fn known_dimensions(model: &str) -> Option<usize> {
    let lower = model.to_lowercase();
    DIMENSIONS.iter().find(|(name, _)| *name == lower).map(|(_, dimensions)| *dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_hundred_small_notes_are_few_requests() {
        let notes = vec!["x".repeat(400); 500];
        for (limits, most) in [(OPENAI, 2), (GEMINI, 5), (VOYAGE, 3)] {
            assert!(limits.requests(&notes).len() <= most, "{limits:?}");
        }
    }
}
