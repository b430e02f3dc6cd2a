//! Sizes of the parts that are summarised one by one (spec `agent-runtime.md` §10.6). Pure, over the tokens of messages.

use std::ops::Range;

/// The part of the window that a chunk takes of a history of short messages, and the least it takes.
const BASE_RATIO: f64 = 0.4;
const MIN_RATIO: f64 = 0.15;
/// Estimates may be too low by this factor.
pub(super) const SAFETY_MARGIN: f64 = 1.2;
/// Parts of a summary in stages.
const PARTS: usize = 2;
/// Fewer messages are summarised at once.
pub(super) const MIN_FOR_STAGES: usize = 4;

/// The share of the window that one chunk may take: less where messages are long.
#[expect(clippy::cast_precision_loss, reason = "an average, not a count")]
pub(super) fn ratio(tokens: &[u64], window: u64) -> f64 {
    if tokens.is_empty() || window == 0 {
        return BASE_RATIO;
    }
    let average = tokens.iter().sum::<u64>() as f64 / tokens.len() as f64 * SAFETY_MARGIN;
    let share = average / window as f64;
    if share > 0.1 {
        (BASE_RATIO - (2.0 * share).min(BASE_RATIO - MIN_RATIO)).max(MIN_RATIO)
    } else {
        BASE_RATIO
    }
}

/// Tokens of the largest chunk, one at least.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a window"
)]
pub(super) fn largest(tokens: &[u64], window: u64) -> u64 {
    ((window as f64 * ratio(tokens, window)) as u64).max(1)
}

/// Returns true if a message is too long to be summarised at all.
#[expect(clippy::cast_precision_loss, reason = "an estimate with a margin")]
pub(super) fn is_oversized(tokens: u64, window: u64) -> bool {
    tokens as f64 * SAFETY_MARGIN > window as f64 * 0.5
}

/// Divides the messages into this number of parts of about the same size.
pub(super) fn by_share(tokens: &[u64], parts: usize) -> Vec<Range<usize>> {
    let (parts, total) = (parts.max(1) as u64, tokens.iter().sum::<u64>());
    let mut out: Vec<Range<usize>> = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (at, more) in tokens.iter().enumerate() {
        let parts_left = (out.len() as u64) + 1 < parts;
        if at > start && parts_left && (sum + more) * parts > total {
            out.push(start..at);
            (start, sum) = (at, 0);
        }
        sum += more;
    }
    if start < tokens.len() {
        out.push(start..tokens.len());
    }
    out
}

/// Divides the messages into parts of at most this many tokens; a message that is larger ends its
/// own part.
pub(super) fn by_max(tokens: &[u64], most: u64) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (at, more) in tokens.iter().copied().enumerate() {
        if at > start && sum + more > most {
            out.push(start..at);
            (start, sum) = (at, 0);
        }
        sum += more;
        if more > most {
            out.push(start..at + 1);
            (start, sum) = (at + 1, 0);
        }
    }
    if start < tokens.len() {
        out.push(start..tokens.len());
    }
    out
}

/// Returns how many of the oldest messages must be dropped so that the rest takes at most `most`
/// tokens; half of what is left is dropped again and again. `may_begin` says where a rest may
/// begin. Messages that cannot be separated stay together.
pub(super) fn dropped(tokens: &[u64], most: u64, may_begin: impl Fn(usize) -> bool) -> usize {
    let mut from = 0;
    loop {
        let rest = tokens.get(from..).unwrap_or_default();
        if rest.iter().sum::<u64>() <= most {
            return from;
        }
        let parts = by_share(rest, PARTS);
        let Some(second) = parts.get(1).map(|part| from + part.start) else { return from };
        match (second..tokens.len()).find(|at| may_begin(*at)) {
            Some(begin) => from = begin,
            None => return from,
        }
    }
}

/// The stages of a summary; one where it is made at once.
pub(super) fn stages(tokens: &[u64], window: u64) -> Vec<Range<usize>> {
    let total = tokens.iter().sum::<u64>();
    if tokens.len() < MIN_FOR_STAGES || total <= largest(tokens, window) {
        return std::iter::once(0..tokens.len()).collect();
    }
    by_share(tokens, PARTS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: u64 = 200_000;

    fn shown(parts: &[Range<usize>]) -> Vec<Vec<usize>> {
        parts.iter().map(|part| part.clone().collect()).collect()
    }

    /// The vectors of spec `agent-runtime.md` §10.6.
    #[test]
    fn long_messages_make_small_chunks() {
        let rows = [
            (vec![], 0.4),
            (vec![1_000, 1_000], 0.4),
            (vec![16_666, 16_666], 0.4),
            (vec![17_000, 17_000], 0.196),
            (vec![20_000], 0.16),
            (vec![25_000], 0.15),
            (vec![50_000; 3], 0.15),
        ];
        for (tokens, expect) in rows {
            let found = ratio(&tokens, WINDOW);
            assert!((found - expect).abs() < 1e-9, "{tokens:?}: {found}");
        }
        for (tokens, expect) in [(83_333, false), (83_334, true), (120_000, true)] {
            assert_eq!(is_oversized(tokens, WINDOW), expect, "{tokens}");
        }
    }

    #[test]
    fn parts_have_about_the_same_size() {
        type Parts = &'static [&'static [usize]];
        let rows: [(&[u64], usize, Parts); 6] = [
            (&[100, 100, 100, 100], 2, &[&[0, 1], &[2, 3]]),
            (&[400, 100, 100], 2, &[&[0], &[1, 2]]),
            (&[100, 100, 400], 2, &[&[0, 1], &[2]]),
            (&[100; 5], 3, &[&[0], &[1], &[2, 3, 4]]),
            (&[100], 2, &[&[0]]),
            (&[], 2, &[]),
        ];
        for (tokens, parts, expect) in rows {
            assert_eq!(shown(&by_share(tokens, parts)), expect, "{tokens:?}");
        }
        let rows: [(&[u64], Parts); 4] = [
            (&[100, 100, 100], &[&[0, 1], &[2]]),
            (&[300, 100, 100], &[&[0], &[1, 2]]),
            (&[100, 300, 100], &[&[0], &[1], &[2]]),
            (&[], &[]),
        ];
        for (tokens, expect) in rows {
            assert_eq!(shown(&by_max(tokens, 200)), expect, "{tokens:?}");
        }
    }

    #[test]
    fn the_oldest_go_by_halves() {
        let anywhere = |_| true;
        assert_eq!(dropped(&[1_000; 8], 2_000, anywhere), 6);
        assert_eq!(dropped(&[4_000, 1_000, 1_000], 2_000, anywhere), 1);
        assert_eq!(dropped(&[9_000], 2_000, anywhere), 0, "cannot be parted");
        assert_eq!(dropped(&[1_000; 8], 2_000, |at| at != 4 && at != 6), 7, "not before a result");
        assert_eq!(dropped(&[1_000; 8], 2_000, |at| at == 0), 0, "nowhere to begin");
    }

    #[test]
    fn few_or_short_messages_are_summarised_at_once() {
        assert_eq!(shown(&stages(&[90_000; 3], WINDOW)), [[0, 1, 2]]);
        assert_eq!(shown(&stages(&[20_000; 4], WINDOW)).len(), 2, "80,000 of 32,000");
        assert_eq!(stages(&[10_000; 8], WINDOW).len(), 1, "80,000 of 80,000");
        assert_eq!(stages(&[10_000; 9], WINDOW).len(), 2);
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_in_order(
            tokens in prop::collection::vec(0_u64..5_000, 0..60), parts in 1_usize..5, most in 1_u64..4_000
        ) {
            for found in [by_share(&tokens, parts), by_max(&tokens, most), stages(&tokens, 20_000)] {
                let joined: Vec<usize> = found.iter().cloned().flatten().collect();
                prop_assert_eq!(joined, (0..tokens.len()).collect::<Vec<_>>());
            }
            prop_assert!(by_share(&tokens, parts).len() <= parts);
            let sum = |part: &Range<usize>| tokens[part.clone()].iter().sum::<u64>();
            prop_assert!(by_max(&tokens, most).iter().all(|part| sum(part) <= most || tokens[part.end - 1] > most));
            let rest = dropped(&tokens, most, |_| true);
            prop_assert!(tokens[rest..].iter().sum::<u64>() <= most || by_share(&tokens[rest..], 2).len() < 2);
        }
    }
}
