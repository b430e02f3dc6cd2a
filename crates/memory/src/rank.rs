//! From two lists of candidates to the hits that are shown. Pure.
//!
//! The corrected scoring keeps the order of keyword hits and never drops an exact match because its score is small.
//! Compat scoring is the formula of OpenClaw 2026.2.9, with the order and the scores that it gives.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use crate::settings::{Fusion, HybridSettings};

/// Candidates that each of the two searches gives, whatever the number of results: so the first hit does not depend on
/// how many are asked for.
pub(crate) const POOL: usize = 200;

/// Share of a query's weight that a chunk must hold to be shown beside others although its score is too small.
const BACKED_SHARE: f32 = 0.5;

/// Damping of reciprocal rank fusion.
const FUSION_DAMPING: f64 = 60.0;

/// A chunk that the vectors found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VectorCandidate {
    /// Row of the chunk.
    pub(crate) row: i64,
    /// Cosine to the query.
    pub(crate) cosine: f32,
}

/// A chunk that the keywords found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextCandidate {
    /// Row of the chunk.
    pub(crate) row: i64,
    /// Sum of the BM25 weights of the terms it holds; larger is better.
    pub(crate) weight: f64,
    /// Part of the weight of all terms of the query that it holds, between 0 and 1.
    pub(crate) share: f32,
}

/// A candidate with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    /// Row of the chunk.
    pub(crate) row: i64,
    /// Score that is shown.
    pub(crate) score: f64,
    /// Cosine to the query, or `None` if the vectors did not find it.
    pub(crate) cosine: Option<f32>,
    /// Score of the keywords, between 0 and 1, or `None` if they did not find it.
    pub(crate) text: Option<f64>,
    /// True if the keywords alone are reason enough to show it.
    pub(crate) is_backed: bool,
}

/// Score of a keyword hit in OpenClaw 2026.2.9, from SQLite's `bm25()`. That is never positive, so the score is 1.
pub(crate) fn compat_text_score(rank: f64) -> f64 {
    if rank.is_finite() { 1.0 / (1.0 + rank.max(0.0)) } else { 1.0 / 1_000.0 }
}

/// Score of a keyword hit between 0 and 1, from its weight.
pub(crate) fn text_score(weight: f64) -> f64 {
    if weight.is_finite() { weight.max(0.0) / (1.0 + weight.max(0.0)) } else { 1.0 / 1_000.0 }
}

/// Number of candidates that OpenClaw 2026.2.9 takes from each search.
pub(crate) fn compat_pool(max_results: usize, multiplier: usize) -> usize {
    max_results.saturating_mul(multiplier).clamp(1, POOL)
}

/// Joins both lists by the formula of OpenClaw 2026.2.9: candidates of the vectors first, then those of the keywords,
/// in descending order of the weighted sum.
pub(crate) fn compat_merge(
    vectors: &[VectorCandidate],
    keywords: &[(i64, f64)],
    hybrid: &HybridSettings,
) -> Vec<Scored> {
    let (vector_weight, text_weight) = hybrid.weights();
    let mut merged: Vec<Scored> = vectors
        .iter()
        .map(|found| Scored {
            row: found.row,
            score: 0.0,
            cosine: Some(found.cosine),
            text: None,
            is_backed: false,
        })
        .collect();
    let mut places: HashMap<i64, usize> =
        merged.iter().enumerate().map(|(place, scored)| (scored.row, place)).collect();
    for (row, score) in keywords {
        match places.get(row).and_then(|place| merged.get_mut(*place)) {
            Some(scored) => scored.text = Some(*score),
            None => {
                places.insert(*row, merged.len());
                merged.push(Scored {
                    row: *row,
                    score: 0.0,
                    cosine: None,
                    text: Some(*score),
                    is_backed: false,
                });
            }
        }
    }
    for scored in &mut merged {
        scored.score = vector_weight * f64::from(scored.cosine.unwrap_or_default())
            + text_weight * scored.text.unwrap_or_default();
    }
    merged.sort_by(descending);
    merged
}

/// Answer of the search by vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum VectorLeg<'a> {
    /// Candidates of a search by vectors.
    Searched(&'a [VectorCandidate]),
    /// No search by vectors: no embedder, or it failed. Scores of keywords count alone.
    Absent,
}

/// Joins both lists into candidates, the best first.
///
/// Their order weighs how far a chunk stands out in each list, see [`standing_out`], because cosines of some models
/// hardly differ. Scores are weighted sums of the numbers themselves.
pub(crate) fn merge(
    vectors: VectorLeg<'_>,
    keywords: &[TextCandidate],
    hybrid: &HybridSettings,
) -> Vec<Scored> {
    let mut merged: Vec<Scored> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    if let VectorLeg::Searched(found) = vectors {
        for found in found {
            places.insert(found.row, merged.len());
            merged.push(Scored {
                row: found.row,
                score: 0.0,
                cosine: Some(found.cosine),
                text: None,
                is_backed: false,
            });
        }
    }
    let is_alone = matches!(vectors, VectorLeg::Absent);
    for found in keywords {
        let text = Some(text_score(found.weight));
        let is_backed = is_alone || found.share >= BACKED_SHARE;
        match places.get(&found.row).and_then(|place| merged.get_mut(*place)) {
            Some(scored) => (scored.text, scored.is_backed) = (text, is_backed),
            None => merged.push(Scored { row: found.row, score: 0.0, cosine: None, text, is_backed }),
        }
    }
    match (vectors, hybrid.fusion) {
        (VectorLeg::Absent, _) => {
            merged.iter_mut().for_each(|scored| scored.score = scored.text.unwrap_or_default())
        }
        (VectorLeg::Searched(found), Fusion::Weighted) => {
            let (vector_weight, text_weight) = hybrid.weights();
            for scored in &mut merged {
                scored.score = vector_weight * f64::from(scored.cosine.unwrap_or_default())
                    + text_weight * scored.text.unwrap_or_default();
            }
            let order = standing_out(found, keywords, hybrid);
            let place = |scored: &Scored| order.get(&scored.row).copied().unwrap_or_default();
            merged.sort_by(|left, right| place(right).total_cmp(&place(left)));
            return merged;
        }
        (VectorLeg::Searched(found), Fusion::ReciprocalRank) => {
            fuse_ranks(&mut merged, found, keywords, hybrid)
        }
    }
    merged.sort_by(descending);
    merged
}

/// Returns by row how far each candidate stands out, between 0 and 1: its cosine between the smallest and the largest
/// of the list, and the weight of its words beside the largest one.
fn standing_out(
    vectors: &[VectorCandidate],
    keywords: &[TextCandidate],
    hybrid: &HybridSettings,
) -> HashMap<i64, f64> {
    let (vector_weight, text_weight) = hybrid.weights();
    let cosines = vectors.iter().map(|found| f64::from(found.cosine));
    let largest = cosines.clone().fold(f64::MIN, f64::max);
    let smallest = cosines.fold(f64::MAX, f64::min);
    let heaviest = keywords.iter().map(|found| found.weight).fold(f64::MIN_POSITIVE, f64::max);
    let mut sums: HashMap<i64, f64> = HashMap::with_capacity(vectors.len() + keywords.len());
    for found in vectors {
        let part = if largest > smallest {
            (f64::from(found.cosine) - smallest) / (largest - smallest)
        } else {
            1.0
        };
        *sums.entry(found.row).or_default() += vector_weight * part;
    }
    for found in keywords {
        *sums.entry(found.row).or_default() += text_weight * found.weight / heaviest;
    }
    sums
}

/// Scores by the places in both lists, scaled so that the first place in both has the score 1.
fn fuse_ranks(
    merged: &mut [Scored],
    vectors: &[VectorCandidate],
    keywords: &[TextCandidate],
    hybrid: &HybridSettings,
) {
    let (vector_weight, text_weight) = hybrid.weights();
    let mut sums: HashMap<i64, f64> = HashMap::new();
    let points = |place: usize| (FUSION_DAMPING + 1.0) / (FUSION_DAMPING + 1.0 + place as f64);
    for (place, found) in vectors.iter().enumerate() {
        *sums.entry(found.row).or_default() += vector_weight * points(place);
    }
    for (place, found) in keywords.iter().enumerate() {
        *sums.entry(found.row).or_default() += text_weight * points(place);
    }
    merged.iter_mut().for_each(|scored| scored.score = sums.get(&scored.row).copied().unwrap_or_default());
}

fn descending(left: &Scored, right: &Scored) -> Ordering {
    right.score.total_cmp(&left.score)
}

/// Place of a chunk, for [`select`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkLines<'a> {
    pub(crate) path: &'a str,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl ChunkLines<'_> {
    fn overlaps(&self, other: &Self) -> bool {
        self.path == other.path && self.start <= other.end && other.start <= self.end
    }
}

/// Chosen hits and whether any of them reaches the smallest score.
#[derive(Debug, PartialEq)]
pub(crate) struct HitSelection {
    pub(crate) hits: Vec<Scored>,
    pub(crate) is_confident: bool,
}

/// Chooses at most `max_results` of `ranked`: those that reach `min_score`, then, in places that stay free, those that
/// the keywords back. Of chunks that overlap in one file only the best is shown. Exact words are never lost: if none of
/// several hits is backed, the last place goes to the best one that is.
pub(crate) fn select<'a>(
    ranked: &[Scored],
    max_results: usize,
    min_score: f64,
    lines: impl Fn(i64) -> Option<ChunkLines<'a>>,
) -> HitSelection {
    let mut backed: Vec<&Scored> =
        ranked.iter().filter(|scored| scored.score < min_score && scored.is_backed).collect();
    backed.sort_by(|left, right| right.text.unwrap_or_default().total_cmp(&left.text.unwrap_or_default()));
    let strict = ranked.iter().filter(|scored| scored.score >= min_score);
    let mut shown: Vec<ChunkLines<'a>> = Vec::new();
    let mut selection = HitSelection { hits: Vec::new(), is_confident: false };
    for scored in strict.chain(backed.iter().copied()) {
        if selection.hits.len() >= max_results {
            break;
        }
        let Some(place) = lines(scored.row) else { continue };
        if shown.iter().any(|other| other.overlaps(&place)) {
            continue;
        }
        shown.push(place);
        selection.is_confident |= scored.score >= min_score;
        selection.hits.push(*scored);
    }
    let is_full = selection.hits.len() >= max_results && max_results > 1;
    if is_full
        && !selection.hits.iter().any(|hit| hit.is_backed)
        && let Some(best) = backed.first()
        && let Some(last) = selection.hits.last_mut()
    {
        *last = **best;
    }
    selection
}

/// Returns `score` after `age_days`, of which each half life halves it. What lies in the future keeps its score.
pub(crate) fn decayed(score: f64, age_days: f64, half_life_days: f64) -> f64 {
    if half_life_days <= 0.0 {
        return score;
    }
    score * (-std::f64::consts::LN_2 / half_life_days * age_days.max(0.0)).exp()
}

/// Returns what a mark `<!-- importance: 1 -->` to `10` multiplies a score by; 1 without a mark.
pub(crate) fn importance_factor(mark: Option<i64>) -> f64 {
    mark.map_or(1.0, |mark| 0.75 + 0.05 * mark.clamp(1, 10) as f64)
}

/// Returns the largest importance that a mark in `text` gives.
pub(crate) fn importance_mark(text: &str) -> Option<i64> {
    let comments = text.split("<!--").skip(1).filter_map(|rest| rest.split_once("-->"));
    comments.filter_map(|(comment, _)| comment.trim().strip_prefix("importance:")?.trim().parse().ok()).max()
}

/// Returns the day that the name of a daily note gives, such as `memory/2026-01-28-plan.md`.
pub(crate) fn dated_path(path: &str) -> Option<jiff::civil::Date> {
    let name = path.strip_prefix("memory/")?.rsplit('/').next()?.strip_suffix(".md")?;
    let (day, slug) = name.split_at_checked(10)?;
    let is_day = day
        .bytes()
        .enumerate()
        .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    (is_day && (slug.is_empty() || slug.starts_with('-'))).then(|| day.parse().ok())?
}

/// Orders candidates so that each is relevant and unlike those before it (maximal marginal relevance). Scores stay.
/// `lambda` 1 keeps the order; 0 looks at the difference alone.
pub(crate) fn diversify(ranked: &[Scored], texts: &HashMap<i64, String>, lambda: f64) -> Vec<Scored> {
    let best = ranked.iter().map(|scored| scored.score).fold(f64::MIN, f64::max);
    let worst = ranked.iter().map(|scored| scored.score).fold(f64::MAX, f64::min);
    let relevance =
        |scored: &Scored| if best > worst { (scored.score - worst) / (best - worst) } else { 1.0 };
    let tokens: Vec<HashSet<String>> = ranked
        .iter()
        .map(|scored| texts.get(&scored.row).map(|text| text_tokens(text)).unwrap_or_default())
        .collect();
    let mut left: Vec<(usize, &Scored, f64)> =
        ranked.iter().enumerate().map(|(index, scored)| (index, scored, 0.0)).collect();
    let mut chosen = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let value = |(_, scored, likeness): &(usize, &Scored, f64)| {
            lambda * relevance(scored) - (1.0 - lambda) * likeness
        };
        let next = left.iter().enumerate().reduce(|best, other| {
            let order =
                value(other.1).total_cmp(&value(best.1)).then(other.1.1.score.total_cmp(&best.1.1.score));
            if order == Ordering::Greater { other } else { best }
        });
        let Some(place) = next.map(|(place, _)| place) else { break };
        let (index, scored, _) = left.remove(place);
        for (other, _, likeness) in &mut left {
            if let (Some(one), Some(two)) = (tokens.get(index), tokens.get(*other)) {
                *likeness = likeness.max(jaccard(one, two));
            }
        }
        chosen.push(*scored);
    }
    chosen
}

/// Returns the part of the tokens of both sets that both have. Two empty sets are alike.
fn jaccard(one: &HashSet<String>, two: &HashSet<String>) -> f64 {
    if one.is_empty() && two.is_empty() {
        return 1.0;
    }
    let both = one.intersection(two).count();
    both as f64 / (one.len() + two.len() - both) as f64
}

/// Words of ASCII letters and digits, and of scripts without spaces single characters and pairs.
fn text_tokens(text: &str) -> HashSet<String> {
    let mut tokens = HashSet::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for letter in text.chars().flat_map(char::to_lowercase).chain(std::iter::once(' ')) {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter);
        } else if !word.is_empty() {
            tokens.insert(std::mem::take(&mut word));
        }
        let is_unspaced = !letter.is_ascii() && letter.is_alphabetic() && u32::from(letter) >= 0x0E00;
        if is_unspaced {
            tokens.insert(letter.to_string());
            if let Some(before) = before {
                tokens.insert([before, letter].iter().collect());
            }
        }
        before = is_unspaced.then_some(letter);
    }
    tokens
}

#[cfg(test)]
mod tests;
