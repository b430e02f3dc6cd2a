//! Finds the place where a history is cut (spec `agent-runtime.md` §10.2). Pure, and linear in its
//! length.

use std::collections::HashMap;

/// Entry of a branch, as far as cutting needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutPiece {
    pub(super) kind: PieceKind,
    /// Size in tokens; 0 for entries that no model sees.
    pub(super) tokens: u64,
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// A turn begins: a person, a command of theirs, what an extension or the summary of another branch says.
    Start,
    /// A model's answer.
    Answer,
    /// Result of a tool call.
    Result,
    /// Settings and the like: no model sees it.
    Aside,
}

/// A history in three parts: what is summarised, the begun turn that is summarised for itself, and what stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HistoryCut {
    /// The first entry that stays.
    pub(super) kept: usize,
    /// Index at which the turn begins that the cut divides; equal to the cut if no turn is divided.
    pub(super) turn: usize,
}

/// Cuts so that at least `keep` tokens stay, if there is a place to cut at behind them; where the end alone is larger, so much
/// as can't be parted from it stays. `whole` says which places part no call from its result.
pub(super) fn cut(pieces: &[CutPiece], whole: &[bool], keep: u64) -> HistoryCut {
    let may_cut = |at: usize| {
        let kind = pieces.get(at).map(|piece| piece.kind);
        matches!(kind, Some(PieceKind::Start | PieceKind::Answer)) && whole.get(at).copied().unwrap_or(true)
    };
    let mut sum = 0;
    let full = pieces.iter().enumerate().rev().find_map(|(at, piece)| {
        sum += piece.tokens;
        (sum >= keep && piece.kind != PieceKind::Aside).then_some(at)
    });
    let message = match full {
        None => (0..pieces.len()).find(|at| may_cut(*at)),
        Some(at) => {
            (at..pieces.len()).find(|at| may_cut(*at)).or_else(|| (0..at).rev().find(|at| may_cut(*at)))
        }
    };
    let Some(message) = message else { return HistoryCut { kept: 0, turn: 0 } };
    let is_aside = |at: &usize| pieces.get(*at).is_some_and(|piece| piece.kind == PieceKind::Aside);
    // Settings right before the turn belong to it.
    let with_settings = |at: usize| (0..at).rev().take_while(|at| is_aside(at)).last().unwrap_or(at);
    let is_start = |at: &usize| pieces.get(*at).is_some_and(|piece| piece.kind == PieceKind::Start);
    let turn = (0..=message).rev().find(is_start).unwrap_or(message);
    if turn == message {
        let kept = with_settings(message);
        return HistoryCut { kept, turn: kept };
    }
    HistoryCut { kept: with_settings(message), turn: with_settings(turn) }
}

/// Returns for each place if a history may be cut before it without separating a result from its
/// call. `calls` and `result` name the calls made and answered at a place.
pub(super) fn whole_places<'a>(places: impl Iterator<Item = (Vec<&'a str>, Option<&'a str>)>) -> Vec<bool> {
    let mut made: HashMap<&str, usize> = HashMap::new();
    // Changes of how many calls are open before a place.
    let mut opens: Vec<i64> = Vec::new();
    for (at, (calls, result)) in places.enumerate() {
        opens.resize(at + 2, 0);
        made.extend(calls.into_iter().map(|call| (call, at)));
        if let Some(made_at) = result.and_then(|call| made.get(call)) {
            change(&mut opens, made_at + 1, 1);
            change(&mut opens, at + 1, -1);
        }
    }
    let mut open = 0;
    let is_whole = |changed: &i64| {
        open += changed;
        open == 0
    };
    opens.iter().map(is_whole).collect()
}

fn change(opens: &mut [i64], at: usize, by: i64) {
    if let Some(open) = opens.get_mut(at) {
        *open += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u100`: a person, `a`: an answer, `t`: an answer with a call, `r`: a result, `m`: settings.
    fn pieces(branch: &str) -> Vec<CutPiece> {
        let piece = |word: &str| {
            let (kind, tokens) = word.split_at(1);
            let kind = match kind {
                "u" => PieceKind::Start,
                "a" | "t" => PieceKind::Answer,
                "r" => PieceKind::Result,
                _ => PieceKind::Aside,
            };
            CutPiece { kind, tokens: tokens.parse().unwrap_or(0) }
        };
        branch.split_whitespace().map(piece).collect()
    }

    /// The vectors of spec `agent-runtime.md` §10.2, with its corrections: kept from, entries of the history, of the turn's beginning.
    #[test]
    fn the_vectors_of_the_spec() {
        let rows = [
            ("u100 a100 u100 a100 u100 a100", 150, (4, 4, 0)),
            ("u100 a100 u100 a100 u100 a100", 200, (4, 4, 0)),
            ("u100 a100 u100 a100 u100 a100", 250, (3, 2, 1)),
            ("u50 t50 r300 t50 r300 a50", 200, (5, 0, 5)),
            ("u10 a10", 200, (0, 0, 0)),
            // Settings before a turn belong to it, and do not make it a turn that is cut in two.
            ("u100 a100 m u100 a100", 200, (2, 2, 0)),
            ("u100 a100 m m u100 a100", 150, (2, 2, 0)),
            ("m u100 a100 m u100 a100", 150, (3, 3, 0)),
            // After a compaction that kept the first turn: that is summarised as well.
            ("u100 a100 u100 a100 u100 a100", 150, (4, 4, 0)),
            // A huge end leaves no place behind it: what can't be parted from it stays.
            ("u50 t50 r500", 200, (1, 0, 1)),
            ("u50 a50 u50 t50 r500", 200, (3, 2, 1)),
            ("u500", 200, (0, 0, 0)),
            ("u50 a50 u500", 200, (2, 2, 0)),
            ("", 200, (0, 0, 0)),
            ("m", 200, (0, 0, 0)),
            ("r500", 200, (0, 0, 0)),
            // No person has begun the turn.
            ("a100 a100", 50, (1, 1, 0)),
        ];
        for (branch, keep, expect) in rows {
            let HistoryCut { kept, turn } = cut(&pieces(branch), &[], keep);
            assert_eq!((kept, turn, kept - turn), expect, "{branch} {keep}");
        }
    }

    #[test]
    fn no_call_is_parted_from_its_result() {
        // u t(1,2) r1 u(steered by another program) r2 a
        let places: [(&[&str], Option<&str>); 6] =
            [(&[], None), (&["1", "2"], None), (&[], Some("1")), (&[], None), (&[], Some("2")), (&[], None)];
        let whole = whole_places(places.iter().map(|(calls, result)| (calls.to_vec(), *result)));
        assert_eq!(whole[..6], [true, true, false, false, false, true]);
        let branch = pieces("u10 t10 r10 u300 r10 a10");
        assert_eq!(cut(&branch, &whole, 100), HistoryCut { kept: 5, turn: 3 });
        assert_eq!(cut(&branch[..5], &whole, 100), HistoryCut { kept: 1, turn: 0 }, "no place behind");
        // Servers that number their calls afresh: a result belongs to the last of that number.
        let again: [(&[&str], Option<&str>); 4] =
            [(&["1"], None), (&[], Some("1")), (&["1"], None), (&[], Some("1"))];
        let whole = whole_places(again.iter().map(|(calls, result)| (calls.to_vec(), *result)));
        assert_eq!(whole[..4], [true, false, true, false]);
    }
}
