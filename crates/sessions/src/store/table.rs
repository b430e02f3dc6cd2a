//! The rows of one file in memory: by the file's spelling, and by canonical key.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_protocol::AgentId;

use super::Row;
use super::document::{Rows, Stored};
use crate::entry::SessionEntry;
use crate::key::{KeyRules, SessionKey, legacy};

/// Rows of one store file.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Rows,
    /// The row that stands for a key.
    index: HashMap<SessionKey, Arc<str>>,
    /// Other rows of the same key, written by old versions: kept, but not seen.
    shadows: HashMap<SessionKey, Vec<Arc<str>>>,
    labels: HashMap<Box<str>, usize>,
    agent: AgentId,
    rules: KeyRules,
}

/// How to take back one change.
#[derive(Debug)]
pub(crate) struct Undo {
    stored: Arc<str>,
    old: Option<Stored>,
    at: usize,
}

impl Table {
    pub(crate) fn new(rows: Rows, agent: AgentId, rules: KeyRules) -> Self {
        let mut table = Self {
            rows,
            index: HashMap::new(),
            shadows: HashMap::new(),
            labels: HashMap::new(),
            agent,
            rules,
        };
        table.reindex();
        table
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Replaces all rows.
    pub(crate) fn reload(&mut self, rows: Rows) {
        self.rows = rows;
        self.reindex();
    }

    /// The row of a key, with the file's spelling.
    pub(crate) fn find(&self, key: &SessionKey) -> Option<(&Arc<str>, &Arc<SessionEntry>)> {
        let stored = self.index.get(key)?;
        Some((stored, self.row(stored)?))
    }

    /// A row by the file's spelling.
    pub(crate) fn row(&self, stored: &str) -> Option<&Arc<SessionEntry>> {
        match self.rows.get(stored)? {
            Stored::Row(entry) => Some(entry),
            Stored::Opaque(_) => None,
        }
    }

    /// Every spelling of a key in the file, the one in use first.
    pub(crate) fn spellings(&self, key: &SessionKey) -> Vec<Arc<str>> {
        let shadows = self.shadows.get(key).into_iter().flatten();
        self.index.get(key).into_iter().chain(shadows).cloned().collect()
    }

    /// How the file spells a key from now on: as it does where only the `dm` segment differs, else canonically.
    pub(crate) fn spelling_for_write(&self, key: &SessionKey) -> Arc<str> {
        match self.index.get(key) {
            Some(stored) if **stored == *key.as_str() => Arc::clone(stored),
            Some(stored) if key.direct_spelling().as_deref() == Some(&**stored) => Arc::clone(stored),
            Some(_) | None => Arc::from(key.as_str()),
        }
    }

    pub(crate) fn label_in_use(&self, label: &str) -> bool {
        self.labels.get(label).is_some_and(|count| *count > 0)
    }

    /// All rows, shared.
    pub(crate) fn snapshot(&self) -> Vec<Row> {
        let row = |(key, stored): (&SessionKey, &Arc<str>)| {
            self.row(stored).map(|entry| Row { key: key.clone(), entry: Arc::clone(entry) })
        };
        self.index.iter().filter_map(row).collect()
    }

    /// Sets a row.
    pub(crate) fn put(&mut self, stored: &Arc<str>, entry: Arc<SessionEntry>) -> Undo {
        let old = self.rows.get(stored).cloned();
        let at = self.rows.get_index_of(stored).unwrap_or(self.rows.len());
        self.forget(stored, old.as_ref());
        self.note(stored, &entry);
        self.rows.insert(Arc::clone(stored), Stored::Row(entry));
        self.elect(stored);
        Undo { stored: Arc::clone(stored), old, at }
    }

    /// Removes a row.
    pub(crate) fn remove(&mut self, stored: &Arc<str>) -> Undo {
        let at = self.rows.get_index_of(stored).unwrap_or(self.rows.len());
        let old = self.rows.shift_remove(stored);
        self.forget(stored, old.as_ref());
        self.elect(stored);
        Undo { stored: Arc::clone(stored), old, at }
    }

    /// Takes a change back. Changes are taken back last first.
    pub(crate) fn undo(&mut self, undo: Undo) {
        let present = self.rows.get(&undo.stored).cloned();
        self.forget(&undo.stored, present.as_ref());
        match undo.old {
            None => {
                self.rows.shift_remove(&undo.stored);
            }
            Some(old) => {
                if let Stored::Row(entry) = &old {
                    self.note(&undo.stored, entry);
                }
                if present.is_some() {
                    self.rows.insert(Arc::clone(&undo.stored), old);
                } else {
                    self.rows.shift_insert(undo.at.min(self.rows.len()), Arc::clone(&undo.stored), old);
                }
            }
        }
        self.elect(&undo.stored);
    }

    fn key_of(&self, stored: &str) -> Option<SessionKey> {
        legacy::canonicalize(stored, &self.agent, &self.rules).ok()
    }

    fn reindex(&mut self) {
        self.index.clear();
        self.shadows.clear();
        self.labels.clear();
        let rows: Vec<(Arc<str>, Arc<SessionEntry>)> = self
            .rows
            .iter()
            .filter_map(|(key, stored)| match stored {
                Stored::Row(entry) => Some((Arc::clone(key), Arc::clone(entry))),
                Stored::Opaque(_) => None,
            })
            .collect();
        for (stored, entry) in rows {
            self.note(&stored, &entry);
        }
        let contested: Vec<SessionKey> = self.shadows.keys().cloned().collect();
        contested.iter().for_each(|key| self.elect_for(key));
    }

    /// Counts the label and makes the spelling a candidate for its key.
    fn note(&mut self, stored: &Arc<str>, entry: &SessionEntry) {
        if let Some(label) = &entry.label {
            *self.labels.entry(label.clone()).or_default() += 1;
        }
        let Some(key) = self.key_of(stored) else { return };
        match self.index.get(&key) {
            None => {
                self.index.insert(key, Arc::clone(stored));
            }
            Some(chosen) if chosen != stored => {
                let shadows = self.shadows.entry(key).or_default();
                if !shadows.contains(stored) {
                    shadows.push(Arc::clone(stored));
                }
            }
            Some(_) => {}
        }
    }

    fn forget(&mut self, stored: &Arc<str>, old: Option<&Stored>) {
        let Some(Stored::Row(entry)) = old else { return };
        if let Some(label) = &entry.label
            && let Some(count) = self.labels.get_mut(label)
        {
            *count -= 1;
            if *count == 0 {
                self.labels.remove(label);
            }
        }
        let Some(key) = self.key_of(stored) else { return };
        if self.index.get(&key) == Some(stored) {
            self.index.remove(&key);
        }
        if let Some(shadows) = self.shadows.get_mut(&key) {
            shadows.retain(|shadow| shadow != stored);
        }
    }

    /// Chooses the row that stands for the key of a spelling: the newest, among equals the canonical one (spec §1.6).
    fn elect(&mut self, stored: &str) {
        if let Some(key) = self.key_of(stored) {
            self.elect_for(&key);
        }
    }

    fn elect_for(&mut self, key: &SessionKey) {
        if self.shadows.get(key).is_none_or(Vec::is_empty) {
            self.shadows.remove(key);
            return;
        }
        let mut candidates = self.spellings(key);
        let rank = |stored: &Arc<str>| {
            let updated = self.row(stored).map_or(i64::MIN, |entry| entry.updated_at_ms());
            (updated, **stored == *key.as_str())
        };
        candidates.sort_by_key(|stored| std::cmp::Reverse(rank(stored)));
        let mut candidates = candidates.into_iter();
        if let Some(chosen) = candidates.next() {
            self.index.insert(key.clone(), chosen);
        }
        let rest: Vec<Arc<str>> = candidates.collect();
        if rest.is_empty() {
            self.shadows.remove(key);
        } else {
            self.shadows.insert(key.clone(), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use super::*;

    fn table(json: &str) -> Table {
        Table::new(document::read(json.as_bytes()).rows, AgentId::default(), KeyRules::default())
    }

    fn key(text: &str) -> SessionKey {
        KeyRules::default().canonical(text).unwrap()
    }

    fn found(table: &Table, text: &str) -> Option<String> {
        table.find(&key(text)).map(|(stored, _)| stored.to_string())
    }

    #[test]
    fn rows_are_found_under_every_spelling() {
        let table = table(
            r#"{"agent:main:telegram:direct:7":{"updatedAt":1},"agent:main:Foo":{"updatedAt":1},"cron:j":{},"odd":5,"group:":{}}"#,
        );
        assert_eq!(
            found(&table, "agent:main:telegram:dm:7").as_deref(),
            Some("agent:main:telegram:direct:7")
        );
        assert_eq!(found(&table, "foo").as_deref(), Some("agent:main:Foo"));
        assert_eq!(found(&table, "cron:j").as_deref(), Some("cron:j"));
        assert_eq!(found(&table, "odd"), None);
        assert_eq!(table.snapshot().len(), 3);
        assert_eq!(
            &*table.spelling_for_write(&key("agent:main:telegram:dm:7")),
            "agent:main:telegram:direct:7"
        );
        assert_eq!(&*table.spelling_for_write(&key("foo")), "agent:main:foo");
    }

    #[test]
    fn the_newest_of_several_rows_stands_for_a_key() {
        let newer = table(r#"{"agent:main:main":{"updatedAt":1},"main":{"updatedAt":2}}"#);
        assert_eq!(found(&newer, "main").as_deref(), Some("main"));
        assert_eq!(newer.snapshot().len(), 1);
        let equal = table(r#"{"main":{"updatedAt":2},"agent:main:main":{"updatedAt":2}}"#);
        assert_eq!(found(&equal, "main").as_deref(), Some("agent:main:main"));
    }

    #[test]
    fn undo_restores_rows_places_and_labels() {
        let json =
            r#"{"agent:main:a":{"label":"x"},"main":{"updatedAt":9},"agent:main:main":{"updatedAt":1}}"#;
        let mut table = table(json);
        let before: Vec<_> = table.rows().clone().into_iter().collect();
        let a: Arc<str> = Arc::from("agent:main:a");
        let main: Arc<str> = Arc::from("main");
        let fresh: Arc<str> = Arc::from("agent:main:new");
        let labelled = Arc::new(SessionEntry { label: Some("y".into()), ..SessionEntry::default() });
        let undos = vec![
            table.remove(&a),
            table.put(&fresh, Arc::clone(&labelled)),
            table.put(&a, labelled),
            table.remove(&main),
        ];
        assert_eq!(found(&table, "main").as_deref(), Some("agent:main:main"));
        assert!(table.label_in_use("y") && !table.label_in_use("x"));
        for undo in undos.into_iter().rev() {
            table.undo(undo);
        }
        let after: Vec<_> = table.rows().clone().into_iter().collect();
        assert_eq!(after, before);
        assert!(table.label_in_use("x") && !table.label_in_use("y"));
        assert_eq!(found(&table, "main").as_deref(), Some("main"));
    }
}
