//! Gathered messages, once they are whole. Whether they address the agent is decided for all parts
//! together (spec `channels.md` §2.6, `queue.md` §8): a mention, a reply or the caption of one part
//! counts for all parts.

use super::Fate;
use super::gate::Admitted;

/// Decision about gathered messages.
pub(super) enum Whole {
    /// One message for the agent.
    Said(Vec<Admitted>),
    /// Addressed to nobody: fates with the events that have them.
    LeftOut(Vec<(Fate, Vec<i64>)>),
}

/// True if no part addresses the agent.
pub(super) fn is_left_out(parts: &[Admitted]) -> bool {
    parts.iter().all(Admitted::is_left_out)
}

/// Decides if the parts are one message for the agent.
pub(super) fn settle(mut parts: Vec<Admitted>) -> Whole {
    if is_left_out(&parts) {
        let mut fates: Vec<(Fate, Vec<i64>)> = Vec::new();
        for part in parts {
            let Some(fate) = part.left_out else { continue };
            match fates.iter_mut().find(|(known, _)| *known == fate) {
                Some((_, numbers)) => numbers.push(part.number),
                None => fates.push((fate, vec![part.number])),
            }
        }
        return Whole::LeftOut(fates);
    }
    let is_numbered = parts.iter().all(|part| part.piece().number.is_some());
    if parts.first().is_some_and(is_of_album) && is_numbered {
        // Files of an album may arrive in any order.
        parts.sort_by_key(|part| part.piece().number);
    }
    Whole::Said(parts)
}

/// The part that answers refer to: of an album the one with words, or else the first; of texts the last.
pub(super) fn primary(parts: &[Admitted]) -> Option<&Admitted> {
    let (first, last) = (parts.first()?, parts.last()?);
    if !is_of_album(first) {
        return Some(last);
    }
    let has_words = |part: &&Admitted| part.message().is_some_and(|message| !message.text.trim().is_empty());
    parts.iter().find(has_words).or(Some(first))
}

fn is_of_album(part: &Admitted) -> bool {
    part.message().is_some_and(|message| message.album.is_some())
}
