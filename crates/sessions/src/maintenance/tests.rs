//! Tables of plans, and each plan carried out on a real store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_protocol::{AgentId, SessionId};

use super::files::{TranscriptRow, inventory};
use super::*;
use crate::entry::SessionEntry;
use crate::key::{KeyRules, SessionKey};
use crate::layout::Layout;
use crate::store::{FileStore, FileStoreOptions, Row, SessionStore};
use crate::time::iso;

const NOW: i64 = 1_770_631_932_123;
const DAY: i64 = 86_400_000;

fn policy() -> Policy {
    Policy {
        mode: Mode::Enforce,
        prune_after_ms: Some(30 * 86_400_000),
        max_entries: 500,
        rotate_bytes: None,
        archive_retention_ms: Some(30 * 86_400_000),
        disk: None,
    }
}

fn row(name: &str, days: i64, stays: bool) -> SessionRow {
    SessionRow {
        key: SessionKey::parse(&format!("agent:main:{name}")).unwrap(),
        updated_at: NOW - days * DAY,
        stays,
        transcripts: vec![PathBuf::from(format!("/s/{name}.jsonl"))],
    }
}

fn file(name: &str, bytes: u64, days: i64) -> StateFile {
    let (kind, _) = FileKind::of(name);
    StateFile { path: PathBuf::from(format!("/s/{name}")), kind, bytes, since: NOW - days * DAY }
}

fn summary(plan: &MaintenancePlan) -> (Vec<String>, Vec<String>) {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let removed = plan.remove.iter().map(|removal| format!("{} {:?}", removal.key.rest(), removal.reason));
    let deleted =
        plan.delete.iter().map(|deletion| format!("{} {:?}", name(&deletion.path), deletion.reason));
    (removed.collect(), deleted.collect())
}

#[test]
fn names_tell_what_a_file_is() {
    let at = Some(1_770_631_932_123);
    let rows = [
        ("a.jsonl", FileKind::Transcript, None),
        ("a-topic-7.jsonl", FileKind::Transcript, None),
        ("a.jsonl.deleted.2026-02-09T10-12-12.123Z", FileKind::Archive, at),
        ("a.jsonl.reset.2026-02-09T10-12-12.123Z", FileKind::Archive, at),
        ("a.jsonl.deleted.some day", FileKind::Archive, None),
        ("a.jsonl.bak.2026-02-09T10-12-12.123Z", FileKind::Backup, at),
        ("a.jsonl.bak-12-1770631932123", FileKind::Backup, None),
        ("a.jsonl.lock", FileKind::Other, None),
        ("sessions.json", FileKind::Other, None),
        ("sessions.json.journal.1", FileKind::Other, None),
    ];
    for (name, kind, since) in rows {
        assert_eq!(FileKind::of(name), (kind, since), "{name}");
    }
}

/// The rows that `sessions.md` §3.5 exempts.
#[test]
fn special_rows_stay() {
    let rows = [
        ("global", "", false, true),
        ("unknown", "", false, true),
        ("agent:main:main", "", false, true),
        ("agent:ops:main", "", false, true),
        ("agent:main:x", "l", false, true),
        ("agent:main:x", " ", false, false),
        ("agent:main:x", "", true, true),
        ("agent:main:x", "", false, false),
    ];
    let layout = Layout::new("/s", "/h", None);
    for (key, label, is_busy, stays) in rows {
        let label = Some(label).filter(|label| !label.is_empty()).map(Box::from);
        let entry = SessionEntry { label, ..SessionEntry::new(SessionId::new("s"), NOW) };
        let row = Row { key: SessionKey::parse(key).unwrap(), entry: Arc::new(entry) };
        let listed = TranscriptRow::of(&layout, &KeyRules::default(), &row, is_busy);
        let found = inventory(Path::new("/nowhere"), vec![listed]).unwrap();
        assert_eq!(found.rows[0].stays, stays, "{row:?} {is_busy}");
    }
}

#[test]
fn old_rows_go_and_then_the_oldest_beyond_the_cap() {
    let rows = vec![
        row("fresh", 1, false),
        row("week", 7, false),
        row("month", 30, false),
        row("old", 31, false),
        row("older", 99, false),
        row("labelled", 99, true),
        row("main", 400, true),
        row("tomorrow", -1, false),
    ];
    let cases: &[(Option<u64>, usize, &[&str])] = &[
        (Some(30), 500, &["older TooOld", "old TooOld"]),
        (None, 500, &[]),
        (None, 6, &["older TooMany", "old TooMany"]),
        (Some(30), 4, &["older TooOld", "old TooOld", "month TooMany", "week TooMany"]),
        // Rows that stay count, but nothing can be done about them.
        (
            None,
            1,
            &[
                "older TooMany",
                "old TooMany",
                "month TooMany",
                "week TooMany",
                "fresh TooMany",
                "tomorrow TooMany",
            ],
        ),
    ];
    for (days, cap, expect) in cases {
        let policy =
            Policy { prune_after_ms: days.map(|days| days * 86_400_000), max_entries: *cap, ..policy() };
        let found = Inventory { rows: rows.clone(), files: Vec::new() };
        let (removed, deleted) = summary(&plan(&found, &policy, NOW));
        assert_eq!((removed, deleted.len()), (each(expect, str::to_owned), 0), "{days:?} {cap}");
    }
}

fn each(texts: &[&str], with: impl Fn(&str) -> String) -> Vec<String> {
    texts.iter().map(|text| with(text)).collect()
}

#[test]
fn archives_expire_and_nothing_else_does() {
    let found = Inventory {
        rows: Vec::new(),
        files: vec![
            file("a.jsonl.deleted.x", 5, 31),
            file("b.jsonl.reset.x", 5, 31),
            file("c.jsonl.deleted.x", 5, 29),
            file("d.jsonl", 5, 300),
            file("e.jsonl.bak-1-1", 5, 300),
            file("sessions.json", 5, 300),
        ],
    };
    let expect = ["a.jsonl.deleted.x TooOld", "b.jsonl.reset.x TooOld"];
    assert_eq!(summary(&plan(&found, &policy(), NOW)).1, expect);
    let forever = Policy { archive_retention_ms: None, ..policy() };
    assert_eq!(plan(&found, &forever, NOW), MaintenancePlan::default());
}

#[test]
fn a_directory_that_is_too_big_loses_archives_then_unused_transcripts_then_rows() {
    let found = Inventory {
        rows: vec![row("one", 9, false), row("two", 8, false), row("main", 99, true)],
        files: vec![
            file("one.jsonl", 100, 9),
            file("two.jsonl", 100, 8),
            file("main.jsonl", 100, 99),
            file("sessions.json", 100, 0),
            file("gone.jsonl", 100, 40),
            file("just.jsonl", 100, 0),
            file("a.jsonl.deleted.x", 100, 5),
            file("b.jsonl.bak.x", 100, 6),
        ],
    };
    /// Limit in bytes, target in bytes, rows that go, files that go, and whether the directory is
    /// too big even then.
    type Case<'a> = (u64, u64, &'a [&'a str], &'a [&'a str], bool);
    let cases: &[Case<'_>] = &[
        (800, 100, &[], &[], false),
        (799, 700, &[], &["b.jsonl.bak.x"], false),
        (700, 600, &[], &["b.jsonl.bak.x", "a.jsonl.deleted.x"], false),
        (600, 500, &[], &["b.jsonl.bak.x", "a.jsonl.deleted.x", "gone.jsonl"], false),
        (500, 400, &["one"], &["b.jsonl.bak.x", "a.jsonl.deleted.x", "gone.jsonl", "one.jsonl"], false),
        // The main session, the store and a transcript that has just come stay.
        (
            50,
            40,
            &["one", "two"],
            &["b.jsonl.bak.x", "a.jsonl.deleted.x", "gone.jsonl", "one.jsonl", "two.jsonl"],
            true,
        ),
    ];
    for (most, target, rows, files, too_big) in cases {
        let policy = Policy { disk: Some(DiskBudget { most: *most, target: *target }), ..policy() };
        let plan = plan(&found, &policy, NOW);
        let (removed, deleted) = summary(&plan);
        let expect =
            (each(rows, |row| format!("{row} TooBig")), each(files, |file| format!("{file} TooBig")));
        assert_eq!(((removed, deleted), plan.still_too_big), (expect, *too_big), "{most}");
    }
}

#[test]
fn a_transcript_that_another_row_uses_stays() {
    let shared = |name: &str, days: i64| SessionRow {
        transcripts: vec![PathBuf::from("/s/shared.jsonl")],
        ..row(name, days, false)
    };
    let found =
        Inventory { rows: vec![shared("a", 40), shared("b", 5)], files: vec![file("shared.jsonl", 9, 5)] };
    let planned = plan(&found, &policy(), NOW);
    assert_eq!(planned.remove.len(), 1);
    assert!(planned.remove[0].archive.is_empty(), "{planned:?}");
    let found = Inventory { rows: vec![shared("a", 40), shared("b", 41)], ..found };
    let archived: usize =
        plan(&found, &policy(), NOW).remove.iter().map(|removal| removal.archive.len()).sum();
    assert_eq!(archived, 1, "once");
}

proptest::proptest! {
    #[test]
    fn whatever_the_policy_what_must_stay_stays(
        rows in proptest::collection::vec((0..200_i64, proptest::bool::ANY, 0..1000_u64), 0..30),
        cap in 1..20_usize, days in 1..100_u64, most in 0..5000_u64,
    ) {
        let mut found = Inventory::default();
        for (n, (age, stays, bytes)) in rows.iter().enumerate() {
            found.rows.push(row(&format!("s{n}"), *age, *stays));
            found.files.push(file(&format!("s{n}.jsonl"), *bytes, *age));
        }
        let policy = Policy {
            prune_after_ms: Some(days * 86_400_000), max_entries: cap,
            disk: Some(DiskBudget { most, target: most / 5 * 4 }), ..policy()
        };
        let planned = plan(&found, &policy, NOW);
        let kept: Vec<&SessionRow> =
            found.rows.iter().filter(|row| !planned.remove.iter().any(|gone| gone.key == row.key)).collect();
        for row in found.rows.iter().filter(|row| row.stays) {
            proptest::prop_assert!(kept.contains(&row));
        }
        for transcript in kept.iter().flat_map(|row| &row.transcripts) {
            proptest::prop_assert!(!planned.delete.iter().any(|gone| gone.path == *transcript));
        }
        proptest::prop_assert!(kept.len() <= cap || kept.iter().all(|row| row.stays));
        let gone: u64 = planned.delete.iter().map(|deletion| deletion.bytes).sum();
        let total: u64 = found.files.iter().map(|file| file.bytes).sum();
        proptest::prop_assert!(planned.still_too_big || total - gone <= most);
    }
}

/// A real store with an old session, a fresh one, a busy old one and the main one.
struct Scene {
    _dir: tempfile::TempDir,
    work: MaintenanceJob,
    sessions: PathBuf,
}

impl Scene {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path(), dir.path(), None);
        let agents = vec![AgentId::default()];
        let options = FileStoreOptions::new(layout.clone(), KeyRules::default(), agents.clone());
        let store: Arc<dyn SessionStore> = Arc::new(FileStore::open(options).unwrap());
        let sessions = layout.sessions_dir(&AgentId::default());
        for (name, days) in [("old", 40), ("fresh", 1), ("busy", 41), ("main", 42)] {
            let key = SessionKey::parse(&format!("agent:main:{name}")).unwrap();
            let made = SessionEntry::new(SessionId::new(name), NOW - days * DAY);
            let change = Box::new(move |edit: crate::store::Edit<'_>| {
                *edit.entry = made;
                Ok(())
            });
            store.update(&key, change).await.unwrap();
            std::fs::write(sessions.join(format!("{name}.jsonl")), name).unwrap();
        }
        std::fs::write(sessions.join("old-topic-5.jsonl"), "topic").unwrap();
        let archive = format!("x.jsonl.deleted.{}", iso(NOW - 50 * DAY).replace(':', "-"));
        std::fs::write(sessions.join(archive), "x").unwrap();
        let is_busy = Arc::new(|key: &SessionKey| key.rest() == "busy");
        Self { work: MaintenanceJob { store, layout, agents, is_busy }, sessions, _dir: dir }
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.sessions).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.contains(".jsonl") || name.contains(".bak."));
        names.sort();
        names
    }

    async fn keys(&self) -> Vec<String> {
        let rows = self.work.store.rows(crate::store::Rows::All).await.unwrap();
        let mut keys: Vec<String> = rows.iter().map(|row| row.key.rest().to_owned()).collect();
        keys.sort();
        keys
    }
}

#[tokio::test]
async fn warning_changes_nothing() {
    let scene = Scene::new().await;
    let before = scene.names();
    let report = run(&scene.work, &Policy { mode: Mode::Warn, ..policy() }, NOW).await.unwrap();
    assert_eq!((report, scene.names()), (MaintenanceReport::default(), before));
    assert_eq!(scene.keys().await, ["busy", "fresh", "main", "old"]);
}

#[tokio::test]
async fn enforcing_removes_archives_and_keeps_a_copy_of_a_big_store() {
    let scene = Scene::new().await;
    for n in 1..=3 {
        std::fs::write(scene.sessions.join(format!("sessions.json.bak.{n}")), "").unwrap();
    }
    let policy = Policy { rotate_bytes: Some(10), ..policy() };
    let report = run(&scene.work, &policy, NOW).await.unwrap();
    assert_eq!(report, MaintenanceReport { removed: 1, archived: 2, deleted: 1, freed: 1 });
    let stamp = iso(NOW).replace(':', "-");
    let expect = [
        "busy.jsonl".to_owned(),
        "fresh.jsonl".to_owned(),
        "main.jsonl".to_owned(),
        format!("old-topic-5.jsonl.deleted.{stamp}"),
        format!("old.jsonl.deleted.{stamp}"),
        format!("sessions.json.bak.{NOW}"),
        "sessions.json.bak.2".to_owned(),
        "sessions.json.bak.3".to_owned(),
    ];
    assert_eq!(scene.names(), expect);
    assert_eq!(scene.keys().await, ["busy", "fresh", "main"]);
    let again = run(&scene.work, &policy, NOW).await.unwrap();
    assert_eq!(again, MaintenanceReport::default());
    let later = run(&scene.work, &policy, NOW + 31 * DAY).await.unwrap();
    assert_eq!((later.removed, later.deleted), (1, 2), "the fresh session is old now, the archives expire");
}

#[tokio::test]
async fn a_session_whose_transcript_is_in_use_stays() {
    let scene = Scene::new().await;
    let _held = crate::transcript::testing::lock(&scene.sessions.join("old.jsonl")).await.unwrap();
    let report = run(&scene.work, &policy(), NOW).await.unwrap();
    assert_eq!((report.removed, report.deleted), (0, 1));
    assert!(scene.keys().await.contains(&"old".to_owned()));
    assert!(scene.sessions.join("old-topic-5.jsonl").exists());
}
