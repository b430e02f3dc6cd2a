//! Queries on the store, so that nobody has to look at all rows.

use openclaw_protocol::AgentId;

use super::Row;
use super::head::HeadText;
use super::stored::RowText;
use crate::entry::names::RowNames;
use crate::key::{KeyRules, SessionKey};

/// Query of [`super::SessionStore::select`], which returns the rows that meet every condition. The
/// default is all rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Rows at most; the newest.
    pub limit: Option<usize>,
    /// Rows that are left out for what their key is.
    pub hidden: Hidden,
    /// Only rows whose key names this agent.
    pub agent: Option<AgentId>,
    /// Only rows used then or later, Unix milliseconds.
    pub since: Option<i64>,
    /// Only children of the session with this key, in whatever spelling.
    pub spawned_by: Option<String>,
    /// Only rows with this label.
    pub label: Option<String>,
    /// Only rows with this transcript id.
    pub session_id: Option<String>,
    /// Only rows with this explicit transcript file.
    pub session_file: Option<String>,
    /// Only rows that contain this text in display name, label, subject, session id or key, whatever the case.
    pub search: Option<String>,
}

/// Kinds of rows that a [`Query`] leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The bucket shared by everybody.
    pub global: bool,
    /// The bucket of unresolved senders.
    pub unknown: bool,
    /// Alias rows of cron runs.
    pub cron_runs: bool,
}

/// Result of [`super::SessionStore::select`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// Rows, newest first; among equals by key.
    pub rows: Vec<Row>,
    /// Number of rows that are not hidden, whatever the other conditions say.
    pub total: u64,
}

impl Query {
    /// The newest rows.
    pub fn newest(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// True if rows have to be looked at one by one to find those that match.
    pub(crate) fn looks_at_rows(&self) -> bool {
        self.limit.is_none()
            || self.agent.is_some()
            || self.spawned_by.is_some()
            || self.session_id.is_some()
            || self.session_file.is_some()
            || self.search.is_some()
    }
}

impl Hidden {
    pub(crate) fn hides(self, key: &SessionKey) -> bool {
        (self.global && key.is_global())
            || (self.unknown && key.is_unknown())
            || (self.cron_runs && key.is_cron_run())
    }
}

/// A [`Query`] made ready to be asked of many rows.
pub(crate) struct Matcher<'a> {
    query: &'a Query,
    rules: &'a KeyRules,
    /// Only rows of this agent, when several share a store.
    owner: Option<&'a AgentId>,
    parent: Option<SessionKey>,
    needle: Option<String>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(query: &'a Query, rules: &'a KeyRules, owner: Option<&'a AgentId>) -> Self {
        Self {
            query,
            rules,
            owner,
            parent: query.spawned_by.as_deref().and_then(|parent| rules.canonical(parent).ok()),
            needle: query.search.as_deref().map(str::to_lowercase),
        }
    }

    pub(crate) fn query(&self) -> &Query {
        self.query
    }

    /// Agent whose rows alone count; `None` if the query takes all owners.
    pub(crate) fn owner(&self) -> Option<&AgentId> {
        self.owner
    }

    /// True if a row counts at all.
    pub(crate) fn counts(&self, key: &SessionKey) -> bool {
        !self.query.hidden.hides(key) && self.owner.is_none_or(|owner| self.rules.agent_of(key) == *owner)
    }

    /// True if a row meets every condition.
    pub(crate) fn admits(&self, key: &SessionKey, row: &RowText) -> bool {
        let query = self.query;
        let is = |wanted: &Option<String>, part: HeadText| {
            wanted.as_deref().is_none_or(|wanted| row.text(part).as_deref() == Some(wanted))
        };
        self.counts(key)
            && query.agent.as_ref().is_none_or(|agent| key.agent_text() == Some(agent.as_str()))
            && query.since.is_none_or(|since| row.updated_at_ms() >= since)
            && (query.spawned_by.is_none() || self.is_child(row))
            && is(&query.label, HeadText::Label)
            && is(&query.session_id, HeadText::SessionId)
            && is(&query.session_file, HeadText::SessionFile)
            && self.needle.as_deref().is_none_or(|needle| self.says(key, row, needle))
    }

    /// True if a session was spawned by the one asked for, whatever spelling its key was stored in.
    fn is_child(&self, row: &RowText) -> bool {
        let Some(own) = row.text(HeadText::SpawnedBy) else { return false };
        self.query.spawned_by.as_deref() == Some(&*own)
            || self.parent.is_some() && self.rules.canonical(&own).ok() == self.parent
    }

    fn says(&self, key: &SessionKey, row: &RowText, needle: &str) -> bool {
        let in_part = |part| row.text(part).is_some_and(|text| contains(&text, needle));
        contains(key.as_str(), needle)
            || contains(key.spelled(), needle)
            || [HeadText::DisplayName, HeadText::Label, HeadText::Subject, HeadText::SessionId]
                .into_iter()
                .any(in_part)
            || row.text(HeadText::DisplayName).is_none()
                && names(row).display_name(key).is_some_and(|name| contains(&name, needle))
    }
}

fn names(row: &RowText) -> RowNames<'_> {
    RowNames {
        chat_type: row.head().chat_type,
        display_name: row.text(HeadText::DisplayName),
        label: row.text(HeadText::Label),
        channel: row.text(HeadText::Channel),
        group_id: row.text(HeadText::GroupId),
        subject: row.text(HeadText::Subject),
        group_channel: row.text(HeadText::GroupChannel),
        space: row.text(HeadText::Space),
        origin_label: row.text(HeadText::OriginLabel),
    }
}

/// True if a text contains `needle`, which is lower case, whatever the text's own case.
fn contains(text: &str, needle: &str) -> bool {
    let (Some(first), true) = (needle.bytes().next(), text.is_ascii()) else {
        return text.to_lowercase().contains(needle);
    };
    let (bytes, needle) = (text.as_bytes(), needle.as_bytes());
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), bytes)
        .any(|at| bytes.get(at..at + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_whatever_their_case() {
        let rows = [
            ("Launch", "launch", true),
            ("the LAUNCHER", "unche", true),
            ("launc", "launch", false),
            ("aaab", "aab", true),
            ("", "a", false),
            ("", "", true),
            ("ÉCOLE", "école", true),
            ("Straße", "straße", true),
            ("x-1", "-1", true),
        ];
        for (text, needle, expect) in rows {
            assert_eq!(contains(text, needle), expect, "{text} {needle}");
        }
    }
}
