//! The newest rows of several store files, as if they were one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use openclaw_protocol::AgentId;
use parking_lot::RwLock;

use super::file::Published;
use super::query::{Matcher, Query, Selection};
use super::stored::{Pool, RowText};
use super::table::RowTable;
use super::{Row, VisitedRow, Visitor};
use crate::key::{KeyRules, SessionKey};

/// Rows up to which a look at all of them is over before it is noticed.
const FEW: usize = 500;

/// A question to some store files.
pub(super) struct SelectRequest {
    pub(super) files: Vec<Arc<RwLock<Published>>>,
    pub(super) query: Query,
    pub(super) rules: KeyRules,
    /// Only rows of this agent, when all share a file.
    pub(super) owner: Option<AgentId>,
}

impl SelectRequest {
    /// True if the query is cheap enough to run on a thread that must not block.
    pub(super) fn is_quick(&self) -> bool {
        let looks_at_all = self.query.looks_at_rows() || self.owner.is_some();
        let rows = self.files.iter().map(|file| file.read().table.len()).sum::<usize>();
        rows.min(self.query.limit.unwrap_or(usize::MAX)) <= FEW && (rows <= FEW || !looks_at_all)
    }

    /// The answer. Rows are read when no file is held up by it any more.
    pub(super) fn answer(&self) -> Selection {
        let (found, total) = self.find();
        let row = |(key, row): (SessionKey, Arc<RowText>)| Row { key, entry: Arc::new(row.entry()) };
        Selection { rows: found.into_iter().map(row).collect(), total: total as u64 }
    }

    /// Shows the rows to a visitor, newest first.
    pub(super) fn show(&self, mut visitor: Visitor) {
        let (found, _) = self.find();
        for (key, text) in found {
            visitor(VisitedRow { key, text });
        }
    }

    fn find(&self) -> (Vec<(SessionKey, Arc<RowText>)>, usize) {
        let guards: Vec<_> = self.files.iter().map(|file| file.read()).collect();
        let tables: Vec<&RowTable> = guards.iter().map(|guard| &guard.table).collect();
        let matcher = Matcher::new(&self.query, &self.rules, self.owner.as_ref());
        let several = in_several(&tables);
        let mut total = tables.iter().map(|table| table.count(&matcher)).sum::<usize>();
        let mut found = Vec::new();
        for (key, copies) in &several {
            if matcher.counts(key) {
                total -= copies.len() - 1;
            }
            if let Some(row) = combined(copies).filter(|row| matcher.admits(key, row)) {
                found.push((key.clone(), row));
            }
        }
        for table in &tables {
            found.extend(table.select(&matcher, |key| several.contains_key(key)));
        }
        if tables.len() > 1 {
            found.sort_by_cached_key(|(key, row)| (Reverse(row.updated_at_ms()), key.clone()));
            found.truncate(self.query.limit.unwrap_or(usize::MAX));
        }
        (found, total)
    }
}

/// Keys with a row in more than one file. All but one of them stand in a file that is not that of their agent.
fn in_several<'a>(tables: &[&'a RowTable]) -> HashMap<SessionKey, Vec<&'a Arc<RowText>>> {
    let mut out = HashMap::new();
    if tables.len() < 2 {
        return out;
    }
    for key in tables.iter().flat_map(|table| table.strays()) {
        let copies: Vec<_> = tables.iter().filter_map(|table| table.find(key)).map(|(_, row)| row).collect();
        if copies.len() > 1 {
            out.insert(key.clone(), copies);
        }
    }
    out
}

/// Merges several copies of a row: field by field, the newer copy wins (spec `sessions.md` §7).
fn combined(copies: &[&Arc<RowText>]) -> Option<Arc<RowText>> {
    let mut oldest_first = copies.to_vec();
    oldest_first.sort_by_key(|row| row.updated_at_ms());
    let (newest, older) = oldest_first.split_last()?;
    let mut entry = older.first()?.entry();
    for row in oldest_first.iter().skip(1) {
        let mut changes = entry.changes_to(&row.entry());
        changes.unset.clear();
        entry.apply(&changes);
    }
    Some(
        RowText::made(&entry, Some(newest), &mut Pool::default())
            .map_or_else(|_| Arc::clone(newest), Arc::new),
    )
}
