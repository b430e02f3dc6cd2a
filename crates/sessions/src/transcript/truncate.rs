//! `sessions.compact`: cutting a transcript down to its last lines (spec `sessions.md` §7,
//! `gateway-protocol.md` KB-13). No model is asked. The header stays; the remaining entries have a
//! root of their own and begin with a person's message.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::TranscriptError;
use super::index::Kind;
use super::open::{OpenTranscript, free_name};
use super::rewrite::Copy;
use super::storage::{TranscriptLogs, TranscriptRef};
use crate::layout::{ArchiveReason, archive_path};

/// `sessions.compact`'s default `maxLines`.
pub const DEFAULT_MAX_LINES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(399);

/// Outcome of cutting a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinesCompacted {
    /// Entries it has now, the header not counted.
    pub kept: usize,
    /// The copy of what it was, `<file>.bak.<ISO time>`; nothing when there was nothing to cut.
    pub archived: Option<String>,
}

/// Cuts a transcript down to at most `max_lines` entries of its current branch, at once or not at all. The cut is made
/// where a person's message begins a turn, so that no tool call loses its result; a last turn that is longer than
/// `max_lines` stays whole. The last compaction summary and the session's name stay whatever their age. Other branches and
/// malformed lines are in the copy alone. Blocking, under the write lock.
///
/// # Errors
/// When it can't be read or written; it is as it was then.
pub(super) fn truncate(
    logs: &Arc<dyn TranscriptLogs>,
    transcript: &TranscriptRef,
    max_lines: NonZeroUsize,
) -> Result<LinesCompacted, TranscriptError> {
    let max_lines = max_lines.get();
    let mut source = OpenTranscript::open(logs, transcript)?;
    source.bring_up_to_date()?;
    let branch = source.branch_pieces()?;
    let plan = plan(&branch.iter().map(|piece| piece.kind).collect::<Vec<_>>(), max_lines);
    let kept = plan.carried.len() + branch.len() - plan.from;
    let count = source.count()?;
    if count <= max_lines || count == kept {
        return Ok(LinesCompacted { kept: count, archived: None });
    }
    let staying: Vec<usize> = plan.carried.iter().copied().chain(plan.from..branch.len()).collect();
    let copy = Copy { header: source.header(), branch: &branch, kept: &staying, more: Vec::new() };
    let archive = |ms| TranscriptRef::new(archive_path(transcript.path(), ArchiveReason::Backup, ms));
    let cut = free_name(&**logs, archive).and_then(|archived| {
        logs.replace(transcript, Some(&archived), &mut |out| copy.write(&source, out))?;
        Ok(archived)
    });
    let archived = cut.map_err(|source| TranscriptError::io("cut", transcript, source))?;
    tracing::info!(file = %transcript, %archived, kept, "cut a transcript down to its last lines");
    Ok(LinesCompacted { kept, archived: Some(archived.to_string()) })
}

/// Entries of a branch that stay, as positions on it.
#[derive(Debug, PartialEq, Eq)]
struct TruncationPlan {
    /// Entries from before the cut that stay.
    carried: Vec<usize>,
    /// First position that stays.
    from: usize,
}

fn plan(branch: &[Kind], max_lines: usize) -> TruncationPlan {
    let everything = TruncationPlan { carried: Vec::new(), from: 0 };
    if branch.len() <= max_lines {
        return everything;
    }
    // Carried entries take lines as well; there are at most two.
    for room in (max_lines.saturating_sub(2)..=max_lines).rev() {
        let plan = cut(branch, room.max(1));
        if plan.carried.len() + branch.len() - plan.from <= max_lines {
            return plan;
        }
    }
    cut(branch, 1)
}

/// The cut that leaves at most `room` entries after it, or else the last one there is.
fn cut(branch: &[Kind], room: usize) -> TruncationPlan {
    let starts = |at: &usize| branch.get(*at) == Some(&Kind::User);
    let earliest = branch.len().saturating_sub(room);
    let from =
        (earliest..branch.len()).find(starts).or_else(|| (0..earliest).rev().find(starts)).unwrap_or(0);
    let before = branch.get(..from).unwrap_or_default();
    let last = |wanted: Kind| before.iter().rposition(|kind| *kind == wanted);
    // A later compaction replaces an earlier one's summary.
    let later = branch.iter().skip(from).any(|kind| *kind == Kind::Compaction);
    let summary = last(Kind::Compaction).filter(|_| !later);
    let named_later = branch.iter().skip(from).any(|kind| *kind == Kind::SessionInfo);
    let name = last(Kind::SessionInfo).filter(|_| !named_later);
    let mut carried: Vec<usize> = summary.into_iter().chain(name).collect();
    carried.sort_unstable();
    TruncationPlan { carried, from }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::transcript::Body;
    use crate::transcript::files::FileLogs;

    /// `u`: user, `a`: assistant, `r`: tool result, `C`: compaction, `n`: session name, `m`: settings.
    fn kinds(branch: &str) -> Vec<Kind> {
        let kind = |c| match c {
            'u' => Kind::User,
            'a' => Kind::Assistant,
            'r' => Kind::ToolResult,
            'C' => Kind::Compaction,
            'n' => Kind::SessionInfo,
            _ => Kind::ModelChange,
        };
        branch.chars().map(kind).collect()
    }

    #[test]
    fn the_cut_is_where_a_person_speaks() {
        let rows: &[(&str, usize, &[usize], usize)] = &[
            ("", 3, &[], 0),
            ("mua", 3, &[], 0),
            ("mmmuaua", 4, &[], 3),
            ("mmmuaua", 3, &[], 5),
            ("mmmuaua", 1, &[], 5),
            ("muararara", 3, &[], 1),
            ("aaaa", 2, &[], 0),
            ("uaCuaua", 5, &[2], 3),
            ("uaCuaua", 4, &[2], 5),
            ("uaCuaua", 1, &[2], 5),
            ("nuauCaua", 6, &[0], 3),
            ("nuaCuaua", 5, &[0, 3], 6),
            ("nuanuaua", 5, &[3], 4),
        ];
        for (branch, max, carried, from) in rows {
            let plan = plan(&kinds(branch), *max);
            assert_eq!((plan.carried.as_slice(), plan.from), (*carried, *from), "{branch} {max}");
        }
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn entry(id: &str, parent: Option<&str>, rest: &Value) -> String {
        let mut entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t"});
        entry.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        format!("{entry}\n")
    }

    fn said(role: &str, text: &str) -> Value {
        json!({"message": {"role": role, "content": text, "timestamp": 1}, "ours": {"b": 1, "a": 2}})
    }

    fn answer(text: &str) -> Value {
        json!({"message": {"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": 1}})
    }

    fn compact(path: &Path, max: usize) -> LinesCompacted {
        let logs: Arc<dyn TranscriptLogs> = Arc::new(FileLogs::default());
        truncate(&logs, &TranscriptRef::new(path), NonZeroUsize::new(max).unwrap()).unwrap()
    }

    #[test]
    fn what_is_left_has_a_root_and_the_old_file_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let header =
            "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\",\"x\":1}\n";
        let text = [
            header.to_owned(),
            entry("u1", None, &said("user", "one")),
            entry("a1", Some("u1"), &answer("1")),
            "garbage\n".to_owned(),
            entry("u2", Some("a1"), &said("user", "two")),
            entry("left", Some("u2"), &answer("left")),
            entry("a2", Some("u2"), &answer("2")),
            entry(
                "c",
                Some("a2"),
                &json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "a1", "tokensBefore": 5}),
            ),
            entry("u3", Some("c"), &said("user", "three")),
        ]
        .concat();
        std::fs::write(&path, &text).unwrap();
        let mut held = OpenTranscript::open_file(&path).unwrap();

        let done = compact(&path, 4);
        let archived = done.archived.unwrap();
        assert_eq!(done.kept, 4);
        assert_eq!(std::fs::read_to_string(&archived).unwrap(), text);
        let name = archived.rsplit_once('/').unwrap().1;
        assert!(name.starts_with("s.jsonl.bak.2") && name.ends_with('Z') && !name.contains(':'), "{name}");
        let now = lines(&path);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().next(), header.lines().next());
        let links: Vec<_> =
            now[1..].iter().map(|line| (line["id"].as_str(), line["parentId"].as_str())).collect();
        let expect =
            [(Some("u2"), None), (Some("a2"), Some("u2")), (Some("c"), Some("a2")), (Some("u3"), Some("c"))];
        assert_eq!(links, expect);
        assert_eq!(now[1]["ours"], json!({"b": 1, "a": 2}));
        // The entries that the compaction kept are gone: it keeps those that are left.
        assert_eq!(now[3]["firstKeptEntryId"], "u2");
        let context = OpenTranscript::open_file(&path).unwrap().context().unwrap();
        assert_eq!(context.messages.len(), 4);

        // A handle that has the file open goes on in the new one.
        held.refresh().unwrap();
        held.append(Body::SessionInfo { name: Some("n".into()) }, None).unwrap();
        assert_eq!(lines(&path)[5]["parentId"], "u3");
        assert_eq!(std::fs::read_to_string(&archived).unwrap(), text);

        assert_eq!(compact(&path, 400), LinesCompacted { kept: 5, archived: None });
        assert!(!crate::disk::beside(&path, "lock").exists());
    }

    #[test]
    fn cutting_again_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";
        let compaction =
            json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "a1", "tokensBefore": 5});
        let text = [
            header.to_owned(),
            entry("u1", None, &said("user", "one")),
            entry("n", Some("u1"), &json!({"type": "session_info", "name": "N"})),
            entry("c", Some("n"), &compaction),
            entry("u2", Some("c"), &said("user", "two")),
            entry("a2", Some("u2"), &answer("2")),
        ]
        .concat();
        std::fs::write(&path, text).unwrap();
        let done = compact(&path, 1);
        assert!(done.archived.is_some());
        let after = std::fs::read_to_string(&path).unwrap();
        let ids: Vec<Value> = lines(&path).into_iter().map(|mut line| line["id"].take()).collect();
        assert_eq!(ids, ["s", "n", "c", "u2", "a2"]);
        let context = OpenTranscript::open_file(&path).unwrap().context().unwrap();
        assert_eq!(context.messages.len(), 3);
        assert_eq!(compact(&path, 1), LinesCompacted { kept: 4, archived: None });
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
    }

    #[test]
    fn a_file_of_the_first_version_is_cut_as_well() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let line = |text: &str| {
            format!(
                "{{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":1}}}}\n"
            )
        };
        let text = "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n".to_owned()
            + &line("one")
            + &line("two");
        std::fs::write(&path, text).unwrap();
        assert_eq!(compact(&path, 1).kept, 1);
        let now = lines(&path);
        assert_eq!((now.len(), &now[0]["version"], &now[1]["parentId"]), (2, &json!(3), &Value::Null));
        assert_eq!(now[1]["message"]["content"], "two");
    }
}
