//! `sessions.json` as text: reading whatever is there, writing exactly what OpenClaw writes (spec `sessions.md` §3.2).

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use openclaw_config::json5;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::head::RawHead;
use super::rows::Rows;
use crate::disk::{FileVersion, SharedDisk};
use crate::entry::laid_out;
use crate::mend::mend;

/// Contents of a store file.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionsDocument {
    pub(crate) rows: Rows,
    /// Reason why the file could not be read in full.
    pub(crate) damage: Option<Damage>,
}

/// Damage to a store file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The file ends or breaks at this offset; the rows before it were recovered.
    BrokenAt(usize),
    /// The file is no JSON object at all.
    NotAnObject,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenAt(_) => f.write_str("is torn or malformed"),
            Self::NotAnObject => f.write_str("holds something other than an object of sessions"),
        }
    }
}

/// Reads a file, and which version of it that is. A missing file has no rows.
pub(crate) fn load_file(
    disk: &SharedDisk,
    path: &Path,
) -> io::Result<(Option<FileVersion>, SessionsDocument)> {
    let stamp = disk.stamp(path)?;
    match load(|| disk.open(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, SessionsDocument::default())),
        loaded => Ok((stamp, loaded?)),
    }
}

/// The rows of a file of plain JSON; `None` for any other.
pub(crate) fn plain_rows(source: impl Read) -> io::Result<Option<Rows>> {
    Stream::new(source).rows()
}

/// Reads a file piece by piece, so that it never is in memory beside its rows. A file that is not plain JSON is opened
/// again and read whole: JSON5, else as many rows as can be recovered.
fn load<R: Read>(open: impl Fn() -> io::Result<R>) -> io::Result<SessionsDocument> {
    if let Some(rows) = plain_rows(open()?)? {
        return Ok(SessionsDocument { rows, damage: None });
    }
    let mut bytes = Vec::new();
    open()?.read_to_end(&mut bytes)?;
    Ok(tolerant(&bytes))
}

/// Reads the bytes of a file: JSON, else JSON5, else as many rows as can be recovered.
#[cfg(test)]
pub(crate) fn read(bytes: &[u8]) -> SessionsDocument {
    load(|| Ok(bytes)).unwrap()
}

fn tolerant(bytes: &[u8]) -> SessionsDocument {
    let text = mend(bytes.strip_prefix(BOM).unwrap_or(bytes));
    let recovered = salvage(&text);
    if recovered.damage.is_none() {
        return recovered;
    }
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        return SessionsDocument { rows: Rows::default(), damage: Some(Damage::NotAnObject) };
    }
    if let Ok(Value::Object(fields)) = json5::parse_value(&text) {
        let mut rows = Rows::default();
        for (key, value) in fields {
            let text = laid_out(&value.to_string(), 1);
            let stored = rows.found(&text, serde_json::from_str(&text).ok().as_ref());
            rows.insert(Arc::from(key), stored);
        }
        return SessionsDocument { rows, damage: None };
    }
    recovered
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads `"key": value` pairs up to the first that is broken.
fn salvage(text: &str) -> SessionsDocument {
    let mut rows = Rows::default();
    let mut at = skip_blank(text, 0);
    let mut first = true;
    if at == text.len() {
        return SessionsDocument { rows, damage: Some(Damage::NotAnObject) };
    }
    let damage = loop {
        match step(text, at, first, &mut rows) {
            DocumentToken::Pair { next } => (at, first) = (next, false),
            DocumentToken::End { next } if skip_blank(text, next) == text.len() => break None,
            DocumentToken::End { next } => break Some(Damage::BrokenAt(next)),
            DocumentToken::NoObject => break Some(Damage::NotAnObject),
            DocumentToken::Short | DocumentToken::Broken => break Some(Damage::BrokenAt(at)),
        }
    };
    SessionsDocument { rows, damage }
}

/// Token between two pairs of the file's object, its `{` or a `,` first.
enum DocumentToken {
    /// A pair, which is in the rows now. The sign after it stands at `next`.
    Pair { next: usize },
    /// The end of the object.
    End { next: usize },
    /// The file is no object.
    NoObject,
    /// The text is over too soon.
    Short,
    /// Bytes that are no JSON.
    Broken,
}

/// Takes the next pair. `at` is the place of the sign before it.
fn step(text: &str, at: usize, first: bool, rows: &mut Rows) -> DocumentToken {
    let key_at = match byte_at(text, at) {
        Some(b'{') if first => skip_blank(text, at + 1),
        Some(b',') if !first => skip_blank(text, at + 1),
        Some(b'}') if !first => return DocumentToken::End { next: at + 1 },
        None => return DocumentToken::Short,
        Some(_) if first => return DocumentToken::NoObject,
        Some(_) => return DocumentToken::Broken,
    };
    if first && byte_at(text, key_at) == Some(b'}') {
        return DocumentToken::End { next: key_at + 1 };
    }
    match pair(text, key_at) {
        Ok(found) => {
            let stored = rows.found(found.value, found.head.as_ref());
            rows.insert(Arc::from(&*found.key), stored);
            DocumentToken::Pair { next: found.next }
        }
        Err(step) => step,
    }
}

struct Pair<'a> {
    key: Cow<'a, str>,
    value: &'a str,
    /// Head of the row, if the value is an object.
    head: Option<RawHead<'a>>,
    next: usize,
}

fn pair(text: &str, at: usize) -> Result<Pair<'_>, DocumentToken> {
    let (BorrowedText(key), key_end) = match byte_at(text, at) {
        Some(b'"') => take::<BorrowedText<'_>>(text, at)?,
        None => return Err(DocumentToken::Short),
        Some(_) => return Err(DocumentToken::Broken),
    };
    let colon = skip_blank(text, key_end);
    match byte_at(text, colon) {
        Some(b':') => {}
        None => return Err(DocumentToken::Short),
        Some(_) => return Err(DocumentToken::Broken),
    }
    let value_at = skip_blank(text, colon + 1);
    let (head, end) = match byte_at(text, value_at) {
        Some(b'{') => take::<RawHead<'_>>(text, value_at).map(|(head, end)| (Some(head), end))?,
        Some(_) => take::<IgnoredAny>(text, value_at).map(|(_, end)| (None, end))?,
        None => return Err(DocumentToken::Short),
    };
    let next = skip_blank(text, end);
    match byte_at(text, next) {
        Some(b',' | b'}') => {}
        None => return Err(DocumentToken::Short),
        Some(_) => return Err(DocumentToken::Broken),
    }
    let value = text.get(value_at..end).ok_or(DocumentToken::Broken)?;
    Ok(Pair { key, value, head, next })
}

/// A text that is borrowed where it can be.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

fn take<'a, T: Deserialize<'a>>(text: &'a str, at: usize) -> Result<(T, usize), DocumentToken> {
    let mut values = serde_json::Deserializer::from_str(text.get(at..).unwrap_or_default()).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok((value, at + values.byte_offset())),
        Some(Err(error)) if !error.is_eof() => Err(DocumentToken::Broken),
        Some(Err(_)) | None => Err(DocumentToken::Short),
    }
}

fn byte_at(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn skip_blank(text: &str, at: usize) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| blank(byte)).count()
}

/// A file of plain JSON, a piece of it in memory at a time.
struct Stream<R> {
    source: R,
    /// Valid UTF-8 of the current piece.
    text: String,
    /// The beginning of a character that the next piece ends.
    cut: Vec<u8>,
    ended: bool,
}

/// Bytes read at once, unless a row is bigger.
const PIECE: usize = 256 * 1024;

impl<R: Read> Stream<R> {
    fn new(source: R) -> Self {
        Self { source, text: String::new(), cut: Vec::new(), ended: false }
    }

    /// The rows; nothing when the file is not plain JSON.
    fn rows(mut self) -> io::Result<Option<Rows>> {
        let mut rows = Rows::default();
        let mut at = 0;
        let mut first = true;
        loop {
            at = skip_blank(&self.text, at);
            match step(&self.text, at, first, &mut rows) {
                DocumentToken::Pair { next } => (at, first) = (next, false),
                DocumentToken::Short => {
                    if self.ended || !self.advance(at)? {
                        return Ok(None);
                    }
                    at = 0;
                }
                DocumentToken::End { next } => {
                    let is_whole = self.ends_blank(next)?;
                    return Ok(is_whole.then_some(rows));
                }
                DocumentToken::NoObject | DocumentToken::Broken => return Ok(None),
            }
        }
    }

    /// Drops the bytes that were read and reads on. Returns false if the next ones are not UTF-8.
    fn advance(&mut self, read: usize) -> io::Result<bool> {
        self.text.drain(..read);
        let want = PIECE.max(self.text.len());
        let mut piece = std::mem::take(&mut self.cut);
        piece.reserve(want);
        let got = self.source.by_ref().take(want as u64).read_to_end(&mut piece)?;
        self.ended = got < want;
        let valid = match std::str::from_utf8(&piece) {
            Ok(_) => piece.len(),
            Err(error) if error.error_len().is_none() && !self.ended => error.valid_up_to(),
            Err(_) => return Ok(false),
        };
        self.cut = piece.split_off(valid);
        match String::from_utf8(piece) {
            Ok(piece) if self.text.is_empty() => self.text = piece,
            Ok(piece) => self.text.push_str(&piece),
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    fn ends_blank(mut self, at: usize) -> io::Result<bool> {
        let mut at = at;
        while skip_blank(&self.text, at) == self.text.len() {
            if self.ended {
                return Ok(true);
            }
            if !self.advance(self.text.len())? {
                return Ok(false);
            }
            at = 0;
        }
        Ok(false)
    }
}

/// Writes rows as OpenClaw does: two spaces of indentation, no newline at the end. A row that was not changed is written
/// as it was read.
pub(crate) fn write(rows: &Rows, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(256 * 1024, out);
    out.write_all(b"{")?;
    for (at, (key, stored)) in rows.iter().enumerate() {
        out.write_all(if at == 0 { b"\n  " } else { b",\n  " })?;
        serde_json::to_writer(&mut out, &**key)?;
        out.write_all(b": ")?;
        stored.write(&mut out)?;
    }
    out.write_all(if rows.len() == 0 { b"}" } else { b"\n}" })?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(document: &SessionsDocument) -> String {
        let mut out = Vec::new();
        write(&document.rows, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const WHOLE: &str = "{\n  \"agent:main:main\": {\n    \"sessionId\": \"a\",\n    \"novel\": [],\n    \"updatedAt\": 5,\n    \"skillsSnapshot\": {\n      \"prompt\": \"é\",\n      \"skills\": [\n        {\n          \"name\": \"s\"\n        }\n      ]\n    }\n  },\n  \"odd\": null,\n  \"agent:main:x\": {}\n}";

    #[test]
    fn a_file_is_written_back_byte_for_byte() {
        for file in [WHOLE, "{}"] {
            let document = read(file.as_bytes());
            assert_eq!(document.damage, None);
            assert_eq!(text(&document), file);
        }
    }

    #[test]
    fn json5_is_read() {
        let document = read(b"// mine\n{ 'agent:main:main': {sessionId: 'a', updatedAt: 5,}, }");
        assert_eq!(document.damage, None);
        assert_eq!(
            text(&document),
            "{\n  \"agent:main:main\": {\n    \"sessionId\": \"a\",\n    \"updatedAt\": 5\n  }\n}"
        );
    }

    #[test]
    fn what_is_no_object_is_damage() {
        for file in
            ["[]", "5", "", "hello", "null", "\0\0\0", &"[".repeat(100_000), &"{\"a\":".repeat(100_000)]
        {
            let document = read(file.as_bytes());
            assert!(document.rows.len() == 0 && document.damage.is_some(), "{file:.20}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_rows_before_the_cut() {
        let whole = read(WHOLE.as_bytes());
        for cut in 0..WHOLE.len() {
            let document = read(&WHOLE.as_bytes()[..cut]);
            assert!(document.damage.is_some(), "{cut}");
            for (key, stored) in document.rows.iter() {
                assert_eq!(whole.rows.get(key), Some(stored), "{cut}");
            }
        }
        let most = read(&WHOLE.as_bytes()[..WHOLE.len() - 8]);
        assert_eq!(most.rows.len(), 2);
    }

    #[test]
    fn what_javascript_alone_can_read_does_not_cost_the_file_and_stays_as_it_is() {
        let file = "{\n  \"agent:main:a\": {\"sessionId\":\"a\",\"subject\":\"x\\ud83d\",\"label\":\"\\ud83d\"},\n  \
                    \"agent:main:b\": {\"sessionId\":\"b\",\"big\":1e999,\"inputTokens\":7}\n}";
        let document = read(file.as_bytes());
        assert_eq!((document.rows.len(), document.damage.clone()), (2, None));
        let entry = |key: &str| document.rows.row(key).unwrap().entry();
        assert_eq!(entry("agent:main:a").subject.as_deref(), Some("x"));
        assert_eq!(entry("agent:main:b").input_tokens, Some(7));
        assert_eq!(entry("agent:main:b").extra.get("big"), Some(&Value::Null));
        assert_eq!(text(&document), file);
    }

    #[test]
    fn foul_bytes_do_not_cost_the_file() {
        let document = read(b"{\"agent:main:a\":{\"subject\":\"\xff\"},\"agent:main:b\":{}}");
        assert_eq!((document.rows.len(), document.damage.clone()), (2, None));
        assert_eq!(document.rows.row("agent:main:a").unwrap().entry().subject.as_deref(), Some("\u{fffd}"));
    }

    #[test]
    fn rows_are_found_wherever_the_pieces_of_a_file_end() {
        /// Gives a few bytes at a time.
        struct Trickle<'a>(&'a [u8], usize);
        impl Read for Trickle<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let some = self.1.min(buffer.len()).min(self.0.len());
                let (now, later) = self.0.split_at(some);
                buffer[..some].copy_from_slice(now);
                self.0 = later;
                Ok(some)
            }
        }
        let rows: Vec<String> = (0..4_000)
            .map(|n| {
                format!("  \"agent:main:é{n}\": {{\n    \"subject\": \"{}\"\n  }}", "日本".repeat(n % 50))
            })
            .collect();
        let file = format!("{{\n{}\n}}", rows.join(",\n"));
        assert!(file.len() > 2 * PIECE);
        for step in [1_000, 4_097, usize::MAX] {
            let read = Stream::new(Trickle(file.as_bytes(), step)).rows().unwrap().unwrap();
            assert_eq!(text(&SessionsDocument { rows: read, damage: None }), file);
        }
        let big = format!("{{\"a\": {{\"x\": \"{}\"}},\n\"n\": 12}}", "y".repeat(3 * PIECE));
        assert_eq!(Stream::new(big.as_bytes()).rows().unwrap().unwrap().len(), 2);
    }

    #[test]
    fn rows_share_a_big_value_and_are_written_with_it() {
        let skills = format!("{{\n      \"prompt\": \"{}\"\n    }}", "p".repeat(BIG_ENOUGH));
        let row = |n: usize| {
            format!(
                "  \"agent:main:{n}\": {{\n    \"label\": \"l{n}\",\n    \"skillsSnapshot\": {skills},\n    \"updatedAt\": {n}\n  }}"
            )
        };
        let file = format!("{{\n{},\n{}\n}}", row(1), row(2));
        let mut document = read(file.as_bytes());
        assert_eq!(text(&document), file);
        let entry = |key: &str| document.rows.row(key).unwrap().entry();
        let (one, two) = (entry("agent:main:1"), entry("agent:main:2"));
        let shared = |entry: &crate::SessionEntry| entry.skills_snapshot.as_ref().unwrap().as_str().as_ptr();
        assert_eq!(shared(&one), shared(&two));
        assert_eq!(one.updated_at, Some(1));
        let again = document.rows.made(&two, None).unwrap();
        assert_eq!(Some(&again), document.rows.row("agent:main:2"));
        assert_eq!(shared(&again.entry()), shared(&two));
    }

    const BIG_ENOUGH: usize = 1_000;
}
