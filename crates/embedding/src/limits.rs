//! Limits of one request, and of its time.

use std::time::Duration;

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Largest number of texts.
    pub texts: usize,
    /// Largest sum of UTF-16 code units of the texts.
    pub units: usize,
    /// Largest number of requests at the same time.
    pub requests: usize,
    /// Longest time that one request of documents may take.
    pub batch_timeout: Duration,
    /// Longest time that embedding a query may take before the search goes on with keywords alone.
    pub query_timeout: Duration,
}

impl BatchLimits {
    /// Limits for an endpoint of which nothing is known: 8,000 units a request, as OpenClaw 2026.2.9 sends.
    pub const UNKNOWN: Self = Self {
        texts: 100,
        units: 8_000,
        requests: 4,
        batch_timeout: Duration::from_secs(120),
        query_timeout: Duration::from_secs(10),
    };

    /// Splits texts into requests, in order. A text that is too large goes alone.
    #[must_use]
    pub fn requests<'a, T: AsRef<str>>(&self, texts: &'a [T]) -> Vec<&'a [T]> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(texts: usize, units: usize, lengths: &[usize]) -> Vec<usize> {
        let all: Vec<String> = lengths.iter().map(|length| "x".repeat(*length)).collect();
        let limits = BatchLimits { texts, units, ..BatchLimits::UNKNOWN };
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
