//! Bounds of one request, and of its time.

use std::time::Duration;

use super::provider::EmbeddingProvider;

/// Bounds of requests to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingLimits {
    /// Largest number of texts in a request.
    pub texts: usize,
    /// Largest sum of the UTF-16 units of its texts.
    pub units: usize,
    /// Requests at the same time.
    pub requests: usize,
    /// Longest time for a request with texts of documents.
    pub batch_timeout: Duration,
    /// Longest time for a request with a query.
    pub query_timeout: Duration,
}

/// Endpoints of which nothing is known get requests as OpenClaw 2026.2.9 sends them.
const UNKNOWN: EmbeddingLimits = EmbeddingLimits {
    texts: 100,
    units: 8_000,
    requests: 4,
    batch_timeout: Duration::from_secs(120),
    query_timeout: Duration::from_secs(60),
};
/// A program on this machine works on one request at a time, and slowly.
const ON_THIS_MACHINE: EmbeddingLimits = EmbeddingLimits {
    requests: 1,
    batch_timeout: Duration::from_secs(600),
    query_timeout: Duration::from_secs(300),
    ..UNKNOWN
};
/// OpenAI takes 2,048 texts and about 300,000 tokens; a unit may be more than one token.
const OPENAI: EmbeddingLimits = EmbeddingLimits { texts: 2_048, units: 150_000, ..UNKNOWN };
/// Gemini takes 100 texts.
const GEMINI: EmbeddingLimits = EmbeddingLimits { texts: 100, units: 100_000, ..UNKNOWN };
/// Voyage takes 1,000 texts and 120,000 tokens.
const VOYAGE: EmbeddingLimits = EmbeddingLimits { texts: 1_000, units: 80_000, ..UNKNOWN };

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

impl EmbeddingLimits {
    pub(super) fn of(provider: EmbeddingProvider, kind: ServerKind) -> Self {
        match (kind, provider) {
            (ServerKind::OnThisMachine, _) | (_, EmbeddingProvider::Local) => ON_THIS_MACHINE,
            (ServerKind::Foreign, _) => UNKNOWN,
            (ServerKind::Own, EmbeddingProvider::OpenAi) => OPENAI,
            (ServerKind::Own, EmbeddingProvider::Gemini) => GEMINI,
            (ServerKind::Own, EmbeddingProvider::Voyage) => VOYAGE,
        }
    }

    /// Parts texts into requests, in order. A text that is too large goes alone.
    pub(super) fn requests<'a, T: AsRef<str>>(&self, texts: &'a [T]) -> Vec<&'a [T]> {
        let mut requests = Vec::new();
        let (mut from, mut units) = (0, 0_usize);
        for (at, text) in texts.iter().enumerate() {
            let size = text.as_ref().encode_utf16().count();
            let is_full = at - from >= self.texts || units.saturating_add(size) > self.units;
            if at > from && is_full {
                requests.extend(texts.get(from..at));
                (from, units) = (at, 0);
            }
            units = units.saturating_add(size);
        }
        requests.extend(texts.get(from..).filter(|rest| !rest.is_empty()));
        requests
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
    use proptest::prelude::*;

    use super::*;

    fn sizes(texts: usize, units: usize, lengths: &[usize]) -> Vec<usize> {
        let all: Vec<String> = lengths.iter().map(|length| "x".repeat(*length)).collect();
        let limits = EmbeddingLimits { texts, units, ..UNKNOWN };
        limits.requests(&all).iter().map(|request| request.len()).collect()
    }

    #[test]
    fn requests_are_filled_in_order() {
        let rows: [(usize, usize, &[usize], &[usize]); 6] = [
            (10, 100, &[], &[]),
            (10, 100, &[40, 40, 40], &[2, 1]),
            (2, 100, &[1, 1, 1, 1, 1], &[2, 2, 1]),
            (10, 100, &[500, 1, 500], &[1, 1, 1]),
            (10, 100, &[100, 0, 1], &[2, 1]),
            (1, 1, &[0, 0], &[1, 1]),
        ];
        for (texts, units, lengths, expect) in rows {
            assert_eq!(sizes(texts, units, lengths), expect, "{lengths:?}");
        }
    }

    #[test]
    fn five_hundred_small_notes_are_few_requests() {
        let notes = vec![400; 500];
        for (limits, most) in [(OPENAI, 2), (GEMINI, 5), (VOYAGE, 3)] {
            assert!(sizes(limits.texts, limits.units, &notes).len() <= most, "{limits:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_lost_and_no_request_is_over_its_limits(
            lengths in prop::collection::vec(0_usize..60, 0..80), texts in 1_usize..9, units in 1_usize..100,
        ) {
            let found = sizes(texts, units, &lengths);
            prop_assert_eq!(found.iter().sum::<usize>(), lengths.len());
            let mut rest = lengths.as_slice();
            for count in found {
                let (request, after) = rest.split_at(count);
                prop_assert!(count <= texts && (count == 1 || request.iter().sum::<usize>() <= units));
                rest = after;
            }
        }
    }
}
