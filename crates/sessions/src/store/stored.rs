//! A value of the store as it is kept in memory: its JSON text as it stands in the file. Writing an unchanged row is a
//! copy, and fifty thousand rows take little more than the file does. A row is read whole when someone asks for it.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::head::{HeadText, RawHead, RowHead, offset_in};
use super::listed::ListRowCache;
use crate::entry::{Json, ROW_FIELD_DEPTH, SessionEntry, laid_out};
use crate::mend::mend;

/// A value of the file: a row, or something else that is kept as it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredValue {
    Row(Arc<RowText>),
    /// Value that is no object, as JSON text.
    Opaque(Arc<str>),
}

impl StoredValue {
    /// The row, where it is one.
    pub(crate) fn row(&self) -> Option<&Arc<RowText>> {
        match self {
            Self::Row(row) => Some(row),
            Self::Opaque(_) => None,
        }
    }

    /// Writes the value as it stands in the file.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Row(row) => row.write(out),
            Self::Opaque(text) => out.write_all(text.as_bytes()),
        }
    }
}

/// A row as text.
#[derive(Debug, PartialEq)]
pub(crate) struct RowText {
    head: RowHead,
    /// JSON, with a [`PLACEHOLDER`] for each of `big`.
    text: Box<str>,
    /// Large values, in the order of their places.
    big: Box<[BigValue]>,
    listed: ListRowCache,
}

/// A big value that stands outside of its row's text, where rows can share it.
#[derive(Debug, Clone, PartialEq)]
struct BigValue {
    at: usize,
    field: BigField,
    text: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BigField {
    SkillsSnapshot,
    SystemPromptReport,
}

/// Stands for a big value.
const PLACEHOLDER: &str = "0";
/// Values shorter than this stay in the row's text.
const BIG: usize = 256;

impl BigField {
    const ALL: [Self; 2] = [Self::SkillsSnapshot, Self::SystemPromptReport];

    fn raw<'a>(self, raw: &RawHead<'a>) -> Option<&'a str> {
        match self {
            Self::SkillsSnapshot => raw.skills_snapshot,
            Self::SystemPromptReport => raw.system_prompt_report,
        }
    }

    fn of(self, entry: &mut SessionEntry) -> &mut Option<Json> {
        match self {
            Self::SkillsSnapshot => &mut entry.skills_snapshot,
            Self::SystemPromptReport => &mut entry.system_prompt_report,
        }
    }

    /// Keeps the text, in the pool where rows are likely to have the same.
    fn keep(self, text: &str, pool: &mut Pool) -> Arc<str> {
        match self {
            Self::SkillsSnapshot => pool.shared(text),
            Self::SystemPromptReport => Arc::from(text),
        }
    }

    /// The text of a value as it stands in the file. `previous` is the row as it was: most changes leave its big values alone.
    fn text_in_file(self, value: &Json, previous: Option<&RowText>, pool: &mut Pool) -> Arc<str> {
        let before = previous.and_then(|row| row.big.iter().find(|big| big.field == self));
        if before.is_some_and(|before| Arc::ptr_eq(&before.text, value.text())) {
            return Arc::clone(value.text());
        }
        if let Some(known) = pool.known(value.as_str()) {
            return known;
        }
        let text = laid_out(value.as_str(), ROW_FIELD_DEPTH);
        if text == value.as_str() && self == Self::SystemPromptReport {
            return Arc::clone(value.text());
        }
        self.keep(&text, pool)
    }
}

impl RowText {
    /// Keeps a row found in a file: its text, and what was read of it.
    pub(crate) fn found(text: &str, raw: &RawHead<'_>, pool: &mut Pool) -> Self {
        let mut places: Vec<(usize, BigField, &str)> = BigField::ALL
            .into_iter()
            .filter_map(|field| Some((field, field.raw(raw)?)))
            .filter(|(_, value)| value.len() >= BIG && value.starts_with(['{', '[']))
            .filter_map(|(field, value)| Some((offset_in(value, text)?, field, value)))
            .collect();
        if places.is_empty() {
            return Self::new(raw.head(text, |place| place), text.to_owned(), Vec::new());
        }
        places.sort_unstable_by_key(|(at, ..)| *at);
        let mut slim = String::with_capacity(text.len());
        let mut big = Vec::with_capacity(places.len());
        let mut copied = 0;
        for (at, field, value) in &places {
            slim.push_str(text.get(copied..*at).unwrap_or_default());
            big.push(BigValue { at: slim.len(), field: *field, text: field.keep(value, pool) });
            slim.push_str(PLACEHOLDER);
            copied = at + value.len();
        }
        slim.push_str(text.get(copied..).unwrap_or_default());
        let moved = |place: usize| {
            let before = places.iter().filter(|(at, ..)| *at < place);
            place - before.map(|(_, _, value)| value.len() - PLACEHOLDER.len()).sum::<usize>()
        };
        Self::new(raw.head(text, moved), slim, big)
    }

    fn new(head: RowHead, text: String, big: Vec<BigValue>) -> Self {
        Self {
            head,
            text: text.into_boxed_str(),
            big: big.into_boxed_slice(),
            listed: ListRowCache::default(),
        }
    }

    /// Keeps a row that is not in the file as it is, laid out as OpenClaw writes it.
    /// `previous` is what the row was before.
    pub(crate) fn made(
        entry: &SessionEntry,
        previous: Option<&Self>,
        pool: &mut Pool,
    ) -> Result<Self, serde_json::Error> {
        let mut slim = entry.clone();
        let mut big = Vec::new();
        for field in BigField::ALL {
            if let Some(value) = field.of(&mut slim)
                && value.as_str().len() >= BIG
            {
                let text = field.text_in_file(value, previous, pool);
                *value = Json::shared(Arc::from(PLACEHOLDER));
                big.push((field, text));
            }
        }
        let text = laid_out(&serde_json::to_string(&slim)?, ROW_FIELD_DEPTH - 1);
        let raw: RawHead<'_> = serde_json::from_str(&text)?;
        let place = |(field, value): (BigField, Arc<str>)| {
            Some(BigValue { at: offset_in(field.raw(&raw)?, &text)?, field, text: value })
        };
        let mut big: Vec<BigValue> = big.into_iter().filter_map(place).collect();
        big.sort_unstable_by_key(|value| value.at);
        let head = raw.head(&text, |place| place);
        Ok(Self::new(head, text, big))
    }

    pub(crate) fn updated_at_ms(&self) -> i64 {
        self.head.updated_at_ms()
    }

    /// Cached list view of the row.
    pub(crate) fn listed(&self) -> &ListRowCache {
        &self.listed
    }

    pub(crate) fn head(&self) -> &RowHead {
        &self.head
    }

    /// A text of the row, where it has one of the right type.
    pub(crate) fn text(&self, part: HeadText) -> Option<std::borrow::Cow<'_, str>> {
        self.head.text(part, &self.text)
    }

    /// The row as the product sees it. Only old field names, and values that are no valid JSON, are
    /// changed in its text.
    pub(crate) fn entry(&self) -> SessionEntry {
        let mut entry = match serde_json::from_str(&self.text) {
            Ok(entry) => entry,
            Err(_) => patched_up(&self.text),
        };
        for value in &self.big {
            *value.field.of(&mut entry) = Some(Json::shared(Arc::clone(&value.text)));
        }
        entry.rename_legacy_fields();
        entry
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut written = 0;
        for value in &self.big {
            out.write_all(self.text.get(written..value.at).unwrap_or_default().as_bytes())?;
            out.write_all(value.text.as_bytes())?;
            written = value.at + PLACEHOLDER.len();
        }
        out.write_all(self.text.get(written..).unwrap_or_default().as_bytes())
    }
}

/// A row with values that are valid JSON for JavaScript alone: texts cut in a surrogate pair are mended, numbers beyond
/// all bounds and values nested beyond reason become null.
fn patched_up(text: &str) -> SessionEntry {
    let mended = mend(text.as_bytes());
    if let Ok(entry) = serde_json::from_str(&mended) {
        return entry;
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(&mended).unwrap_or_default();
    let read =
        |(name, raw): (String, &RawValue)| (name, serde_json::from_str(raw.get()).unwrap_or(Value::Null));
    serde_json::from_value(Value::Object(fields.into_iter().map(read).collect())).unwrap_or_default()
}

/// Big texts that rows share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pool {
    texts: HashSet<Arc<str>>,
    /// Number of kept texts at which unused ones are dropped.
    sweep_at: usize,
}

impl Pool {
    const AT_LEAST: usize = 64;

    fn known(&self, text: &str) -> Option<Arc<str>> {
        self.texts.get(text).cloned()
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known(text) {
            return known;
        }
        if self.texts.len() >= self.sweep_at.max(Self::AT_LEAST) {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = self.texts.len() * 2;
        }
        let text: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&text));
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn found(text: &str) -> RowText {
        RowText::found(text, &serde_json::from_str(text).unwrap(), &mut Pool::default())
    }

    fn written(row: &RowText) -> String {
        let mut out = Vec::new();
        row.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Value of a part in the fully parsed row, to compare with the head's.
    fn part_of(entry: &SessionEntry, part: HeadText) -> Option<&str> {
        match part {
            HeadText::SessionId => entry.session_id.as_ref().map(|id| id.as_str()),
            HeadText::SessionFile => entry.session_file.as_deref(),
            HeadText::SpawnedBy => entry.spawned_by.as_deref(),
            HeadText::Label => entry.label.as_deref(),
            HeadText::DisplayName => entry.display_name.as_deref(),
            HeadText::Channel => entry.channel.as_deref(),
            HeadText::GroupId => entry.group_id.as_deref(),
            HeadText::Subject => entry.subject.as_deref(),
            HeadText::GroupChannel => entry.group_channel.as_deref(),
            HeadText::Space => entry.space.as_deref(),
            HeadText::OriginLabel => entry.origin.as_deref()?.label.as_deref(),
        }
    }

    fn check(row: &RowText) {
        let entry = row.entry();
        for part in HeadText::ALL {
            assert_eq!(row.text(part).as_deref(), part_of(&entry, part), "{part:?} of {}", row.text);
        }
        assert_eq!(
            (row.head().updated_at, row.head().chat_type),
            (entry.updated_at, entry.chat_type),
            "{}",
            row.text
        );
    }

    fn rows() -> impl Strategy<Value = Map<String, Value>> {
        let big = "b".repeat(BIG);
        let value = prop_oneof![
            Just(json!(null)),
            Just(json!(5)),
            Just(json!(-7.5)),
            Just(json!("group")),
            Just(json!("a \"quoted\" \\ \n é 😀")),
            Just(json!("")),
            Just(json!({"label": "from here", "x": [1, {}]})),
            Just(json!({"label": 5})),
            Just(json!([])),
            Just(json!({"prompt": big, "skills": [{"name": "s"}]})),
            Just(json!([big])),
        ];
        let name = prop::sample::select(vec![
            "sessionId",
            "updatedAt",
            "sessionFile",
            "spawnedBy",
            "label",
            "displayName",
            "channel",
            "provider",
            "groupId",
            "subject",
            "groupChannel",
            "room",
            "space",
            "origin",
            "chatType",
            "skillsSnapshot",
            "systemPromptReport",
            "model",
            "novel",
            "lastProvider",
        ]);
        prop::collection::btree_map(name, value, 0..12)
            .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    proptest! {
        #[test]
        fn a_row_is_written_as_it_was_found_and_its_head_tells_the_truth(fields in rows(), depth in 0..3_usize) {
            let value = Value::Object(fields);
            for text in [value.to_string(), laid_out(&value.to_string(), depth)] {
                let row = found(&text);
                prop_assert_eq!(&written(&row), &text);
                check(&row);
                let mut whole: SessionEntry = serde_json::from_str(&text).unwrap();
                whole.rename_legacy_fields();
                prop_assert_eq!(row.entry(), whole);
            }
        }

        #[test]
        fn a_row_that_is_made_stands_in_the_file_as_openclaw_writes_it(fields in rows()) {
            let mut entry: SessionEntry = serde_json::from_value(Value::Object(fields)).unwrap();
            entry.rename_legacy_fields();
            let row = RowText::made(&entry, None, &mut Pool::default()).unwrap();
            let pretty = serde_json::to_string_pretty(&entry).unwrap().replace('\n', "\n  ");
            prop_assert_eq!(&written(&row), &pretty);
            check(&row);
            prop_assert_eq!(row.entry(), entry);
            prop_assert_eq!(found(&pretty), row);
        }
    }

    #[test]
    fn texts_that_nobody_uses_are_let_go_of() {
        let mut pool = Pool::default();
        let kept = pool.shared("kept");
        for n in 0..10 * Pool::AT_LEAST {
            pool.shared(&format!("text {n}"));
        }
        assert!(pool.texts.len() <= Pool::AT_LEAST);
        assert!(Arc::ptr_eq(&kept, &pool.shared("kept")));
    }
}
