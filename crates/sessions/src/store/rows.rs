//! The values of a store file by key, in the order of the file.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::head::RawHead;
use super::stored::{Pool, RowText, StoredValue};
use crate::entry::SessionEntry;

/// Values by their key as the file spells it. Cheap to clone: values are shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    values: IndexMap<Arc<str>, StoredValue, RandomState>,
    pool: Pool,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&StoredValue> {
        self.values.get(key)
    }

    /// Row of a key; `None` if there is none or something else.
    pub(crate) fn row(&self, key: &str) -> Option<&Arc<RowText>> {
        self.get(key)?.row()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &StoredValue)> {
        self.values.iter()
    }

    pub(crate) fn position(&self, key: &str) -> Option<usize> {
        self.values.get_index_of(key)
    }

    /// Sets a value; one that is new goes to the end.
    pub(crate) fn insert(&mut self, key: Arc<str>, value: StoredValue) -> Option<StoredValue> {
        self.values.insert(key, value)
    }

    /// Puts a new value at a place.
    pub(crate) fn insert_at(&mut self, at: usize, key: Arc<str>, value: StoredValue) {
        self.values.shift_insert(at.min(self.values.len()), key, value);
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<StoredValue> {
        self.values.shift_remove(key)
    }

    /// Keeps a value found in a file. `raw` is what was read of it when it is an object.
    pub(crate) fn found(&mut self, text: &str, raw: Option<&RawHead<'_>>) -> StoredValue {
        match raw {
            Some(raw) => StoredValue::Row(Arc::new(RowText::found(text, raw, &mut self.pool))),
            None => StoredValue::Opaque(Arc::from(text)),
        }
    }

    /// Sets a row.
    pub(crate) fn put(&mut self, key: Arc<str>, entry: &SessionEntry) -> Result<(), serde_json::Error> {
        let previous = self.row(&key).cloned();
        let row = self.made(entry, previous.as_deref())?;
        self.values.insert(key, StoredValue::Row(row));
        Ok(())
    }

    /// A row as it will stand in the file. It is not in it yet.
    /// `previous` is what the row was before.
    pub(crate) fn made(
        &mut self,
        entry: &SessionEntry,
        previous: Option<&RowText>,
    ) -> Result<Arc<RowText>, serde_json::Error> {
        RowText::made(entry, previous, &mut self.pool).map(Arc::new)
    }
}
