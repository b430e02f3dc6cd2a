use openclaw_protocol::AgentId;
use serde_json::json;

use super::states::MessageState;
use super::*;
use crate::api::RunOutcome;
use crate::backlog::Backlog;
use crate::journal::FILE_NAME;
use crate::journal::states::{self, Retention, check_laws};

struct Opened {
    inbox: Inbox,
    unfinished: Vec<Unfinished>,
}

impl Opened {
    /// Stores a message as a client's is stored.
    async fn accept(&self, row: Row) -> Result<Insert, JournalError> {
        accept(&self.inbox, row).await
    }
}

async fn accept(inbox: &Inbox, row: Row) -> Result<Insert, JournalError> {
    let parked = Parked::fresh(&row.payload, Wants::UNKNOWN, Backlog::default().count(0));
    let slip = row.slip();
    let (stored, _) = Stored::of(&row.session_key, row.payload, parked).await?;
    inbox.accept(inbox.room().await?, slip.with(stored)).done().await
}

fn open(dir: &std::path::Path) -> Opened {
    let opened = Journal::open(dir, &[prune], unfinished).unwrap();
    Opened { inbox: Inbox::new(opened.journal), unfinished: opened.found }
}

#[test]
fn a_message_is_accepted_then_finished() {
    check_laws::<MessageState>();
}

fn chat(run_id: &str, text: &str) -> Row {
    Row {
        run_id: RunId::new(run_id),
        session_key: "agent:main:main".to_owned(),
        payload: Payload::Chat(ChatPayload { text: text.to_owned(), ..ChatPayload::default() }),
        accepted_at: 1_000,
        entry_id: "0badcafe".to_owned(),
        fresh_id: SessionId::new("7e3f6324-2fe6-4287-acee-966d83075639"),
        session_id: None,
        abort: None,
        recovered: false,
    }
}

fn done(run_id: &str, ended_at: i64) -> RunRecord {
    RunRecord {
        run_id: RunId::new(run_id),
        started_at: Some(ended_at - 5),
        ended_at,
        outcome: RunOutcome::Ok { result: json!({"payloads": [{"text": "hi"}], "meta": {"durationMs": 5}}) },
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[tokio::test]
async fn a_row_is_found_again_as_it_was_after_the_process_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = chat("run-2", "");
    agent.payload = Payload::Agent(AgentPayload {
        agent_id: Some(AgentId::normalize("main")),
        session_id: Some("s".to_owned()),
        text: "do it".to_owned(),
        timeout_seconds: Some(0),
        lane: Some("nested".to_owned()),
        occasion: crate::api::Occasion::Heartbeat,
        entry_patch: json!({"label": "x"}).as_object().unwrap().clone(),
        ..AgentPayload::default()
    });
    {
        let opened = open(dir.path());
        assert_eq!(opened.unfinished, []);
        assert_eq!(opened.accept(chat("run-1", "hello")).await.unwrap(), Insert::New);
        assert_eq!(opened.accept(agent.clone()).await.unwrap(), Insert::New);
        opened.inbox.begin(&RunId::new("run-1"), &SessionId::new("sid")).await.unwrap();
        opened.inbox.mark_aborted(vec![RunId::new("run-2")], AbortReason::Rpc).await.unwrap();
    }
    let opened = open(dir.path());
    let found: Vec<Row> = opened
        .unfinished
        .into_iter()
        .map(|Unfinished { mut row, .. }| {
            let payload = row.payload.take().expect("small ones are read");
            row.with(payload)
        })
        .collect();
    let expected = [
        Row { session_id: Some(SessionId::new("sid")), recovered: true, ..chat("run-1", "hello") },
        Row { abort: Some(AbortReason::Rpc), recovered: true, ..agent },
    ];
    assert_eq!(found, expected);
}

/// What a start finds of one message.
fn only(dir: &std::path::Path) -> Unfinished {
    let [found] = <[_; 1]>::try_from(open(dir).unfinished).expect("one message");
    found
}

#[tokio::test]
async fn a_big_payload_stays_on_disk_until_it_is_worked_on() {
    let dir = tempfile::tempdir().unwrap();
    let big = "x".repeat(200_000);
    let mut message = chat("run-1", &big);
    let Payload::Chat(asked) = &mut message.payload else { panic!("a chat") };
    asked.timeout_ms = Some(7);
    open(dir.path()).accept(message.clone()).await.unwrap();
    let found = only(dir.path());
    assert_eq!(found.row.payload, None);
    assert_eq!(found.origin, Origin::Chat { timeout_ms: Some(7) });
    assert_eq!(found.bytes, big.len());
    let share = Backlog::default().count(0);
    let waiting = found.row.with(Parked::found(found.origin, found.attempts, found.bytes, share));
    let loaded = open(dir.path()).inbox.load(&waiting).await.unwrap();
    assert_eq!(loaded, Row { recovered: true, ..message });
}

/// The laws of `docs/durability.md`, "Messages that end the process".
#[tokio::test]
async fn attempts_are_counted_until_one_is_prepared_and_given_back_by_a_stop_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunId::new("run-1");
    let session = SessionId::new("sid");
    let attempts = || {
        let Attempts { all, unprepared } = only(dir.path()).attempts;
        (all, unprepared)
    };
    let inbox = open(dir.path()).inbox;
    accept(&inbox, chat("run-1", "x")).await.unwrap();
    assert_eq!(attempts(), (0, 0), "it waits");
    inbox.begin(&run, &session).await.unwrap();
    assert_eq!(attempts(), (1, 1), "its run has begun");
    inbox.attempt(&run).await.unwrap();
    inbox.begin(&run, &session).await.unwrap();
    assert_eq!(attempts(), (2, 2), "an attempt is counted once");
    inbox.prepared(&run).await.unwrap();
    assert_eq!(attempts(), (2, 0));
    inbox.excuse(vec![run.clone()]).await.unwrap();
    assert_eq!(attempts(), (1, 0));
    inbox.excuse(vec![run.clone()]).await.unwrap();
    inbox.excuse(vec![run]).await.unwrap();
    assert_eq!(attempts(), (0, 0));
}

#[tokio::test]
async fn a_run_id_is_accepted_once_also_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let ended = now();
    {
        let opened = open(dir.path());
        assert_eq!(opened.accept(chat("run-1", "hello")).await.unwrap(), Insert::New);
        let again = opened.accept(chat("run-1", "hello")).await.unwrap();
        assert_eq!(again, Insert::Known(Known::Unfinished { accepted_at: 1_000 }));
        assert_eq!(opened.accept(chat("run-1", "another text")).await.unwrap(), Insert::Conflict);
        opened.inbox.finish(done("run-1", ended)).await.unwrap();
    }
    let opened = open(dir.path());
    assert_eq!(opened.unfinished, []);
    let known = Known::Finished(done("run-1", ended));
    assert_eq!(opened.accept(chat("run-1", "hello")).await.unwrap(), Insert::Known(known.clone()));
    assert_eq!(opened.accept(chat("run-1", "another text")).await.unwrap(), Insert::Conflict);
    // A row of before there were digests is answered by its key alone.
    let db = rusqlite::Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute("UPDATE inbox SET digest = NULL", []).unwrap();
    assert_eq!(opened.accept(chat("run-1", "another text")).await.unwrap(), Insert::Known(known.clone()));
    assert_eq!(opened.inbox.find(&RunId::new("run-1")).await.unwrap(), Some(known));
    assert_eq!(opened.inbox.find(&RunId::new("run-9")).await.unwrap(), None);
}

/// What the end of the machine may take: nothing that a client was told.
#[test]
fn what_is_acknowledged_is_synced_before() {
    use crate::journal::{Change, Durability};
    assert_eq!(Accept::DURABILITY, Durability::Synced);
    assert_eq!(Abort::DURABILITY, Durability::Synced);
    assert_eq!(Attempt::DURABILITY, Durability::Written, "it is the process that dies");
}

#[tokio::test]
async fn the_prompt_report_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path());
    opened.accept(chat("r", "x")).await.unwrap();
    let mut record = done("r", now());
    record.outcome = RunOutcome::Error {
        message: "m".to_owned(),
        result: Some(
            json!({"payloads": [], "meta": {"durationMs": 1, "systemPromptReport": {"source": "run"}}}),
        ),
    };
    opened.inbox.finish(record.clone()).await.unwrap();
    record.outcome = RunOutcome::Error {
        message: "m".to_owned(),
        result: Some(json!({"payloads": [], "meta": {"durationMs": 1}})),
    };
    assert_eq!(opened.inbox.find(&record.run_id).await.unwrap(), Some(Known::Finished(record)));
}

#[tokio::test]
async fn many_clients_are_accepted_at_once_each_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path());
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..200 {
        let inbox = opened.inbox.clone();
        clients.spawn(async move { accept(&inbox, chat(&format!("run-{}", n % 100), "x")).await.unwrap() });
    }
    let outcomes = clients.join_all().await;
    let new = outcomes.iter().filter(|outcome| **outcome == Insert::New).count();
    assert_eq!((outcomes.len(), new), (200, 100));
}

#[tokio::test]
async fn finished_rows_go_when_they_are_old_or_too_many_and_unfinished_ones_stay() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path());
    for (n, ended_at) in [(1, 100), (2, 500), (3, 600), (4, 700)] {
        let id = format!("run-{n}");
        opened.accept(chat(&id, "x")).await.unwrap();
        // Far in the future: pruning by today's clock leaves them alone.
        opened.inbox.finish(done(&id, now() + ended_at)).await.unwrap();
    }
    opened.accept(chat("run-5", "x")).await.unwrap();
    let connection = rusqlite::Connection::open(dir.path().join(FILE_NAME)).unwrap();
    let retention = Retention { keep_ms: 0, keep_rows: 2 };
    states::prune(&connection, MessageState::Finished, now() + 300, retention).unwrap();
    let mut left: Vec<String> = connection
        .prepare("SELECT run_id FROM inbox ORDER BY seq")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    left.sort();
    assert_eq!(left, ["run-3", "run-4", "run-5"]);
}

#[tokio::test]
async fn a_full_disk_refuses_messages_keeps_nothing_and_a_finished_run_is_written_later() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path());
    opened.accept(chat("before", "x")).await.unwrap();
    // Another writer that holds the database is, to the inbox, a disk that refuses; SQLite's page limit is per
    // connection, so the refusal has to come from outside.
    let other = rusqlite::Connection::open(dir.path().join(FILE_NAME)).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON inbox BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END;
        CREATE TRIGGER full2 BEFORE UPDATE ON inbox BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END;",
        )
        .unwrap();
    let ended = now();
    let refused = opened.accept(chat("during", "x")).await.unwrap_err();
    assert!(refused.to_string().contains("disk is full"), "{refused}");
    opened.inbox.finish(done("before", ended)).await.unwrap_err();
    assert_eq!(opened.inbox.find(&RunId::new("during")).await.unwrap(), None);
    let before = opened.inbox.find(&RunId::new("before")).await.unwrap();
    assert_eq!(before, Some(Known::Finished(done("before", ended))), "it has ended, stored or not");
    other.execute_batch("DROP TRIGGER full; DROP TRIGGER full2").unwrap();
    // Nothing else is asked of the inbox, and still it is stored.
    let state = || {
        other.query_row("SELECT state FROM inbox WHERE run_id = 'before'", [], |row| row.get::<_, String>(0))
    };
    while state().unwrap() != "finished" {
        tokio::task::yield_now().await;
    }
    assert_eq!(opened.accept(chat("after", "x")).await.unwrap(), Insert::New);
    let before = opened.inbox.find(&RunId::new("before")).await.unwrap();
    assert_eq!(before, Some(Known::Finished(done("before", ended))));
}
