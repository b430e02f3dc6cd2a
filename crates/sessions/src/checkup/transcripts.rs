//! Transcripts: whether they can be read whole, and whether rows and files fit together.

use std::collections::HashSet;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use openclaw_config::shared_place;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{Finding, Premises, Repair, Severity, finding, such_as};
use crate::backup::Backup;
use crate::disk::{RealDisk, Temporary};
use crate::key::{SessionKey, legacy};
use crate::maintenance::{FileKind, StateFile};
use crate::store::on_disk::StoredRow;
use crate::store::read_rows;
use crate::time::iso;
use crate::transcript::format::{TranscriptHeader, VERSION};
use crate::transcript::scan::Lines;

/// Number of most recently used sessions whose transcripts must exist.
const RECENT: usize = 5;

pub(super) fn check(premises: &Premises, found: &mut Vec<Finding>) -> io::Result<()> {
    if !premises.is_configured {
        return Ok(());
    }
    for (store, agent) in premises.state.stores() {
        let Some(dir) = store.parent() else { continue };
        let files = crate::maintenance::list_files(dir)?;
        let transcripts: Vec<&StateFile> =
            files.iter().filter(|file| file.kind == FileKind::Transcript).collect();
        check_contents(premises, &transcripts, found)?;
        let key = |(stored, entry): StoredRow| {
            legacy::canonicalize(&stored, &agent, &premises.state.rules).ok().map(|key| (key, entry))
        };
        let rows: Vec<KeyedEntry> = read_rows(&store)?.into_iter().filter_map(key).collect();
        check_rows(premises, &rows, found)?;
        check_orphans(premises, dir, &files, &rows, found);
    }
    Ok(())
}

type KeyedEntry = (SessionKey, std::sync::Arc<crate::SessionEntry>);

/// Sessions that were used last and have no transcript; the main session's transcript with nothing in it.
fn check_rows(premises: &Premises, rows: &[KeyedEntry], found: &mut Vec<Finding>) -> io::Result<()> {
    let (layout, rules) = (&premises.state.layout, &premises.state.rules);
    let mut recent: Vec<&KeyedEntry> = rows.iter().filter(has_spoken).collect();
    recent.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.updated_at_ms()));
    recent.truncate(RECENT);
    let file_of = |(key, entry): &KeyedEntry| layout.find_transcript(&rules.agent_of(key), entry);
    let missing: Vec<&&KeyedEntry> = recent.iter().filter(|session| file_of(session).is_none()).collect();
    if !missing.is_empty() {
        let message = format!(
            "{}/{} recent sessions have no transcript, such as {}. Check for deleted session files or split state directories.",
            missing.len(),
            recent.len(),
            missing.first().map_or("", |(key, _)| key.as_str()),
        );
        found.push(finding("transcript.missing", Severity::Warning, message, Vec::new()));
    }
    let main = rows.iter().find(|(key, _)| *key == rules.main(&rules.default_agent));
    if let Some(session) = main.filter(has_spoken)
        && let Some(file) = file_of(session)
        && Contents::of(&file)?.lines <= 1
    {
        let message = format!(
            "The main session's transcript {} has at most one line: its history may not be written.",
            file.display()
        );
        found.push(finding("transcript.main-empty", Severity::Warning, message, Vec::new()));
    }
    Ok(())
}

/// True if a model has answered in a session: a row alone may come from a setting.
fn has_spoken((_, entry): &&KeyedEntry) -> bool {
    entry.total_tokens.or(entry.input_tokens).is_some_and(|count| count > 0)
}

/// Transcripts that no row uses: of conversations that were ended with `/new` or a reset, or of rows that were lost.
fn check_orphans(
    premises: &Premises,
    dir: &Path,
    files: &[StateFile],
    rows: &[KeyedEntry],
    found: &mut Vec<Finding>,
) {
    let (layout, rules) = (&premises.state.layout, &premises.state.rules);
    let all = crate::maintenance::Transcripts::of(files);
    let used: HashSet<PathBuf> =
        rows.iter().flat_map(|(key, entry)| all.of_entry(layout, rules, key, entry)).collect();
    let orphans: Vec<&StateFile> =
        files.iter().filter(|file| file.kind == FileKind::Transcript && !used.contains(&file.path)).collect();
    if orphans.is_empty() {
        return;
    }
    let bytes: u64 = orphans.iter().map(|file| file.bytes).sum();
    let paths: Vec<PathBuf> = orphans.iter().map(|file| file.path.clone()).collect();
    let list = such_as(&orphans, "transcript", |file| {
        file.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    });
    let message = format!(
        "Kept from earlier conversations, as /new and resets leave them: {list} ({} KiB in {}). \
         --archive-orphans renames what no session uses to *.deleted.<time>.",
        bytes.div_ceil(1024),
        dir.display(),
    );
    let repairs = if premises.archive_orphans { vec![Repair::Archive(paths)] } else { Vec::new() };
    found.push(finding("transcript.orphans", Severity::Info, message, repairs));
}

fn check_contents(premises: &Premises, files: &[&StateFile], found: &mut Vec<Finding>) -> io::Result<()> {
    let (mut headless, mut foul) = (Vec::new(), Vec::new());
    for file in files {
        let contents = match Contents::of(&file.path) {
            // The file went away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        let is_torn = contents.is_torn && !premises.is_running;
        // An empty file may be one that a run is just making.
        if !contents.has_header && (contents.lines + contents.foul > 0 || !premises.is_running) {
            headless.push(file.path.clone());
        } else if contents.foul > 0 || is_torn {
            foul.push((file.path.clone(), contents.foul + usize::from(is_torn)));
        }
    }
    if !headless.is_empty() {
        let list = such_as(&headless, "transcript", |path| path.display().to_string());
        let message = format!("Not readable, because the first line is no session header: {list}.");
        let repairs = headless.into_iter().map(Repair::MendTranscript).collect();
        found.push(finding("transcript.header", Severity::Error, message, repairs));
    }
    if !foul.is_empty() {
        let list =
            such_as(&foul, "transcript", |(path, lines)| format!("{} ({lines} line(s))", path.display()));
        let message = format!("With torn or malformed lines: {list}. The rest of them is used.");
        let repairs = foul.into_iter().map(|(path, _)| Repair::MendTranscript(path)).collect();
        found.push(finding("transcript.lines", Severity::Warning, message, repairs));
    }
    Ok(())
}

/// Contents of a transcript, found line by line.
struct Contents {
    /// True if the first readable line is a session header.
    has_header: bool,
    /// Readable lines.
    lines: usize,
    /// Complete lines that can't be read.
    foul: usize,
    /// True if the last line is cut off.
    is_torn: bool,
}

impl Contents {
    fn of(path: &Path) -> io::Result<Self> {
        let mut lines = Lines::new(BufReader::with_capacity(256 * 1024, shared_place::open(path)?), 0);
        let mut found = Self { has_header: false, lines: 0, foul: 0, is_torn: false };
        while let Some(line) = lines.advance()? {
            let bytes = lines.bytes();
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if !line.cut && is_object(bytes) {
                found.has_header |= found.lines == 0 && is_header(bytes);
                found.lines += 1;
            } else if line.ended {
                found.foul += 1;
            } else {
                found.is_torn = true;
            }
        }
        Ok(found)
    }
}

fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

fn is_header(line: &[u8]) -> bool {
    serde_json::from_slice::<TranscriptHeader>(line).is_ok()
}

/// Writes a transcript anew with the lines that can be read. A file without a header gets one, so
/// that its conversation is there again; an empty one is set aside. The file as it was is kept.
pub(super) fn mend(path: &Path, backup: &mut Backup, now: i64) -> io::Result<()> {
    let contents = Contents::of(path)?;
    if contents.lines == 0 {
        return backup.take(path);
    }
    backup.keep(path)?;
    let header = if contents.has_header { None } else { Some(made_header(path, now)?) };
    let temporary = Temporary::write(&RealDisk, path, |out| {
        let mut out = io::BufWriter::new(out);
        if let Some(header) = &header {
            writeln!(out, "{header}")?;
        }
        let mut lines = Lines::new(BufReader::new(shared_place::open(path)?), 0);
        while let Some(line) = lines.advance()? {
            // A header that stands behind entries is the one put before them.
            let is_second = header.is_some() && is_header(lines.bytes());
            if !line.cut && is_object(lines.bytes()) && !is_second {
                out.write_all(lines.bytes())?;
                out.write_all(b"\n")?;
            }
        }
        out.flush()
    })?;
    backup.step()?;
    temporary.persist(path)
}

/// The header that stands somewhere in the file, or one by what the entries say.
fn made_header(path: &Path, now: i64) -> io::Result<Value> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut lines = Lines::new(BufReader::new(shared_place::open(path)?), 0);
    let mut first: Option<Value> = None;
    while lines.advance()?.is_some() {
        if is_header(lines.bytes()) {
            return Ok(serde_json::from_slice(lines.bytes())?);
        }
        if first.is_none() && is_object(lines.bytes()) {
            first = serde_json::from_slice(lines.bytes()).ok();
        }
    }
    let first = first.unwrap_or_default();
    let timestamp = first.get("timestamp").and_then(Value::as_str).map_or_else(|| iso(now), str::to_owned);
    // Entries of the first version have no ids.
    let version = if first.get("id").is_some_and(Value::is_string) { VERSION } else { 1 };
    let id = crate::maintenance::session_of(name);
    Ok(json!({"type": "session", "version": version, "id": id, "timestamp": timestamp, "cwd": ""}))
}
