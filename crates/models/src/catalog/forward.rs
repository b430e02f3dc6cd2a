//! Models that are newer than a list: told by their ids, and taken to be like their elder siblings (spec `models.md` §2.2).

use crate::provider_entry::ModelEntry;

/// A model that may be asked for before anybody lists it.
struct Newcomer {
    provider: &'static str,
    /// Model id, with dashes for dots.
    id: &'static str,
    /// True if ids that continue after a dash are included.
    editions: bool,
    /// Listed models it is like, best first.
    like: &'static [&'static str],
}

const NEWCOMERS: &[Newcomer] = &[
    Newcomer { provider: "openai-codex", id: "gpt-5-3-codex", editions: false, like: &["gpt-5.2-codex"] },
    Newcomer {
        provider: "anthropic",
        id: "claude-opus-4-6",
        editions: true,
        like: &["claude-opus-4-6", "claude-opus-4-5", "claude-opus-4.5"],
    },
];

/// A model like a listed one, for an id that nobody lists.
pub(super) fn newcomer(provider: &str, id: &str, listed: &[ModelEntry]) -> Option<ModelEntry> {
    let dashed = id.trim().to_lowercase().replace('.', "-");
    let is_it = |known: &&Newcomer| {
        let rest = dashed.strip_prefix(known.id);
        known.provider == provider
            && rest.is_some_and(|rest| rest.is_empty() || (known.editions && rest.starts_with('-')))
    };
    let known = NEWCOMERS.iter().find(is_it)?;
    let sibling = known.like.iter().find_map(|like| listed.iter().find(|model| model.id == *like))?;
    Some(ModelEntry {
        id: id.to_owned(),
        name: Some(id.to_owned()),
        reasoning: Some(true),
        ..sibling.clone()
    })
}

/// Returns true if an id is a dated or otherwise marked edition of a listed model:
/// `claude-opus-4-6-20260201`, `claude-opus-4.6-latest`.
pub(super) fn is_edition(id: &str, listed: &str) -> bool {
    let dashed = id.replace('.', "-");
    let mark = dashed.strip_prefix(&listed.replace('.', "-"));
    mark.is_some_and(|mark| {
        mark.is_empty()
            || mark.strip_prefix('-').is_some_and(|rest| {
                rest == "latest" || (rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_digit()))
            })
    })
}
