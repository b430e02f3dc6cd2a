use std::path::Path;

use openclaw_channels::Part;
use rusqlite::params;

use super::testing::{by_hand, opened, run_sql};
use super::*;
use crate::api::{RunOutcome, RunRecord};
use crate::delivery::Author;
use crate::inbox::{Insert, KnownRun};
use crate::journal::rows::{JournalRows as _, Open};
use crate::journal::{CommitDurability, contract};
use openclaw_protocol::RunId;

/// Makes changes, and takes some messages for changes with a flaw.
fn flawed(rows: &SqliteRows<'_>, change: &JournalChange) -> Result<Changed, JournalError> {
    let done = writer::apply(rows, change)?;
    let JournalChange::Accept(row, _) = change else { return Ok(done) };
    match row.run_id.as_str() {
        "fails" => Err(JournalError::Storage("a later step failed".to_owned())),
        "panics" => panic!("a bug"),
        "reads" => {
            Ok(rows.db.query_row("SELECT sum(length(payload)) FROM inbox", [], |_| Ok(())).map(|()| done)?)
        }
        _ => Ok(done),
    }
}

fn insert(db: &Connection, run: &str, bytes: usize) -> Result<(), JournalError> {
    db.execute(
        "INSERT INTO inbox (run_id, kind, session_key, payload, accepted_at, entry_id, fresh_id, state)
         VALUES (?1, 'chat', 'agent:main:main', ?2, 1, 'e', 'f', 'accepted')",
        params![run, "x".repeat(bytes)],
    )?;
    Ok(())
}

/// Adds a message of so many bytes.
async fn add_big(journal: &SqliteJournal, run: &str, bytes: usize) -> Result<Insert, JournalError> {
    let row = contract::stored(contract::chat(run, &"x".repeat(bytes))).await;
    journal.reserve().await?(row, CommitDurability::Synced).await
}

async fn add(journal: &SqliteJournal, run: &str) -> Result<Insert, JournalError> {
    add_big(journal, run, 10).await
}

/// Has the calls of every journal.
fn any(journal: &SqliteJournal) -> &dyn Journal {
    journal
}

/// Reads every row, as the look for unfinished messages does.
fn runs(db: &Connection) -> Result<Vec<String>, JournalError> {
    let mut statement =
        db.prepare("SELECT run_id, payload FROM inbox WHERE state = 'accepted' ORDER BY seq")?;
    let rows = statement.query_map([], |row| {
        row.get::<_, Option<String>>(1)?;
        row.get(0)
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn all_runs(db: &Connection) -> Result<Vec<String>, JournalError> {
    let mut statement = db.prepare("SELECT run_id FROM inbox ORDER BY seq")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn open(dir: &Path) -> Result<(SqliteJournal, Vec<String>), JournalError> {
    SqliteJournal::open_with(dir, flawed, runs)
}

/// Returns the names of files in the directory that were set aside.
fn aside(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.contains(".damaged-") && !name.ends_with("-shm")).collect();
    names.sort();
    names
}

fn version(dir: &Path) -> i64 {
    let db = Connection::open(dir.join(FILE_NAME)).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_row_whose_session_cannot_be_read_stays_and_holds_up_no_other() {
    let dir = tempfile::tempdir().unwrap();
    opened(dir.path()).unwrap().close().await;
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    for run in ["bad", "good"] {
        insert(&db, run, 10).unwrap();
    }
    db.execute_batch(
        r#"UPDATE inbox SET payload = '{"kind":"chat","text":"hi"}'; UPDATE inbox SET session_key = 'agent:' WHERE run_id = 'bad'"#,
    )
    .unwrap();
    let rows = SqliteRows { db: &db, refused: &RefusedRuns::default() };
    let (found, _) = rules::recover(&rows, 1).unwrap();
    assert_eq!(found.iter().map(|found| found.row.run_id.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(runs(&db).unwrap(), ["bad", "good"]);
}

/// The version of the schema.
fn known() -> i64 {
    i64::try_from(file::MIGRATIONS.len()).unwrap()
}

#[tokio::test]
async fn an_older_database_is_brought_up_to_date_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(file::MIGRATIONS[0]).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    for run in ["run-1", "run-2"] {
        insert(&db, run, 10).unwrap();
    }
    db.execute("UPDATE inbox SET state = 'finished', ended_at = 9 WHERE run_id = 'run-1'", []).unwrap();
    drop(db);
    let (journal, found) = open(dir.path()).unwrap();
    assert_eq!(found, ["run-2"]);
    assert_eq!(by_hand(&journal, all_runs).await.unwrap(), ["run-1", "run-2"]);
    let waiting =
        by_hand(&journal, |db| SqliteRows { db, refused: &RefusedRuns::default() }.count(Open::Deliveries));
    assert_eq!(waiting.await, Ok(0));
    journal.close().await;
    assert_eq!(version(dir.path()), known());
}

/// Makes a database as the version before unique ids left it, with an event that was answered and
/// one that waits.
fn with_former_arrivals(path: &Path) {
    const BEFORE: usize = 11;
    let db = Connection::open(path).unwrap();
    file::MIGRATIONS.iter().take(BEFORE).try_for_each(|step| db.execute_batch(step)).unwrap();
    db.pragma_update(None, "user_version", BEFORE).unwrap();
    db.execute_batch(&format!(
        "INSERT INTO arrivals (seq, channel, account, native_id, message_id, target, received_at, fate, run_id,
                decided_at, again, said_at)
            VALUES (7, 'telegram', 'default', 'update:1000', '11', '5', 600, 'run', 'run-1', {}, 2, 500);
         INSERT INTO arrivals (seq, channel, account, native_id, message_id, target, received_at, payload)
            VALUES (8, 'telegram', 'default', 'update:1001', '12', '5', 601, '{{}}');",
        openclaw_sessions::time::now_ms()
    ))
    .unwrap();
}

/// Rows as [`with_former_arrivals`] left them, by number.
fn former_arrivals(db: &Connection) -> Result<Vec<(i64, String, u32)>, JournalError> {
    let mut statement = db.prepare("SELECT seq, identity, again FROM arrivals ORDER BY seq")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[tokio::test]
async fn what_an_older_version_answered_is_known_after_the_update_and_numbers_go_on() {
    use crate::arrival::{ArrivalInsert, NewArrival};
    let dir = tempfile::tempdir().unwrap();
    with_former_arrivals(&dir.path().join(FILE_NAME));
    let (journal, _) = open(dir.path()).unwrap();
    let expect = |again| {
        let row = |seq: i64, id: i64, again: u32| (seq, format!("telegram\ndefault\nupdate:{id}"), again);
        vec![row(7, 1000, again), row(8, 1001, 0)]
    };
    assert_eq!(by_hand(&journal, former_arrivals).await, Ok(expect(2)));
    assert_eq!(any(&journal).waiting_arrivals(0, 10).await.unwrap().len(), 1);
    let brought = |id: i64, message: i64| NewArrival {
        event: serde_json::from_value(serde_json::json!({
            "nativeId": format!("update:{id}"), "uniqueId": format!("7000:update:{id}:5:{message}:1"),
            "address": {"channel": "telegram", "account": "default", "target": "5", "thread": null},
            "conversation": {"kind": "direct"}, "sender": {"id": "5"}, "at": 500,
            "event": {"kind": "message", "messageId": message.to_string(), "text": "hi"},
        }))
        .unwrap(),
        received_at: 800,
        fate: None,
    };
    let came = any(&journal).arrive(vec![brought(1000, 11), brought(1000, 900), brought(1002, 13)]).await;
    assert_eq!(
        came,
        Ok(Some(vec![ArrivalInsert::Known, ArrivalInsert::New(9), ArrivalInsert::New(10)])),
        "of the same number, that which is about the same message"
    );
    assert_eq!(by_hand(&journal, former_arrivals).await.unwrap()[..2], expect(3));
}

/// Checks that of an older version's deliveries only questions about commands are known to be the
/// gateway's.
#[tokio::test]
async fn questions_that_an_older_version_asked_are_the_gateways() {
    const BEFORE: usize = 13;
    let dir = tempfile::tempdir().unwrap();
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    file::MIGRATIONS.iter().take(BEFORE).try_for_each(|step| db.execute_batch(step)).unwrap();
    db.pragma_update(None, "user_version", BEFORE).unwrap();
    for (id, message) in [("approval:x:asked:1", 501), ("approval:x:settled:1", 502), ("run-1:1", 503)] {
        let receipt = format!(r#"{{"messageIds":["{message}"]}}"#);
        db.execute(
            "INSERT INTO outbox (id, kind, channel, account, target, accepted_at, state, receipt, ended_at)
             VALUES (?1, 'part', 'telegram', 'default', '5', 1, 'sent', ?2, ?3)",
            rusqlite::params![id, receipt, openclaw_sessions::time::now_ms()],
        )
        .unwrap();
    }
    drop(db);
    let (journal, _) = open(dir.path()).unwrap();
    for (message, expect) in [("501", Author::Gateway), ("502", Author::Other), ("503", Author::Other)] {
        let sent = any(&journal).sent_messages("telegram", message).await.unwrap();
        assert_eq!(sent.into_iter().map(|sent| sent.author).collect::<Vec<_>>(), [expect], "{message}");
    }
}

#[tokio::test]
async fn events_of_an_older_version_are_taken_over_from_a_damaged_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    with_former_arrivals(&path);
    let renewed =
        crate::journal::sqlite::renew_database(&path, || std::fs::rename(&path, dir.path().join("aside")))
            .unwrap();
    assert_eq!(renewed.arrivals, 2);
    let (journal, _) = open(dir.path()).unwrap();
    let found = by_hand(&journal, former_arrivals).await.unwrap();
    assert_eq!(found[0], (7, "telegram\ndefault\nupdate:1000".to_owned(), 2));
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().0.close().await;
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let refused = open(dir.path()).err().unwrap();
    assert_eq!(refused, JournalError::Newer { found: 99, known: known() });
    assert_eq!(
        refused.to_string(),
        format!(
            "it has schema version 99, this version knows {}: start the newer openclaw, or move the file away",
            known()
        )
    );
    assert_eq!((version(dir.path()), aside(dir.path())), (99, vec![]));
}

#[tokio::test]
async fn the_database_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    add(&journal, "r").await.unwrap();
    for name in ["gateway.sqlite", "gateway.sqlite-wal"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn what_is_no_database_is_kept_aside_and_a_new_one_begun() {
    for garbage in
        ["this is a note of mine, not a database. ".repeat(100), "SQLite format 3\0 nothing".to_owned()]
    {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), &garbage).unwrap();
        let (journal, found) = open(dir.path()).unwrap();
        assert_eq!(found, [""; 0]);
        add(&journal, "run-1").await.unwrap();
        let [kept] = aside(dir.path()).try_into().unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(kept)).unwrap(), garbage);
        assert!(!dir.path().join("gateway.sqlite.renewed").exists());
        journal.close().await;
        assert_eq!(open(dir.path()).unwrap().1, ["run-1"]);
        assert_eq!(aside(dir.path()).len(), 1, "it is sound now");
    }
}

#[tokio::test]
async fn a_journal_that_was_closed_leaves_no_log_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    add(&journal, "run-1").await.unwrap();
    journal.close().await;
    assert!(!dir.path().join("gateway.sqlite-wal").exists());
    assert_eq!(by_hand(&journal, runs).await, Err(JournalError::Closed));
    assert_eq!(add(&journal, "run-2").await, Err(JournalError::Closed));
}

async fn with_many(dir: &Path, bytes: usize) {
    let (journal, _) = open(dir).unwrap();
    for n in 0..300 {
        add_big(&journal, &format!("run-{n}"), bytes).await.unwrap();
    }
    journal.close().await;
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_database_is_taken_over() {
    let damage: [fn(&mut Vec<u8>); 2] = [
        |bytes| {
            let middle = bytes.len() / 2 / 4096 * 4096;
            bytes[middle..middle + 4096].fill(0xff);
        },
        |bytes| bytes.truncate(bytes.len() / 2),
    ];
    for (case, damage) in damage.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        with_many(dir.path(), 1_000).await;
        let path = dir.path().join(FILE_NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let (_, found) = open(dir.path()).unwrap();
        let [kept] = aside(dir.path()).try_into().unwrap();
        let kept = std::fs::metadata(dir.path().join(kept)).unwrap().len();
        assert_eq!(kept, bytes.len() as u64, "the damaged file is there");
        let mut expected: Vec<String> = (0..300).map(|n| format!("run-{n}")).collect();
        expected.retain(|run| found.contains(run));
        assert_eq!(found, expected, "in the order of acceptance, each once");
        assert!(expected.len() >= [280, 100][case], "{} of 300 in case {case}", expected.len());
        assert!(expected.contains(&"run-0".to_owned()));
        assert!(case > 0 || expected.contains(&"run-299".to_owned()));
    }
}

/// Checks that messages are taken over that lie in the log alone, as a kill may leave them.
#[tokio::test]
async fn messages_in_the_log_of_a_file_that_is_gone_or_empty_are_taken_over() {
    for is_gone in [true, false] {
        let (live, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (journal, _) = open(live.path()).unwrap();
        for n in 0..3 {
            add(&journal, &format!("run-{n}")).await.unwrap();
        }
        let path = dir.path().join(FILE_NAME);
        std::fs::copy(
            live.path().join(format!("{FILE_NAME}-wal")),
            dir.path().join(format!("{FILE_NAME}-wal")),
        )
        .unwrap();
        if !is_gone {
            std::fs::write(&path, "").unwrap();
        }
        let (_, found) = open(dir.path()).unwrap();
        assert_eq!(found, ["run-0", "run-1", "run-2"], "{is_gone}");
        assert!(!aside(dir.path()).is_empty(), "what was found is kept");
    }
}

/// Renews a database as the doctor does, also where a start would not look: the file was closed in
/// order, and damaged afterwards.
#[tokio::test]
async fn a_damaged_database_is_renewed_with_what_can_be_read_or_left_as_it_is() {
    use crate::journal::sqlite::{DatabaseState, check_database, renew_database};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    with_many(dir.path(), 1_000).await;
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let refused = renew_database(&path, || Err(std::io::Error::other("no room"))).unwrap_err();
    assert_eq!(refused, JournalError::Storage("no room".to_owned()));
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing has changed");
    let aside = dir.path().join("aside");
    let saved = renew_database(&path, || std::fs::rename(&path, &aside)).unwrap();
    assert_eq!(std::fs::read(&aside).unwrap(), bytes);
    assert_eq!(check_database(&path), DatabaseState::Sound);
    assert!((280..300).contains(&saved.messages), "{saved:?}");
    assert_eq!(open(dir.path()).unwrap().1.len(), saved.messages);
}

#[tokio::test]
async fn damage_met_while_running_is_dealt_with_by_the_next_start() {
    use std::os::unix::fs::FileExt;
    let dir = tempfile::tempdir().unwrap();
    with_many(dir.path(), 3_000).await;
    let (journal, ()) = SqliteJournal::open_with(dir.path(), flawed, |_| Ok(())).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(dir.path().join(FILE_NAME)).unwrap();
    let middle = file.metadata().unwrap().len() / 2 / 4096 * 4096;
    file.write_all_at(&[0xff; 4096], middle).unwrap();
    add(&journal, "run-300").await.unwrap();
    let met = add(&journal, "reads").await.unwrap_err();
    assert!(matches!(met, JournalError::Damaged(_)), "{met}");
    assert!(met.to_string().contains("restart the gateway"), "{met}");
    journal.close().await;
    let (journal, ()) = SqliteJournal::open_with(dir.path(), flawed, |_| Ok(())).unwrap();
    assert_eq!(aside(dir.path()).iter().filter(|name| !name.ends_with("-wal")).count(), 1);
    assert!(by_hand(&journal, runs).await.unwrap().contains(&"run-300".to_owned()));
}

/// What is written to a file that has no name any more is lost with the process.
#[tokio::test]
async fn nothing_new_is_taken_while_the_file_or_its_log_is_not_in_its_place() {
    let process = std::process::id();
    for name in [FILE_NAME.to_owned(), format!("{FILE_NAME}-wal")] {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside) = (dir.path().join(FILE_NAME), dir.path().join("aside"));
        let (journal, _) = open(dir.path()).unwrap();
        add(&journal, "before").await.unwrap();
        assert!(!is_lost_by(&path, process), "{name}");
        let file = dir.path().join(&name);
        std::fs::rename(&file, &aside).unwrap();
        for another in [false, true] {
            if another {
                std::fs::copy(&aside, &file).unwrap();
            }
            let refused = add(&journal, "lost").await.unwrap_err();
            assert_eq!(refused, JournalError::Gone(file.display().to_string()));
            assert!(refused.to_string().contains("stop the gateway, put the file back"), "{refused}");
            assert!(is_lost_by(&path, process), "{name}");
        }
        let record = contract::finished("before", "done");
        assert_eq!(any(&journal).update(Update::Finish(record, Vec::new())).await, Ok(true), "a run goes on");
        std::fs::rename(&aside, &file).unwrap();
        add(&journal, "after").await.unwrap();
        journal.close().await;
        assert_eq!(open(dir.path()).unwrap().1, ["after"], "{name}");
    }
}

#[tokio::test]
async fn a_new_file_that_was_not_put_in_place_yet_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    add(&journal, "saved").await.unwrap();
    let thread = journal.thread.lock().take();
    drop(journal);
    thread.expect("it runs until the last handle is gone").join().unwrap();
    std::fs::rename(dir.path().join(FILE_NAME), dir.path().join("gateway.sqlite.renewed")).unwrap();
    assert_eq!(open(dir.path()).unwrap().1, ["saved"]);
}

#[tokio::test]
async fn a_change_that_fails_leaves_nothing_and_takes_no_other_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    let (first, bad, second) = tokio::join!(add(&journal, "a"), add(&journal, "fails"), add(&journal, "b"));
    assert_eq!((first, second), (Ok(Insert::New), Ok(Insert::New)));
    assert_eq!(bad.unwrap_err().to_string(), "a later step failed");
    assert_eq!(by_hand(&journal, runs).await.unwrap(), ["a", "b"]);
}

#[tokio::test]
async fn a_change_that_panics_is_refused_and_the_next_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    let refused = add(&journal, "panics").await.unwrap_err();
    assert!(refused.to_string().contains("panicked"), "{refused}");
    add(&journal, "a").await.unwrap();
    assert_eq!(by_hand(&journal, runs).await.unwrap(), ["a"], "nothing of it was kept");
}

#[tokio::test]
async fn a_full_disk_refuses_changes_and_takes_them_when_there_is_room_again() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    run_sql(&journal, "PRAGMA max_page_count = 1").await.unwrap();
    let refused = add_big(&journal, "big", 100_000).await.unwrap_err();
    assert_eq!(refused.to_string(), "the disk is full");
    assert_eq!(by_hand(&journal, runs).await.unwrap(), [""; 0]);
    run_sql(&journal, "PRAGMA max_page_count = 1000000").await.unwrap();
    add_big(&journal, "big", 100_000).await.unwrap();
    assert_eq!(by_hand(&journal, runs).await.unwrap(), ["big"]);
}

fn finish(run: &str, ended_at: i64) -> Update {
    let outcome = RunOutcome::Ok { result: serde_json::json!({"payloads": []}).into() };
    Update::Finish(
        RunRecord { run_id: RunId::new(run), started_at: None, ended_at, outcome, report: None },
        Vec::new(),
    )
}

#[tokio::test]
async fn a_message_of_before_there_were_digests_is_known_by_its_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    let journal = opened(dir.path()).unwrap();
    let insert = async |text| {
        let row = contract::stored(contract::chat("run-1", text)).await;
        journal.reserve().await.unwrap()(row, CommitDurability::Synced).await.unwrap()
    };
    assert_eq!(insert("hello").await, Insert::New);
    assert_eq!(insert("another text").await, Insert::Conflict);
    run_sql(&journal, "UPDATE inbox SET digest = NULL").await.unwrap();
    assert_eq!(insert("another text").await, Insert::Known(KnownRun::Unfinished { accepted_at: 1_000 }));
}

/// A commit that writes nothing syncs nothing either.
#[tokio::test]
async fn what_was_written_is_settled_by_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let journal = opened(dir.path()).unwrap();
    add(&journal, "run-1").await.unwrap();
    let log = dir.path().join(format!("{FILE_NAME}-wal"));
    let bytes = || std::fs::metadata(&log).unwrap().len();
    for _ in 0..2 {
        let before = bytes();
        any(&journal).update(Update::Settle).await.unwrap();
        assert!(bytes() > before);
    }
}

#[tokio::test]
async fn what_is_to_be_synced_goes_with_the_next_change_that_is_or_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let journal = opened(dir.path()).unwrap();
    let log = dir.path().join(format!("{FILE_NAME}-wal"));
    let bytes = || std::fs::metadata(&log).unwrap().len();
    add(&journal, "run-1").await.unwrap();
    let before = bytes();
    journal.synced().await.unwrap();
    assert!(bytes() > before, "nothing else came");
    let synced = journal.synced();
    add(&journal, "run-2").await.unwrap();
    let before = bytes();
    synced.await.unwrap();
    assert_eq!(bytes(), before, "it went with the message");
}

#[tokio::test]
async fn a_disk_that_refuses_keeps_nothing_of_a_message_and_stores_a_finished_run_later() {
    let dir = tempfile::tempdir().unwrap();
    let journal = opened(dir.path()).unwrap();
    add(&journal, "before").await.unwrap();
    let refuse =
        "CREATE TRIGGER full BEFORE INSERT ON inbox BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END;
        CREATE TRIGGER full2 BEFORE UPDATE ON inbox BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END;";
    run_sql(&journal, refuse).await.unwrap();
    let row = async |run| contract::stored(contract::chat(run, "x")).await;
    let refused =
        journal.reserve().await.unwrap()(row("during").await, CommitDurability::Synced).await.unwrap_err();
    assert!(refused.to_string().contains("disk is full"), "{refused}");
    let ended = openclaw_sessions::time::now_ms();
    any(&journal).update(finish("before", ended)).await.unwrap_err();
    assert_eq!(any(&journal).message(&RunId::new("during")).await.unwrap(), None);
    let Update::Finish(record, _) = finish("before", ended) else { panic!("a finished run") };
    let known = Some(KnownRun::Finished(record));
    let before = any(&journal).message(&RunId::new("before")).await.unwrap();
    assert_eq!(before, known, "it has ended, stored or not");
    // Behind what is refused no change is made.
    let drop_triggers = |db: &Connection| Ok(db.execute_batch("DROP TRIGGER full; DROP TRIGGER full2")?);
    by_hand(&journal, drop_triggers).await.unwrap();
    // No other change is asked for, and still it is stored.
    while !by_hand(&journal, runs).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        journal.reserve().await.unwrap()(row("after").await, CommitDurability::Synced).await,
        Ok(Insert::New)
    );
    assert_eq!(any(&journal).message(&RunId::new("before")).await.unwrap(), known);
}

/// A run's end with an answer of so many bytes.
fn answered(run: &str, bytes: usize) -> Update {
    let Update::Finish(record, _) = finish(run, openclaw_sessions::time::now_ms()) else {
        panic!("a finished run")
    };
    let mut reply = contract::note(&format!("{run}.1"));
    reply.delivery.part = Part::text("x".repeat(bytes));
    Update::Finish(record, vec![reply])
}

async fn answers(journal: &SqliteJournal) -> Vec<String> {
    let waiting = any(journal).waiting_deliveries().await.unwrap();
    waiting.into_iter().map(|listed| listed.status.id).collect()
}

/// Checks the order of refused updates. Answers to one reader would overtake each other otherwise;
/// and the sender of answers is told of them when they are stored.
#[tokio::test]
async fn what_the_disk_refuses_holds_back_all_that_came_after_it_until_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let journal = opened(dir.path()).unwrap();
    for run in ["a", "b", "c", "d"] {
        add(&journal, run).await.unwrap();
    }
    let most_pages = async |count: u32| {
        let limit = move |db: &Connection| {
            Ok(db.query_row(&format!("PRAGMA max_page_count = {count}"), [], |_| Ok(()))?)
        };
        by_hand(&journal, limit).await.unwrap();
    };
    let mut stored = journal.deliveries_stored();
    most_pages(1).await;
    // The small ones would have room.
    let (a, b) =
        tokio::join!(any(&journal).update(answered("a", 100_000)), any(&journal).update(answered("b", 10)));
    assert_eq!((a, b), (Err(JournalError::DiskFull), Err(JournalError::DiskFull)));
    assert_eq!(any(&journal).update(answered("c", 10)).await, Err(JournalError::DiskFull));
    assert_eq!(add(&journal, "new").await, Err(JournalError::DiskFull));
    assert_eq!(answers(&journal).await, [""; 0]);
    assert!(!stored.has_changed().unwrap());
    most_pages(1_000_000).await;
    // No other change is asked for.
    stored.changed().await.unwrap();
    assert_eq!(answers(&journal).await, ["a.1", "b.1", "c.1"]);
    any(&journal).update(answered("d", 10)).await.unwrap();
    assert!(stored.has_changed().unwrap());
}

#[tokio::test]
async fn a_change_with_a_mistake_of_its_own_holds_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let journal = opened(dir.path()).unwrap();
    for run in ["a", "b"] {
        add(&journal, run).await.unwrap();
    }
    let refuse = "CREATE TRIGGER bad BEFORE UPDATE ON inbox WHEN old.run_id = 'a' BEGIN SELECT RAISE(ABORT, 'a bug'); END";
    run_sql(&journal, refuse).await.unwrap();
    assert!(matches!(any(&journal).update(answered("a", 1)).await, Err(JournalError::Storage(_))));
    assert_eq!(any(&journal).update(answered("b", 1)).await, Ok(true));
    assert_eq!(answers(&journal).await, ["b.1"]);
    run_sql(&journal, "DROP TRIGGER bad").await.unwrap();
    add(&journal, "c").await.unwrap();
    assert_eq!(answers(&journal).await, ["b.1", "a.1"], "it is tried again");
}
