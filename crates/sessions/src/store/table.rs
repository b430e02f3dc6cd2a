//! The rows of one file in memory: by the file's spelling, by canonical key, by label, and newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _, HashSet};
use openclaw_protocol::AgentId;

use super::head::HeadText;
use super::query::Matcher;
use super::rows::Rows;
use super::stored::{RowText, StoredValue};
use super::{Change, Edit, Refused, StoreError};
use crate::entry::{SessionEntry, new_session_id};
use crate::key::{KeyRules, SessionKey, legacy};
use crate::time::now_ms;

/// Rows of one store file.
#[derive(Debug)]
pub(crate) struct RowTable {
    rows: Rows,
    /// The row that stands for a key.
    index: HashMap<SessionKey, Arc<str>>,
    /// Other rows of the same key, written by old versions: kept, but not seen.
    shadows: HashMap<SessionKey, Vec<Arc<str>>>,
    /// Rows that stand for a key, newest first.
    newest: BTreeMap<(Reverse<i64>, SessionKey), Arc<RowText>>,
    /// Rows with a label, those that are not seen included.
    labels: HashMap<Box<str>, Vec<Arc<str>>>,
    /// Keys that belong into the store of another agent.
    strays: HashSet<SessionKey>,
    /// Number of keys that are alias rows of cron runs.
    cron_runs: usize,
    agent: AgentId,
    rules: KeyRules,
}

/// Record for undoing one change.
#[derive(Debug)]
pub(crate) struct Undo {
    stored: Arc<str>,
    old: Option<StoredValue>,
    at: usize,
}

impl RowTable {
    pub(crate) fn new(rows: Rows, agent: AgentId, rules: KeyRules) -> Self {
        let mut table = Self {
            rows: Rows::default(),
            index: HashMap::new(),
            shadows: HashMap::new(),
            newest: BTreeMap::new(),
            labels: HashMap::new(),
            strays: HashSet::default(),
            cron_runs: 0,
            agent,
            rules,
        };
        table.reload(rows);
        table
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Number of keys that have a row.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Keys that belong into the store of another agent.
    pub(crate) fn strays(&self) -> &HashSet<SessionKey> {
        &self.strays
    }

    /// The row of a key, with the file's spelling.
    pub(crate) fn find(&self, key: &SessionKey) -> Option<(&Arc<str>, &Arc<RowText>)> {
        let stored = self.index.get(key)?;
        Some((stored, self.row(stored)?))
    }

    /// A row by the file's spelling.
    pub(crate) fn row(&self, stored: &str) -> Option<&Arc<RowText>> {
        self.rows.row(stored)
    }

    /// All spellings of a key in the file, the one in use first.
    pub(crate) fn spellings(&self, key: &SessionKey) -> Vec<Arc<str>> {
        let shadows = self.shadows.get(key).into_iter().flatten();
        self.index.get(key).into_iter().chain(shadows).cloned().collect()
    }

    /// Spelling of a key in the file from now on: kept where only the `dm` segment or the name of
    /// the main session differs, else canonical.
    pub(crate) fn spelling_for_write(&self, key: &SessionKey) -> Arc<str> {
        match self.index.get(key) {
            Some(stored) if **stored == *key.as_str() => Arc::clone(stored),
            Some(stored) if self.rules.is_former_main(stored) => Arc::clone(stored),
            Some(stored) if key.is_direct_spelling(stored) => Arc::clone(stored),
            Some(_) | None => Arc::from(key.as_str()),
        }
    }

    fn label_in_use(&self, label: &str) -> bool {
        self.labels.contains_key(label)
    }

    /// Row that a change results in, unless another row has its label.
    pub(crate) fn changed(
        &self,
        old: Option<&SessionEntry>,
        change: Change,
    ) -> Result<SessionEntry, StoreError> {
        let new = changed(old, change)?;
        match &new.label {
            Some(label)
                if old.and_then(|old| old.label.as_ref()) != Some(label) && self.label_in_use(label) =>
            {
                Err(StoreError::LabelInUse(label.to_string()))
            }
            Some(_) | None => Ok(new),
        }
    }

    /// Number of rows that a matcher counts.
    pub(crate) fn count(&self, matcher: &Matcher<'_>) -> usize {
        if matcher.owner().is_some() {
            return self.index.keys().filter(|key| matcher.counts(key)).count();
        }
        let hidden = matcher.query().hidden;
        let has = |hides: bool, key: SessionKey| usize::from(hides && self.index.contains_key(&key));
        let buckets = has(hidden.global, SessionKey::global()) + has(hidden.unknown, SessionKey::unknown());
        self.index.len() - buckets - if hidden.cron_runs { self.cron_runs } else { 0 }
    }

    /// The rows that meet every condition, newest first; `elsewhere` names keys that are looked at elsewhere.
    pub(crate) fn select(
        &self,
        matcher: &Matcher<'_>,
        elsewhere: impl Fn(&SessionKey) -> bool,
    ) -> Vec<(SessionKey, Arc<RowText>)> {
        let query = matcher.query();
        let fits = |key: &SessionKey, row: &Arc<RowText>| matcher.admits(key, row) && !elsewhere(key);
        let limit = query.limit.unwrap_or(usize::MAX);
        if let Some(label) = &query.label {
            let mut found = self.labelled(label);
            found.retain(|(key, row)| fits(key, row));
            found.sort_by_cached_key(|(key, row)| (Reverse(row.updated_at_ms()), key.clone()));
            found.truncate(limit);
            return found;
        }
        let since = query.since.unwrap_or(i64::MIN);
        let recent = self.newest.iter().take_while(|((Reverse(updated), _), _)| *updated >= since);
        recent
            .filter(|((_, key), row)| fits(key, row))
            .take(limit)
            .map(|((_, key), row)| (key.clone(), Arc::clone(row)))
            .collect()
    }

    fn labelled(&self, label: &str) -> Vec<(SessionKey, Arc<RowText>)> {
        let seen = |stored: &Arc<str>| {
            let key = self.key_of(stored)?;
            let (chosen, row) = self.find(&key)?;
            (chosen == stored).then(|| (key.clone(), Arc::clone(row)))
        };
        self.labels.get(label).into_iter().flatten().filter_map(seen).collect()
    }

    /// A row as it will stand in the file; [`Self::put`] puts it there.
    /// `previous` is what the row was before.
    pub(crate) fn made(
        &mut self,
        entry: &SessionEntry,
        previous: Option<&RowText>,
    ) -> Result<Arc<RowText>, serde_json::Error> {
        self.rows.made(entry, previous)
    }

    /// Sets a row.
    pub(crate) fn put(&mut self, stored: &Arc<str>, row: Arc<RowText>) -> Undo {
        self.change(stored, Some(StoredValue::Row(row)), usize::MAX)
    }

    /// Removes a row.
    pub(crate) fn remove(&mut self, stored: &Arc<str>) -> Undo {
        self.change(stored, None, usize::MAX)
    }

    /// Takes a change back. Changes are taken back last first.
    pub(crate) fn undo(&mut self, undo: Undo) {
        self.change(&undo.stored, undo.old, undo.at);
    }

    /// Replaces all rows.
    pub(crate) fn reload(&mut self, rows: Rows) {
        self.index = HashMap::with_capacity(rows.len());
        self.shadows.clear();
        self.labels.clear();
        self.strays.clear();
        self.cron_runs = 0;
        let mut newest = Vec::with_capacity(rows.len());
        for (stored, value) in rows.iter() {
            let Some(row) = value.row() else { continue };
            let key = self.key_of(stored);
            self.note(key.as_ref(), stored, row);
            newest.extend(key.map(|key| ((Reverse(row.updated_at_ms()), key), Arc::clone(row))));
        }
        self.rows = rows;
        let contested: Vec<SessionKey> = self.shadows.keys().cloned().collect();
        newest.retain(|((_, key), _)| !self.shadows.contains_key(key));
        newest.iter().for_each(|((_, key), _)| self.register(key));
        self.newest = BTreeMap::from_iter(newest);
        for key in contested {
            self.elect(&key);
            self.seat(key);
        }
    }

    /// Sets or removes a value; a new one goes to the place `at`.
    fn change(&mut self, stored: &Arc<str>, new: Option<StoredValue>, at: usize) -> Undo {
        let key = self.key_of(stored);
        let was_at = self.rows.position(stored).unwrap_or(self.rows.len());
        let old = self.rows.get(stored).cloned();
        if let Some(key) = &key {
            self.unseat(key);
        }
        if let Some(row) = old.as_ref().and_then(StoredValue::row) {
            self.forget(key.as_ref(), stored, row);
        }
        if let Some(row) = new.as_ref().and_then(StoredValue::row) {
            self.note(key.as_ref(), stored, row);
        }
        match new {
            None => drop(self.rows.remove(stored)),
            Some(new) if old.is_some() => drop(self.rows.insert(Arc::clone(stored), new)),
            Some(new) => self.rows.insert_at(at, Arc::clone(stored), new),
        }
        if let Some(key) = key {
            self.elect(&key);
            self.seat(key);
        }
        Undo { stored: Arc::clone(stored), old, at: was_at }
    }

    fn key_of(&self, stored: &Arc<str>) -> Option<SessionKey> {
        let plain = self.rules.plainly(stored);
        let read = || legacy::canonicalize(stored, &self.agent, &self.rules).ok();
        plain.or_else(|| Some(read()?.spelled_as(stored)))
    }

    /// Puts the row that stands for a key where the newest are looked for, under the key as that row spells it.
    fn seat(&mut self, key: SessionKey) {
        let Some((stored, row)) = self.find(&key) else { return };
        let (key, row) = (key.spelled_as(stored), Arc::clone(row));
        self.register(&key);
        self.newest.insert((Reverse(row.updated_at_ms()), key), row);
    }

    fn unseat(&mut self, key: &SessionKey) {
        let Some((_, row)) = self.find(key) else { return };
        let seat = (Reverse(row.updated_at_ms()), key.clone());
        if self.newest.remove(&seat).is_some() {
            self.cron_runs -= usize::from(key.is_cron_run());
            self.strays.remove(key);
        }
    }

    /// Takes note of what a key is.
    fn register(&mut self, key: &SessionKey) {
        self.cron_runs += usize::from(key.is_cron_run());
        if key.agent_text().unwrap_or(self.rules.default_agent.as_str()) != self.agent.as_str() {
            self.strays.insert(key.clone());
        }
    }

    /// Takes note of the label and makes the spelling a candidate for its key.
    fn note(&mut self, key: Option<&SessionKey>, stored: &Arc<str>, row: &RowText) {
        if let Some(label) = row.text(HeadText::Label) {
            self.labels.entry(Box::from(&*label)).or_default().push(Arc::clone(stored));
        }
        let Some(key) = key else { return };
        match self.index.entry(key.clone()) {
            Entry::Vacant(place) => drop(place.insert(Arc::clone(stored))),
            Entry::Occupied(chosen) if chosen.get() != stored => {
                let shadows = self.shadows.entry(key.clone()).or_default();
                if !shadows.contains(stored) {
                    shadows.push(Arc::clone(stored));
                }
            }
            Entry::Occupied(_) => {}
        }
    }

    fn forget(&mut self, key: Option<&SessionKey>, stored: &Arc<str>, row: &RowText) {
        if let Some(label) = row.text(HeadText::Label)
            && let Some(labelled) = self.labels.get_mut(&*label)
        {
            labelled.retain(|other| other != stored);
            if labelled.is_empty() {
                self.labels.remove(&*label);
            }
        }
        let Some(key) = key else { return };
        if self.index.get(key) == Some(stored) {
            self.index.remove(key);
        }
        if let Some(shadows) = self.shadows.get_mut(key) {
            shadows.retain(|shadow| shadow != stored);
        }
    }

    /// Chooses the row that stands for a key: the newest, among equals the canonical one (spec `sessions.md` §1.6). A main
    /// session of the name `main` stands back behind one of the configured name.
    fn elect(&mut self, key: &SessionKey) {
        if self.shadows.get(key).is_none_or(Vec::is_empty) {
            self.shadows.remove(key);
            return;
        }
        let mut candidates = self.spellings(key);
        let is_canonical = |stored: &Arc<str>| **stored == *key.as_str();
        let has_canonical = candidates.iter().any(is_canonical);
        let rank = |stored: &Arc<str>| {
            let updated = self.row(stored).map_or(i64::MIN, |row| row.updated_at_ms());
            let stands_back = has_canonical && self.rules.is_former_main(stored);
            (!stands_back, updated, is_canonical(stored))
        };
        candidates.sort_by_key(|stored| Reverse(rank(stored)));
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

/// The row after a change, complete and tidy. A change that panics is refused; the store lives on.
fn changed(old: Option<&SessionEntry>, change: Change) -> Result<SessionEntry, Refused> {
    let now = now_ms();
    let mut entry = old.cloned().unwrap_or_default();
    // Changes by another program since then count as use.
    let used_at = entry.last_interaction_at.and_then(|_| entry.last_used_at());
    entry.last_interaction_at = used_at;
    let edit = Edit { entry: &mut entry, is_new: old.is_none(), now };
    let verdict = catch_unwind(AssertUnwindSafe(|| change(edit)));
    verdict.unwrap_or_else(|_| Err(Refused("the change of the session failed unexpectedly".to_owned())))?;
    if let Some(old) = old.filter(|_| entry.last_interaction_at == used_at) {
        entry.last_interaction_at = old.last_interaction_at;
        if entry == *old {
            return Ok(entry);
        }
        entry.last_interaction_at = used_at;
    }
    if entry.session_id.is_none() {
        entry.session_id = Some(new_session_id());
    }
    // A clock that was set back makes nothing older than it was.
    entry.updated_at = entry.updated_at.or(Some(now)).max(old.and_then(|old| old.updated_at));
    entry.last_interaction_known_at = entry.last_interaction_at.and(entry.updated_at);
    entry.normalize();
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::document;
    use super::super::query::{Hidden, Query};
    use super::*;

    fn table(json: &str) -> RowTable {
        RowTable::new(document::read(json.as_bytes()).rows, AgentId::default(), KeyRules::default())
    }

    fn key(text: &str) -> SessionKey {
        KeyRules::default().canonical(text).unwrap()
    }

    type Values = Vec<(Arc<str>, StoredValue)>;

    fn values(table: &RowTable) -> Values {
        table.rows().iter().map(|(key, stored)| (Arc::clone(key), stored.clone())).collect()
    }

    fn found(table: &RowTable, text: &str) -> Option<String> {
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
        assert_eq!(table.len(), 3);
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
        assert_eq!(newer.len(), 1);
        let equal = table(r#"{"main":{"updatedAt":2},"agent:main:main":{"updatedAt":2}}"#);
        assert_eq!(found(&equal, "main").as_deref(), Some("agent:main:main"));
    }

    /// Decision 47.
    #[test]
    fn the_row_of_a_main_session_is_that_of_its_name_else_that_of_main() {
        let rules = KeyRules::new(AgentId::default(), "work", openclaw_protocol::SessionScope::PerSender);
        let rows = [
            (r#"{"agent:main:main":{"updatedAt":2}}"#, "agent:main:main", "agent:main:main"),
            (
                r#"{"agent:main:main":{"updatedAt":2},"agent:main:work":{"updatedAt":1}}"#,
                "agent:main:work",
                "agent:main:work",
            ),
            (r#"{"agent:main:main":{"updatedAt":1},"main":{"updatedAt":2}}"#, "main", "agent:main:work"),
            (r#"{"agent:main:work":{"updatedAt":1}}"#, "agent:main:work", "agent:main:work"),
        ];
        for (json, found, written) in rows {
            let table =
                RowTable::new(document::read(json.as_bytes()).rows, AgentId::default(), rules.clone());
            for name in ["main", "work", "agent:main:main", "agent:main:work"] {
                let key = rules.canonical(name).unwrap();
                assert_eq!(key.as_str(), "agent:main:work");
                assert_eq!(table.find(&key).map(|(stored, _)| &**stored), Some(found), "{json}");
                assert_eq!(&*table.spelling_for_write(&key), written, "{json}");
            }
            assert_eq!(table.len(), 1);
        }
    }

    #[test]
    fn undo_restores_rows_places_and_labels() {
        let json =
            r#"{"agent:main:a":{"label":"x"},"main":{"updatedAt":9},"agent:main:main":{"updatedAt":1}}"#;
        let mut table = table(json);
        let before = values(&table);
        let a: Arc<str> = Arc::from("agent:main:a");
        let main: Arc<str> = Arc::from("main");
        let fresh: Arc<str> = Arc::from("agent:main:new");
        let labelled = SessionEntry { label: Some("y".into()), ..SessionEntry::default() };
        let labelled = table.made(&labelled, None).unwrap();
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
        assert_eq!(values(&table), before);
        assert!(table.label_in_use("x") && !table.label_in_use("y"));
        assert_eq!(found(&table, "main").as_deref(), Some("main"));
    }

    #[test]
    fn the_newest_rows_come_first_whatever_is_asked() {
        let table = table(
            r#"{"agent:main:a":{"updatedAt":3,"label":"x"},"agent:main:b":{"updatedAt":9},"agent:main:cron:j:run:1":{"updatedAt":8},
                "global":{"updatedAt":7},"agent:main:c":{"updatedAt":9},"agent:ops:d":{},"main":{"updatedAt":1,"label":"x"}}"#,
        );
        let hidden = Hidden { global: true, unknown: true, cron_runs: true };
        let rows: [(Query, &[&str], usize); 6] = [
            (
                Query::default(),
                &[
                    "agent:main:b",
                    "agent:main:c",
                    "agent:main:cron:j:run:1",
                    "global",
                    "agent:main:a",
                    "agent:main:main",
                    "agent:ops:d",
                ],
                7,
            ),
            (Query { hidden, ..Query::newest(3) }, &["agent:main:b", "agent:main:c", "agent:main:a"], 5),
            (Query { since: Some(9), ..Query::default() }, &["agent:main:b", "agent:main:c"], 7),
            (Query { label: Some("x".into()), ..Query::default() }, &["agent:main:a", "agent:main:main"], 7),
            (Query { label: Some("x".into()), ..Query::newest(1) }, &["agent:main:a"], 7),
            (Query { agent: Some(AgentId::normalize("ops")), ..Query::newest(5) }, &["agent:ops:d"], 7),
        ];
        for (query, expect, total) in rows {
            assert_eq!(
                selected(&table, &query),
                (expect.iter().map(|key| (*key).to_owned()).collect(), total),
                "{query:?}"
            );
        }
        assert_eq!(table.strays().iter().map(SessionKey::as_str).collect::<Vec<_>>(), ["agent:ops:d"]);
    }

    fn selected(table: &RowTable, query: &Query) -> (Vec<String>, usize) {
        let rules = KeyRules::default();
        let matcher = Matcher::new(query, &rules, None);
        let keys = table.select(&matcher, |_| false).iter().map(|(key, _)| key.to_string()).collect();
        (keys, table.count(&matcher))
    }

    /// Keys with several spellings, hidden ones, those of others, and one that is none.
    const SPELLINGS: &[&str] = &[
        "main",
        "agent:main:main",
        "Agent:Main:MAIN",
        "agent:main:telegram:dm:7",
        "agent:main:telegram:direct:7",
        "cron:j:run:1",
        "agent:main:cron:j:run:1",
        "global",
        "unknown",
        "agent:ops:main",
        "group:",
        "agent:main:x",
    ];

    #[derive(Debug, Clone)]
    enum Step {
        Put(usize, i64, Option<u8>),
        Remove(usize),
        /// Takes so many of the last steps back.
        Undo(usize),
        Reload,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let at = 0..SPELLINGS.len();
        let step = prop_oneof![
            4 => (at.clone(), 0..4_i64, prop::option::of(0..2_u8)).prop_map(|(at, updated, label)| Step::Put(at, updated, label)),
            2 => at.prop_map(Step::Remove),
            1 => (0..4_usize).prop_map(Step::Undo),
            1 => Just(Step::Reload),
        ];
        prop::collection::vec(step, 0..40)
    }

    /// Expected content of the table, found by looking at every row each time.
    fn expected(values: &[(Arc<str>, StoredValue)]) -> Vec<(i64, SessionKey, Arc<str>)> {
        let rules = KeyRules::default();
        let mut best: HashMap<SessionKey, (i64, bool, Arc<str>)> = HashMap::new();
        for (stored, value) in values {
            let (Ok(key), Some(row)) =
                (legacy::canonicalize(stored, &AgentId::default(), &rules), value.row())
            else {
                continue;
            };
            let rank = (row.updated_at_ms(), **stored == *key.as_str());
            match best.get(&key) {
                Some((updated, canonical, _)) if (*updated, *canonical) > rank => {}
                // Equal ranks of two old spellings: either may count.
                Some((updated, canonical, _)) if (*updated, *canonical) == rank => {}
                Some(_) | None => {
                    best.insert(key, (rank.0, rank.1, Arc::clone(stored)));
                }
            }
        }
        let mut out: Vec<_> =
            best.into_iter().map(|(key, (at, _, stored))| (at, key.spelled_as(&stored), stored)).collect();
        out.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
        out
    }

    fn check(table: &RowTable) {
        let values = values(table);
        let expect = expected(&values);
        let keys: Vec<String> = expect.iter().map(|(_, key, _)| key.to_string()).collect();
        assert_eq!(selected(table, &Query::default()), (keys.clone(), keys.len()));
        for (at, text, _) in &expect {
            let (stored, row) = table.find(text).unwrap();
            assert_eq!(row.updated_at_ms(), *at);
            assert_eq!(table.row(stored), Some(row));
        }
        let hidden = Hidden { global: true, unknown: true, cron_runs: true };
        let shown: Vec<String> = keys.iter().filter(|text| !hidden.hides(&key(text))).cloned().collect();
        let (found, total) = selected(table, &Query { hidden, ..Query::newest(2) });
        assert_eq!((found.as_slice(), total), (&shown[..shown.len().min(2)], shown.len()));
        for label in ["0", "1"] {
            let has = |value: &StoredValue| {
                value.row().is_some_and(|row| row.text(HeadText::Label).as_deref() == Some(label))
            };
            assert_eq!(table.label_in_use(label), values.iter().any(|(_, value)| has(value)));
            let labelled = expect
                .iter()
                .filter(|(_, text, _)| has(&StoredValue::Row(Arc::clone(table.find(text).unwrap().1))));
            let labelled: Vec<String> = labelled.map(|(_, text, _)| text.to_string()).collect();
            assert_eq!(selected(table, &Query { label: Some(label.into()), ..Query::default() }).0, labelled);
        }
        let strays = keys.iter().filter(|text| text.starts_with("agent:ops:"));
        assert_eq!(table.strays().len(), strays.count());
    }

    proptest! {
        #[test]
        fn the_indexes_say_what_a_look_at_every_row_says(steps in steps()) {
            let mut table = table("{}");
            let mut done: Vec<(Undo, Values)> = Vec::new();
            for step in steps {
                match step {
                    Step::Put(at, updated, label) => {
                        let before = values(&table);
                        let label = label.map(|label| label.to_string().into());
                        let entry = SessionEntry { updated_at: Some(updated), label, ..SessionEntry::default() };
                        let row = table.made(&entry, None).unwrap();
                        done.push((table.put(&Arc::from(SPELLINGS[at]), row), before));
                    }
                    Step::Remove(at) => {
                        let before = values(&table);
                        done.push((table.remove(&Arc::from(SPELLINGS[at])), before));
                    }
                    Step::Undo(count) => {
                        for _ in 0..count {
                            if let Some((undo, before)) = done.pop() {
                                table.undo(undo);
                                prop_assert_eq!(values(&table), before);
                            }
                        }
                    }
                    Step::Reload => {
                        let rows = table.rows().clone();
                        table.reload(rows);
                    }
                }
                check(&table);
            }
        }
    }
}
