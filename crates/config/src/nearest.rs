//! Suggestions for mistyped words: the known word that is most likely meant.

/// Similarity that two words must have, from 0 to 1.
const CLOSE_ENOUGH: f64 = 0.75;
/// The same for words of at most [`SHORT`] letters, of which one wrong letter is a large part.
const CLOSE_ENOUGH_SHORT: f64 = 0.5;
const SHORT: usize = 4;

/// The known word that is most like a mistyped one, if any is like it at all.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| {
        strsim::normalized_damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase())
    };
    let least = if word.len() <= SHORT { CLOSE_ENOUGH_SHORT } else { CLOSE_ENOUGH };
    let rated = known.into_iter().map(|candidate| (likeness(candidate), candidate));
    let close = rated.filter(|(likeness, _)| *likeness >= least);
    close.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate)
}
