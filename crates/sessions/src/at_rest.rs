//! A store file that no process has open: everything that is in it, whole or not, and putting other rows in its place.
//! For what is done before a gateway opens its store, or without one.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_config::json5;
use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use crate::disk;
use crate::entry::SessionEntry;
use crate::lockfile::{Acquired, LockFile, LockKind};
use crate::mend::mend;
use crate::store::glance;
use crate::transcript::scan::Lines;

/// A row by the file's spelling of its key.
pub(crate) type StoredRow = (String, Arc<SessionEntry>);

/// What was found.
#[derive(Debug)]
pub(crate) struct AtRest {
    /// Every row that can be read, acknowledged changes that only the journal holds included.
    pub(crate) rows: Vec<StoredRow>,
    /// Keys whose value is no row.
    pub(crate) no_rows: Vec<String>,
    /// What is wrong with the file as a whole.
    pub(crate) damage: Option<Damage>,
    /// The journal's files, in their order.
    pub(crate) segments: Vec<PathBuf>,
    /// Complete lines of the journal that can't be read.
    pub(crate) foul_lines: usize,
}

/// Why not all of a file could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Its text breaks off or is foul somewhere.
    Broken,
    /// It holds something else.
    NotAnObject,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "is torn or malformed",
            Self::NotAnObject => "holds something other than an object of sessions",
        })
    }
}

impl AtRest {
    /// Reads file and journal; changes nothing. A missing file has no rows.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let rows = glance(path)?;
        let (no_rows, damage) = match disk::read_regular(path) {
            Ok(bytes) => inspect(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), None),
            Err(error) => return Err(error),
        };
        let segments = journal_files(path)?;
        let foul_lines = segments.iter().map(|file| foul_lines(file)).sum::<io::Result<usize>>()?;
        Ok(Self { rows, no_rows, damage, segments, foul_lines })
    }

    /// Whether all of it could be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.no_rows.is_empty() && self.damage.is_none() && self.foul_lines == 0
    }
}

/// Keys without a row, and what is wrong with a file.
fn inspect(bytes: &[u8]) -> (Vec<String>, Option<Damage>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(keys) = keys_without_object(bytes) {
        return (keys, None);
    }
    let text = mend(bytes);
    if let Ok(keys) = keys_without_object(text.as_bytes()) {
        return (keys, None);
    }
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        return (Vec::new(), Some(Damage::NotAnObject));
    }
    match json5::parse_value(&text) {
        Ok(Value::Object(fields)) => {
            let no_row = |(key, value): (String, Value)| (!value.is_object()).then_some(key);
            (fields.into_iter().filter_map(no_row).collect(), None)
        }
        Ok(_) => (Vec::new(), Some(Damage::NotAnObject)),
        Err(_) if text.trim_start().starts_with('{') => (Vec::new(), Some(Damage::Broken)),
        Err(_) => (Vec::new(), Some(Damage::NotAnObject)),
    }
}

fn keys_without_object(bytes: &[u8]) -> serde_json::Result<Vec<String>> {
    let mut found = Vec::new();
    each_key(bytes, |key, value| {
        if !value.starts_with('{') {
            found.push(key.to_owned());
        }
    })?;
    Ok(found)
}

/// The segments of a store's journal, in their order.
pub(crate) fn journal_files(store: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = format!("{}.journal.", store.file_name().unwrap_or_default().to_string_lossy());
    let entries = match store.parent().map(std::fs::read_dir) {
        Some(Ok(entries)) => entries,
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Some(Err(_)) | None => return Ok(Vec::new()),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let number =
            entry.file_name().to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u64>().ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Complete lines that hold no changes. A torn last line is none of them: it was never acknowledged.
fn foul_lines(segment: &Path) -> io::Result<usize> {
    #[derive(serde::Deserialize)]
    struct Change {
        #[serde(rename = "key")]
        _key: IgnoredAny,
    }
    /// The line that says how much of a segment that failed counts.
    #[derive(serde::Deserialize)]
    struct Word {
        #[serde(rename = "after")]
        _after: u64,
        #[serde(rename = "len")]
        _len: u64,
    }
    let mut lines = Lines::new(BufReader::new(disk::open_regular(segment)?), 0);
    let mut foul = 0;
    while let Some(line) = lines.advance()? {
        let is_changes = || serde_json::from_slice::<Vec<Change>>(lines.bytes()).is_ok();
        let is_word = || line.offset == 0 && serde_json::from_slice::<Word>(lines.bytes()).is_ok();
        foul += usize::from(line.ended && (line.cut || !(is_changes() || is_word())));
    }
    Ok(foul)
}

/// Puts rows in the place of the whole file, at once or not at all, as OpenClaw writes them. The journal stays.
pub(crate) fn write(path: &Path, rows: &[StoredRow]) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::pretty(&mut bytes);
    let mut map = serializer.serialize_map(Some(rows.len()))?;
    for (key, entry) in rows {
        map.serialize_entry(key, &**entry)?;
    }
    map.end()?;
    disk::replace(path, &bytes)
}

/// How long another process's lock is waited for, and how often it is tried (spec `sessions.md` §3.4).
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// Takes OpenClaw's lock of a store, so that no command of OpenClaw writes it meanwhile. Blocking.
pub(crate) fn lock(store: &Path) -> io::Result<LockFile> {
    let path = disk::beside(store, "lock");
    let begun = Instant::now();
    loop {
        match LockFile::try_acquire(&disk::real(), &path, LockKind::Store)? {
            Acquired::Yes(lock) => return Ok(lock),
            Acquired::HeldBy(_) if begun.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
            Acquired::HeldBy(pid) => {
                let holder = pid.map_or_else(String::new, |pid| format!(" (held by pid {pid})"));
                let text = format!("timeout acquiring session store lock: {}{holder}", path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

/// Whether a file has a key of which `is_wanted` is true, without reading its rows. A file that is no JSON has none.
pub(crate) fn has_key(path: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<bool> {
    match disk::read_regular(path) {
        Ok(bytes) => {
            let mut found = false;
            let mut see = |key: &str| found = found || is_wanted(key);
            let is_read = standard_keys(&bytes, &mut see).is_some()
                || serde_json::Deserializer::from_slice(&bytes).deserialize_map(Keys(&mut see)).is_ok();
            Ok(is_read && found)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The keys of a file that is laid out as OpenClaw lays it out, each on a line of its own and nothing else at its depth.
/// A big store is looked through at every start, and this takes a tenth of the time. Rows that a person put into one line
/// of such a file are not seen; the store knows them all the same, and the doctor reads everything.
fn standard_keys(bytes: &[u8], see: &mut dyn FnMut(&str)) -> Option<()> {
    const BEFORE: &[u8] = b"\n  \"";
    if bytes.get(1..).is_none_or(|rest| !rest.starts_with(BEFORE)) || !bytes.ends_with(b"\n}") {
        return None;
    }
    for at in memchr::memmem::find_iter(bytes, BEFORE) {
        let rest = bytes.get(at + BEFORE.len()..)?;
        let key = rest.get(..memchr::memchr(b'"', rest)?)?;
        if memchr::memchr(b'\\', key).is_some() {
            return None;
        }
        see(std::str::from_utf8(key).ok()?);
    }
    Some(())
}

/// Looks at keys alone.
struct Keys<F>(F);

impl<'de, F: FnMut(&str)> Visitor<'de> for Keys<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of sessions")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            (self.0)(&key);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Looks at keys with the text of their values.
fn each_key(bytes: &[u8], see: impl FnMut(&str, &str)) -> serde_json::Result<()> {
    struct Pairs<F>(F);
    impl<'de, F: FnMut(&str, &str)> Visitor<'de> for Pairs<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of sessions")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                let value: &'de serde_json::value::RawValue = map.next_value()?;
                (self.0)(&key, value.get());
            }
            Ok(())
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.deserialize_map(Pairs(see))?;
    reader.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_there_is_is_found_and_the_bad_parts_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        assert!(AtRest::read(&path).unwrap().rows.is_empty());
        std::fs::write(&path, r#"{"a": {"sessionId": "1"}, "note": 3, "b": {"sess"#).unwrap();
        let lines = "{oops}\n[{\"key\":\"c\",\"new\":true,\"set\":{\"sessionId\":\"2\"}}]\n[{\"key\":";
        std::fs::write(dir.path().join("sessions.json.journal.1"), lines).unwrap();
        let found = AtRest::read(&path).unwrap();
        let keys: Vec<&str> = found.rows.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!((keys, found.foul_lines, found.segments.len()), (vec!["a", "c"], 1, 1));
        assert_eq!(found.damage, Some(Damage::Broken));
        // What a segment begins with that follows a failed one, and what takes the place of a change that was none.
        let sound = "{\"after\":1,\"len\":0}\n[]\n[{\"key\":\"c\",\"delete\":true}]\n";
        std::fs::write(dir.path().join("sessions.json.journal.2"), sound).unwrap();
        assert_eq!(AtRest::read(&path).unwrap().foul_lines, 1);
        std::fs::remove_file(dir.path().join("sessions.json.journal.2")).unwrap();
        write(&path, &found.rows).unwrap();
        let again = AtRest::read(&path).unwrap();
        assert_eq!((again.rows, again.damage), (found.rows, None), "the journal changes nothing any more");
    }

    #[test]
    fn files_are_told_apart() {
        let deep = "[".repeat(100_000);
        let rows: &[(&str, &[&str], Option<Damage>)] = &[
            ("{}", &[], None),
            (r#"{"a": {}, "b": 5, "c": null}"#, &["b", "c"], None),
            ("// mine\n{a: {sessionId: 'x',}, b: [],}", &["b"], None),
            (r#"{"a": {"subject": "x\ud83d"}, "b": 1}"#, &["b"], None),
            ("[]", &[], Some(Damage::NotAnObject)),
            ("", &[], Some(Damage::NotAnObject)),
            ("hello", &[], Some(Damage::NotAnObject)),
            (&deep, &[], Some(Damage::NotAnObject)),
            (r#"{"a": {"#, &[], Some(Damage::Broken)),
            (r#"{"a": {}}}"#, &[], Some(Damage::Broken)),
        ];
        for (text, no_rows, damage) in rows {
            let (found, seen) = inspect(text.as_bytes());
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            assert_eq!((found.as_slice(), seen), (*no_rows, *damage), "{text:.40}");
        }
    }

    #[test]
    fn keys_are_found_without_reading_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let has = |key: &str| has_key(&path, |found| found == key).unwrap();
        assert!(!has("main"));
        for (text, expect) in [
            (r#"{"agent:main:main": {"main": 1}}"#, false),
            (r#"{"agent:main:main": {}, "m\u0061in": {}}"#, true),
            (r#"{"main": {}"#, false),
            (r#"["main"]"#, false),
            ("{\n  \"main\": {\n    \"a\": 1\n  }\n}", true),
            ("{\n  \"x\": {\n    \"main\": 1\n  }\n}", false),
            ("{\n  \"m\\u0061in\": {}\n}", true),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(has("main"), expect, "{text}");
        }
    }

    /// Values of `sessions.md` §3.4.
    #[test]
    fn the_lock_is_waited_for_as_openclaw_waits() {
        assert_eq!(LockKind::Store.untold_for().as_millis(), 30_000);
        assert_eq!((LOCK_PATIENCE.as_millis(), LOCK_PAUSE.as_millis()), (10_000, 25));
    }
}
