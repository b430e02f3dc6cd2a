//! Contract of every [`Journal`]: the suite is run on each implementation.

use std::collections::HashMap;
use std::path::Path;

use openclaw_channels::{Address, Part, Receipt};
use openclaw_protocol::{AgentId, RunId, SessionId, SessionKey};
use serde_json::json;

use super::memory::MemoryJournal;
use super::sqlite::SqliteJournal;
use super::*;
use crate::api::{AbortReason, Occasion, RunOutcome, RunRecord};
use crate::backlog::Backlog;
use crate::delivery::{
    Author, DeliveryFailure, DeliveryInsert, DeliveryStatus, DeliveryVerdict, OpenDelivery, Retry,
};
use crate::inbox::{
    AskedRecords, Attempts, KnownRun, MessageRecord, MessageWait, QueuedFacts, UnfinishedPart, regrouped,
};
use crate::queue::DropRule;
use crate::request::RunRequest;
use crate::source::{ClientSource, ProgramSource, RequestSource};
use crate::testing::crash;

type OpenFn = fn(&Path) -> Result<OpenedJournal, JournalError>;

/// Makes a test of each of these functions for each implementation.
macro_rules! on_each {
    ($($law:ident)*) => {
        mod sqlite {
            $(#[tokio::test] async fn $law() { super::$law(super::SqliteJournal::open).await; })*
        }
        mod memory {
            $(#[tokio::test] async fn $law() { super::$law(super::MemoryJournal::open).await; })*
        }
    };
}

mod arrivals;
mod notices;
mod queries;
mod retention;

use notices::{
    a_line_waits_until_the_run_that_told_it_has_ended, what_was_promised_is_told_by_the_next_start_once,
};

on_each! {
    messages_are_found_in_the_order_in_which_they_took_their_reservations
    a_message_is_found_again_as_it_was
    a_message_that_was_answered_is_found_with_its_answer_until_it_is_finished
    a_big_payload_is_not_read_before_it_is_asked_for
    a_run_id_is_accepted_once
    a_run_id_of_another_message_is_a_conflict_and_changes_nothing
    many_clients_are_accepted_at_once_each_exactly_once
    a_message_whose_caller_goes_away_is_accepted_all_the_same
    a_message_that_nobody_waits_to_see_synced_is_found_all_the_same
    a_run_ends_once
    messages_that_are_run_together_are_found_together_and_end_together
    a_dropped_message_has_ended_or_waits_to_be_told_of
    the_prompt_report_is_not_kept
    the_first_reason_of_an_abort_stays
    attempts_are_counted_until_one_is_prepared_and_given_back_by_a_stop_in_order
    entries_are_those_of_all_that_were_accepted_since
    what_a_message_was_and_who_took_it_is_remembered
    a_delivery_is_found_again_as_it_was
    deliveries_are_open_in_the_order_of_acceptance_until_they_are_over
    a_pause_before_a_delivery_is_kept_until_it_is_tried
    a_delivery_takes_no_step_that_may_not_follow
    a_delivery_that_was_being_sent_is_uncertain_after_a_start
    blocks_of_a_run_that_did_not_end_are_not_sent_after_a_start
    a_failed_delivery_is_listed_revived_or_discarded
    a_delivery_whose_file_is_refused_is_its_words_from_then_on
    what_stands_behind_a_part_that_was_put_off_is_cut_off
    what_a_platform_asked_for_holds_the_conversation
    what_waits_is_thrown_away_for_good_but_not_while_it_is_sent
    what_waits_behind_another_delivery_is_known
    a_conversation_whose_first_delivery_keeps_failing_is_late
    what_was_promised_is_told_by_the_next_start_once
    a_line_waits_until_the_run_that_told_it_has_ended
    a_closed_journal_refuses_everything
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn run(name: &str) -> RunId {
    RunId::new(name)
}

pub(super) fn chat(run_id: &str, text: &str) -> InboxRow {
    InboxRow {
        run_id: run(run_id),
        session_key: SessionKey::main(&AgentId::default(), "main"),
        payload: RunRequest { text: text.to_owned(), ..RunRequest::default() },
        accepted_at: 1_000,
        entry_id: "0badcafe".to_owned(),
        fresh_id: SessionId::new("7e3f6324-2fe6-4287-acee-966d83075639"),
        session_id: None,
        abort: None,
        answered: None,
        recovered: false,
        gathering: None,
    }
}

/// Returns the form in which a message goes to the journal.
pub(super) async fn stored(row: InboxRow) -> InboxRow<RequestColumns> {
    let share = Backlog::default().count(0);
    let slip = row.without_payload();
    let (stored, _) = RequestColumns::of(row.session_key.as_str(), row.payload, share).unwrap();
    slip.with(stored)
}

async fn accept(journal: &Arc<dyn Journal>, row: InboxRow) -> Insert {
    journal.reserve().await.unwrap()(stored(row).await, CommitDurability::Synced).await.unwrap()
}

pub(super) fn finished(run_id: &str, text: &str) -> RunRecord {
    let ended_at = openclaw_sessions::time::now_ms();
    let outcome =
        RunOutcome::Ok { result: json!({"payloads": [{"text": text}], "meta": {"durationMs": 5}}).into() };
    RunRecord { run_id: run(run_id), started_at: Some(ended_at - 5), ended_at, outcome, report: None }
}

/// A start in a copy of a directory, as a crash would leave it; a journal is open once only.
fn restarted(open: OpenFn, dir: &Path) -> (tempfile::TempDir, OpenedJournal) {
    let crashed = crash(dir);
    let opened = open(crashed.path()).unwrap();
    (crashed, opened)
}

/// The run ids a start finds.
fn unfinished(open: OpenFn, dir: &Path) -> Vec<String> {
    let (_crashed, OpenedJournal { unfinished, .. }) = restarted(open, dir);
    unfinished.iter().map(|found| found.row.run_id.as_str().to_owned()).collect()
}

/// Returns the only message that a start finds.
fn only(open: OpenFn, dir: &Path) -> Unfinished {
    let (_crashed, OpenedJournal { unfinished, .. }) = restarted(open, dir);
    let [found] = <[_; 1]>::try_from(unfinished).expect("one message");
    found
}

async fn messages_are_found_in_the_order_in_which_they_took_their_reservations(open: OpenFn) {
    let dir = dir();
    let OpenedJournal { journal, unfinished: found, .. } = open(dir.path()).unwrap();
    assert_eq!(found, []);
    let (first, second) = (journal.reserve().await.unwrap(), journal.reserve().await.unwrap());
    let mut early = chat("b", "x");
    early.accepted_at = 2_000;
    let (early, late) = (stored(early).await, stored(chat("a", "x")).await);
    let (early, late) = (second(early, CommitDurability::Synced), first(late, CommitDurability::Synced));
    assert_eq!((late.await, early.await), (Ok(Insert::New), Ok(Insert::New)));
    for name in ["d", "c"] {
        accept(&journal, chat(name, "x")).await;
    }
    journal.update(Update::Finish(finished("d", "done"), Vec::new())).await.unwrap();
    assert_eq!(unfinished(open, dir.path()), ["b", "a", "c"], "no clock and no name orders them");
}

async fn a_message_is_found_again_as_it_was(open: OpenFn) {
    let dir = dir();
    let mut agent = chat("run-2", "");
    agent.payload = RunRequest {
        source: RequestSource::Program(Box::new(ProgramSource {
            session_id: Some("s".to_owned()),
            occasion: Occasion::Heartbeat,
            entry_patch: json!({"label": "x"}).as_object().unwrap().clone(),
            ..ProgramSource::default()
        })),
        agent_id: Some(AgentId::normalize("main")),
        text: "do it".to_owned(),
        timeout_seconds: Some(0),
        lane: Some("nested".to_owned()),
        ..RunRequest::default()
    };
    let journal = open(dir.path()).unwrap().journal;
    assert_eq!(accept(&journal, chat("run-1", "hello")).await, Insert::New);
    assert_eq!(accept(&journal, agent.clone()).await, Insert::New);
    assert_eq!(journal.update(Update::Begin(run("run-1"), SessionId::new("sid"))).await, Ok(true));
    assert_eq!(journal.update(Update::Abort(vec![run("run-2")], AbortReason::Rpc)).await, Ok(true));
    assert_eq!(journal.payload(&run("run-2")).await.unwrap(), agent.payload);
    let (_crashed, OpenedJournal { unfinished, .. }) = restarted(open, dir.path());
    let found: Vec<InboxRow> = unfinished
        .into_iter()
        .map(|Unfinished { row, .. }| {
            let slip = row.without_payload();
            let UnfinishedPart::Whole(request) = row.payload else { panic!("small ones are read") };
            slip.with(*request)
        })
        .collect();
    let expected = [
        InboxRow { session_id: Some(SessionId::new("sid")), recovered: true, ..chat("run-1", "hello") },
        InboxRow { abort: Some(AbortReason::Rpc), recovered: true, ..agent },
    ];
    assert_eq!(found, expected);
}

async fn a_message_that_was_answered_is_found_with_its_answer_until_it_is_finished(open: OpenFn) {
    let dir = dir();
    let answered = RunRecord { started_at: None, ..finished("run-1", "hi") };
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("run-1", "/model two")).await;
    assert_eq!(journal.update(Update::Answered(answered.clone(), Vec::new())).await, Ok(true));
    assert!(matches!(journal.message(&run("run-1")).await, Ok(Some(KnownRun::Unfinished { .. }))));
    let found = only(open, dir.path());
    assert_eq!(found.row.answered, Some(answered.clone()));
    journal.update(Update::Finish(answered.clone(), Vec::new())).await.unwrap();
    assert_eq!(journal.update(Update::Answered(answered, Vec::new())).await, Ok(false), "it is past it");
    assert_eq!(unfinished_count(open, dir.path()), 0);
}

async fn a_big_payload_is_not_read_before_it_is_asked_for(open: OpenFn) {
    let dir = dir();
    let big = "x".repeat(200_000);
    let mut message = chat("run-1", &big);
    message.payload.source =
        RequestSource::Client(ClientSource { timeout_ms: Some(7), ..ClientSource::default() });
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, message.clone()).await;
    let found = only(open, dir.path());
    let slip = found.row.without_payload();
    let UnfinishedPart::OnDisk(facts) = found.row.payload else { panic!("a big one is not read") };
    assert_eq!((facts.bytes, &facts), (big.len(), &QueuedFacts::of(&message.payload)));
    let loaded = journal.payload(&slip.run_id).await.unwrap();
    assert_eq!(slip.with(loaded), InboxRow { recovered: true, ..message });
}

async fn a_run_id_is_accepted_once(open: OpenFn) {
    let dir = dir();
    let record = finished("run-1", "hi");
    let journal = open(dir.path()).unwrap().journal;
    assert_eq!(journal.message(&run("run-1")).await.unwrap(), None);
    assert_eq!(accept(&journal, chat("run-1", "hello")).await, Insert::New);
    let unfinished = KnownRun::Unfinished { accepted_at: 1_000 };
    assert_eq!(journal.message(&run("run-1")).await.unwrap(), Some(unfinished.clone()));
    let mut later = chat("run-1", "hello");
    later.accepted_at = 2_000;
    assert_eq!(accept(&journal, later.clone()).await, Insert::Known(unfinished));
    journal.update(Update::Finish(record.clone(), Vec::new())).await.unwrap();
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    assert_eq!(accept(&journal, later).await, Insert::Known(KnownRun::Finished(record.clone())));
    assert_eq!(journal.message(&run("run-1")).await.unwrap(), Some(KnownRun::Finished(record)));
    assert_eq!(unfinished_count(open, dir.path()), 0);
}

fn unfinished_count(open: OpenFn, dir: &Path) -> usize {
    unfinished(open, dir).len()
}

async fn a_run_id_of_another_message_is_a_conflict_and_changes_nothing(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("run-1", "hello")).await;
    assert_eq!(accept(&journal, chat("run-1", "another text")).await, Insert::Conflict);
    assert_eq!(journal.payload(&run("run-1")).await.unwrap(), chat("run-1", "hello").payload);
    journal.update(Update::Finish(finished("run-1", "hi"), Vec::new())).await.unwrap();
    assert_eq!(accept(&journal, chat("run-1", "another text")).await, Insert::Conflict);
}

async fn many_clients_are_accepted_at_once_each_exactly_once(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..200 {
        let journal = Arc::clone(&journal);
        clients.spawn(async move { accept(&journal, chat(&format!("run-{}", n % 100), "x")).await });
    }
    let outcomes = clients.join_all().await;
    let new = outcomes.iter().filter(|outcome| **outcome == Insert::New).count();
    assert_eq!((outcomes.len(), new), (200, 100));
    assert_eq!(unfinished_count(open, dir.path()), 100);
}

async fn a_message_whose_caller_goes_away_is_accepted_all_the_same(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    drop(journal.reserve().await.unwrap()(stored(chat("a", "x")).await, CommitDurability::Synced));
    // A reservation that is not taken holds up nothing.
    drop(journal.reserve().await.unwrap());
    accept(&journal, chat("b", "x")).await;
    assert_eq!(unfinished(open, dir.path()), ["a", "b"]);
}

async fn a_message_that_nobody_waits_to_see_synced_is_found_all_the_same(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("a", "x")).await;
    let reserved = journal.reserve().await.unwrap();
    let written = reserved(stored(chat("b", "x")).await, CommitDurability::Written).await;
    assert_eq!(written, Ok(Insert::New));
    let ended = Update::Finish(finished("a", "x"), Vec::new());
    assert_eq!(journal.update(ended).await, Ok(true));
    assert_eq!(unfinished(open, dir.path()), ["b"], "before it is synced");
    assert_eq!(journal.update(Update::Settle).await, Ok(true));
    assert_eq!(
        accept(&journal, chat("b", "x")).await,
        Insert::Known(KnownRun::Unfinished { accepted_at: 1_000 })
    );
    assert_eq!(unfinished(open, dir.path()), ["b"]);
}

async fn a_run_ends_once(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("a", "x")).await;
    let record = finished("a", "first");
    assert_eq!(journal.update(Update::Finish(record.clone(), Vec::new())).await, Ok(true));
    for late in [
        Update::Finish(finished("a", "second"), Vec::new()),
        Update::Abort(vec![run("a")], AbortReason::Rpc),
        Update::Attempt(run("a")),
        Update::Finish(finished("unknown", "x"), Vec::new()),
        Update::Begin(run("unknown"), SessionId::new("s")),
        Update::Prepared(run("unknown")),
        Update::Excuse(vec![run("unknown")]),
    ] {
        assert_eq!(journal.update(late.clone()).await, Ok(false), "{late:?}");
    }
    assert_eq!(journal.message(&run("a")).await.unwrap(), Some(KnownRun::Finished(record)));
    assert_eq!(journal.message(&run("unknown")).await.unwrap(), None);
    journal.payload(&run("a")).await.expect_err("what was asked is gone with its end");
}

async fn messages_that_are_run_together_are_found_together_and_end_together(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for name in ["a", "b", "c", "d"] {
        accept(&journal, chat(name, "hello")).await;
    }
    let gather = |leader: &str, others: &[&str]| Update::Gather {
        leader: run(leader),
        others: others.iter().map(|&other| run(other)).collect(),
        answer_to: None,
    };
    assert_eq!(journal.update(gather("unknown", &["d"])).await, Ok(false));
    assert_eq!(journal.update(gather("c", &["a", "b"])).await, Ok(true));
    let (_crashed, OpenedJournal { unfinished, .. }) = restarted(open, dir.path());
    let led: Vec<(RunId, Vec<RunId>)> = regrouped(unfinished)
        .into_iter()
        .map(|one| {
            (one.row.run_id.clone(), one.others.iter().map(|other| other.row.run_id.clone()).collect())
        })
        .collect();
    assert_eq!(led, [(run("c"), vec![run("a"), run("b")]), (run("d"), vec![])]);
    let end = || Update::FinishAll(finished("c", "to all"), vec![run("a"), run("b")], Vec::new());
    assert_eq!(journal.update(end()).await, Ok(true));
    assert_eq!(journal.update(end()).await, Ok(false), "they have ended");
    for name in ["a", "b", "c"] {
        let Ok(Some(KnownRun::Finished(record))) = journal.message(&run(name)).await else {
            panic!("{name}")
        };
        assert_eq!((record.run_id, record.outcome), (run(name), finished("c", "to all").outcome));
    }
    assert_eq!(unfinished_count(open, dir.path()), 1);
}

async fn a_dropped_message_has_ended_or_waits_to_be_told_of(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("a", "hello")).await;
    accept(&journal, chat("b", "hello")).await;
    let record = finished("a", "dropped");
    let drop = Update::Drop { record: record.clone(), rule: DropRule::Old, arrivals: Box::default() };
    assert_eq!(journal.update(drop.clone()).await, Ok(true));
    assert_eq!(journal.update(drop).await, Ok(false));
    assert_eq!(journal.message(&run("a")).await, Ok(Some(KnownRun::Finished(record))));
    // Sent again it is new, even with other words; one that was read is not.
    accept(&journal, chat("c", "hello")).await;
    let read = finished("c", "read");
    let drop = Update::Drop { record: read.clone(), rule: DropRule::Read, arrivals: Box::default() };
    assert_eq!(journal.update(drop).await, Ok(true));
    assert_eq!(accept(&journal, chat("c", "hello")).await, Insert::Known(KnownRun::Finished(read)));
    assert_eq!(accept(&journal, chat("a", "once more")).await, Insert::New);
    assert!(matches!(journal.message(&run("a")).await, Ok(Some(KnownRun::Unfinished { .. }))));
    assert_eq!(accept(&journal, chat("a", "and more")).await, Insert::Conflict);
    assert_eq!(journal.update(Update::Finish(finished("a", "x"), Vec::new())).await, Ok(true));
    let cut = Update::Cut { run_id: run("b"), arrivals: Box::default(), dropped: 7, now: 1 };
    assert_eq!(journal.update(cut).await, Ok(true));
    assert_eq!(only(open, dir.path()).waited, MessageWait { cut: Some(7), ..MessageWait::default() });
    // Its end is that it was dropped, whatever becomes of the run that is told of it.
    let end = Update::FinishAll(finished("d", "x"), vec![run("b")], Vec::new());
    assert_eq!(journal.update(end).await, Ok(false), "there is no such run");
    let Ok(Some(KnownRun::Finished(record))) = journal.message(&run("b")).await else {
        panic!("it has ended")
    };
    assert_eq!((record.outcome, record.started_at), (DropRule::Summarized.outcome(), None));
    let records = journal.message_records(AskedRecords::Run(run("b")), 1).await.unwrap();
    assert!(records[0].is_cut, "{records:?}");
}

async fn the_prompt_report_is_not_kept(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("a", "x")).await;
    let answered = finished("a", "x");
    let with_report = RunRecord {
        report: Some(openclaw_sessions::entry::Json::new(&json!({"source": "run"})).unwrap()),
        ..answered.clone()
    };
    journal.update(Update::Finish(with_report, Vec::new())).await.unwrap();
    assert_eq!(journal.message(&run("a")).await.unwrap(), Some(KnownRun::Finished(answered)));
}

async fn the_first_reason_of_an_abort_stays(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for name in ["a", "b"] {
        accept(&journal, chat(name, "x")).await;
    }
    journal.update(Update::Abort(vec![run("a")], AbortReason::Rpc)).await.unwrap();
    let both = vec![run("a"), run("unknown"), run("b")];
    assert_eq!(journal.update(Update::Abort(both.clone(), AbortReason::Stop)).await, Ok(true));
    assert_eq!(journal.update(Update::Abort(both, AbortReason::Rpc)).await, Ok(false));
    let (_crashed, OpenedJournal { unfinished, .. }) = restarted(open, dir.path());
    let reasons: Vec<_> = unfinished.iter().map(|found| found.row.abort).collect();
    assert_eq!(reasons, [Some(AbortReason::Rpc), Some(AbortReason::Stop)]);
}

/// The laws of `docs/durability.md`, "Messages that end the process".
async fn attempts_are_counted_until_one_is_prepared_and_given_back_by_a_stop_in_order(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("a", "x")).await;
    let begin = || Update::Begin(run("a"), SessionId::new("sid"));
    let excuse = || Update::Excuse(vec![run("a")]);
    let steps = [
        (None, (0, 0), "it waits"),
        (Some(begin()), (1, 1), "its run has begun"),
        (Some(Update::Attempt(run("a"))), (2, 2), "it is taken up again"),
        (Some(begin()), (2, 2), "an attempt is counted once"),
        (Some(Update::Prepared(run("a"))), (2, 0), "it is prepared"),
        (Some(excuse()), (1, 0), "a stop in order"),
        (Some(excuse()), (0, 0), "another"),
        (Some(excuse()), (0, 0), "never below none"),
    ];
    for (update, expected, why) in steps {
        if let Some(update) = update {
            assert_eq!(journal.update(update).await, Ok(true), "{why}");
        }
        let Attempts { all, unprepared } = only(open, dir.path()).attempts;
        assert_eq!((all, unprepared), expected, "{why}");
    }
}

async fn what_a_message_was_and_who_took_it_is_remembered(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for name in ["a", "b", "c"] {
        accept(&journal, chat(name, "x")).await;
    }
    journal.update(Update::Begin(run("a"), SessionId::new("sid"))).await.unwrap();
    let taken = Update::Taken { runs: vec![run("b"), run("c")], by: run("a") };
    assert_eq!(journal.update(taken).await, Ok(true));
    let (_crashed, OpenedJournal { journal, unfinished, .. }) = restarted(open, dir.path());
    let begun: Vec<_> = unfinished.iter().map(|found| (found.waited.is_taken, found.has_begun())).collect();
    assert_eq!(begun, [(false, true), (true, true), (true, true)]);
    for name in ["a", "b", "c"] {
        journal.update(Update::Finish(finished(name, "x"), Vec::new())).await.unwrap();
    }
    let late = Update::Taken { runs: vec![run("b")], by: run("c") };
    assert_eq!(journal.update(late).await, Ok(false), "what is finished stays");
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let names = async |asked| -> Vec<String> {
        let found = journal.message_records(asked, 10).await.unwrap();
        found.iter().map(|record| record.run_id.to_string()).collect()
    };
    assert_eq!(names(AskedRecords::TakenBy(run("a"))).await, ["b", "c"]);
    assert_eq!(names(AskedRecords::Newest).await, ["c"]);
    assert_eq!(names(AskedRecords::Run(run("x"))).await, [""; 0]);
    let b = chat("b", "x");
    for id in [b.entry_id, b.fresh_id.to_string()] {
        assert!(names(AskedRecords::Entry(id)).await.contains(&"b".to_owned()));
    }
    assert_eq!(names(AskedRecords::Entry("x".to_owned())).await, [""; 0]);
    let [record] =
        <[_; 1]>::try_from(journal.message_records(AskedRecords::Run(run("a")), 10).await.unwrap()).unwrap();
    let row = chat("a", "x");
    let expected = MessageRecord {
        run_id: run("a"),
        kind: "chat".to_owned(),
        session_key: row.session_key.to_string(),
        session_id: Some(SessionId::new("sid")),
        entry_ids: [row.entry_id, row.fresh_id.to_string()],
        accepted_at: 1_000,
        queue_mode: Some("collect".to_owned()),
        taken_by: None,
        attempts: 1,
        stop: None,
        is_cut: false,
    };
    assert_eq!(record, expected);
}

async fn entries_are_those_of_all_that_were_accepted_since(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for (name, accepted_at) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
        let (entry_id, fresh_id) = (format!("entry-{name}"), SessionId::new(format!("fresh-{name}")));
        accept(&journal, InboxRow { accepted_at, entry_id, fresh_id, ..chat(name, "x") }).await;
    }
    journal.update(Update::Finish(finished("b", "x"), Vec::new())).await.unwrap();
    let expected = [("entry-b", "b"), ("fresh-b", "b"), ("entry-c", "c"), ("fresh-c", "c")];
    let expected = expected.map(|(entry, name)| (entry.to_owned(), run(name)));
    assert_eq!(journal.entries_since(2_000).await.unwrap(), HashMap::from(expected));
}

pub(super) fn note(id: &str) -> NewDelivery {
    NewDelivery {
        delivery: Delivery {
            id: id.to_owned(),
            address: Address {
                channel: "fake".to_owned(),
                account: "default".to_owned(),
                target: "x".to_owned(),
                thread: Some("7".to_owned()),
            },
            session_key: Some(SessionKey::main(&AgentId::default(), "main")),
            author: Author::Gateway,
            part: Part::text(format!("text of {id}")),
            expires_at: Some(9_000),
            asked: Some([7; 32]),
        },
        accepted_at: 1_000,
        not_before: 1_000,
    }
}

/// Returns the ids of deliveries that are open after a number.
async fn open_ids(journal: &Arc<dyn Journal>, after: i64) -> Vec<String> {
    let mut ids = Vec::new();
    for open in journal.open_deliveries(after).await.unwrap() {
        let whole = journal.stored_delivery(open.number).await.unwrap().expect("it is there");
        ids.push(whole.into_id());
    }
    ids
}

fn sending(id: &str, attempts: u32) -> Update {
    Update::Sending { id: id.to_owned(), attempts }
}

fn tried(id: &str, verdict: DeliveryVerdict) -> Update {
    Update::Tried { id: id.to_owned(), verdict, now: openclaw_sessions::time::now_ms() }
}

fn sent(id: &str) -> Update {
    tried(
        id,
        DeliveryVerdict::Sent(Receipt { message_ids: vec![format!("id-of-{id}")], ..Receipt::default() }),
    )
}

fn retry(id: &str, state: DeliveryState) -> Update {
    let pause = std::time::Duration::from_secs(5);
    let verdict = DeliveryVerdict::Retry(Retry {
        state,
        pause,
        attempts: 1,
        may_hurry: true,
        reason: "busy".to_owned(),
    });
    Update::Tried { id: id.to_owned(), verdict, now: 1_000 }
}

fn failed(id: &str) -> Update {
    tried(id, DeliveryVerdict::refused("no such chat".to_owned()))
}

async fn status(journal: &Arc<dyn Journal>, id: &str) -> DeliveryStatus {
    journal.delivery(id).await.unwrap().expect("it is known")
}

async fn a_delivery_is_found_again_as_it_was(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    assert_eq!(journal.deliver(note("a")).await, Ok(DeliveryInsert::New));
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let expected = DeliveryStatus {
        id: "a".to_owned(),
        state: DeliveryState::Pending,
        attempts: 0,
        receipt: None,
        error: None,
        session_key: Some(SessionKey::main(&AgentId::default(), "main")),
        accepted_at: 1_000,
        may_repeat: false,
        next_at: Some(1_000),
        ended_at: None,
        asked: Some([7; 32]),
        address: note("a").delivery.address,
        author: Author::Gateway,
        given_up: None,
        left_out: None,
    };
    assert_eq!(status(&journal, "a").await, expected);
    let mut other = note("a");
    other.delivery.part = Part::text("another text");
    assert_eq!(journal.deliver(other).await, Ok(DeliveryInsert::Known(Box::new(expected))));
    let [OpenDelivery { number, lane, thread, next_at, is_paced }] =
        <[_; 1]>::try_from(journal.open_deliveries(0).await.unwrap()).unwrap();
    assert_eq!((lane, next_at), ((&note("a").delivery.address).into(), 1_000));
    assert_eq!((thread.as_deref(), is_paced), (Some("7"), false));
    let NewDelivery { delivery, accepted_at, .. } = note("a");
    let whole = StoredDelivery {
        delivery: Ok(delivery),
        state: DeliveryState::Pending,
        attempts: 0,
        accepted_at,
        is_cut_off: false,
        hold: None,
    };
    assert_eq!(journal.stored_delivery(number).await.unwrap(), Some(whole));
    assert_eq!(journal.stored_delivery(number + 1).await.unwrap(), None);
    assert_eq!(journal.delivery("b").await.unwrap(), None);
}

async fn deliveries_are_open_in_the_order_of_acceptance_until_they_are_over(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["c", "a", "d", "b"] {
        journal.deliver(note(id)).await.unwrap();
    }
    assert_eq!(open_ids(&journal, 0).await, ["c", "a", "d", "b"]);
    for update in [sending("c", 1), sent("c"), failed("a"), sending("d", 1)] {
        assert_eq!(journal.update(update.clone()).await, Ok(true), "{update:?}");
    }
    assert_eq!(open_ids(&journal, 0).await, ["d", "b"]);
    let first = journal.open_deliveries(0).await.unwrap()[0].number;
    assert_eq!(open_ids(&journal, first).await, ["b"]);
    journal.update(retry("d", DeliveryState::Pending)).await.unwrap();
    assert_eq!(journal.open_deliveries(0).await.unwrap()[0].next_at, 6_000);
}

async fn a_pause_before_a_delivery_is_kept_until_it_is_tried(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    journal.deliver(note("a")).await.unwrap();
    let paced = NewDelivery { not_before: 3_500, ..note("b") };
    assert_eq!(journal.deliver(paced).await, Ok(DeliveryInsert::New));
    let paced = |open: Vec<OpenDelivery>| {
        open.into_iter().map(|open| (open.next_at, open.is_paced)).collect::<Vec<_>>()
    };
    assert_eq!(paced(journal.open_deliveries(0).await.unwrap()), [(1_000, false), (3_500, true)]);
    assert!(status(&journal, "b").await.is_paced());
    journal.close().await;
    let journal = open(dir.path()).unwrap().journal;
    assert_eq!(paced(journal.open_deliveries(0).await.unwrap()), [(1_000, false), (3_500, true)]);
    for update in [sending("b", 1), retry("b", DeliveryState::Pending)] {
        assert_eq!(journal.update(update.clone()).await, Ok(true), "{update:?}");
    }
    assert_eq!(paced(journal.open_deliveries(0).await.unwrap()), [(1_000, false), (6_000, false)]);
}

async fn a_delivery_takes_no_step_that_may_not_follow(open: OpenFn) {
    use DeliveryState::{Pending, Uncertain};
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    journal.deliver(note("a")).await.unwrap();
    let revive = || Update::Revive { id: "a".to_owned(), now: 1 };
    let discard = || Update::Discard { id: "a".to_owned(), now: 4_500 };
    let steps = [
        // Before it was tried, it can't have arrived.
        (sent("a"), false),
        (retry("a", Pending), false),
        (retry("a", Uncertain), false),
        (revive(), false),
        (sending("a", 1), true),
        (sending("a", 2), false),
        (discard(), false),
        (retry("a", Uncertain), true),
        // A delivery that may have arrived is never taken for unsent.
        (retry("a", Pending), false),
        (sending("a", 2), true),
        (sent("a"), true),
        (sending("a", 3), false),
        (failed("a"), false),
        (revive(), false),
        (discard(), false),
        (sending("unknown", 1), false),
    ];
    for (update, may_follow) in steps {
        let before = status(&journal, "a").await;
        assert_eq!(journal.update(update.clone()).await, Ok(may_follow), "{update:?}");
        assert_eq!(status(&journal, "a").await != before, may_follow, "{update:?}");
    }
    let DeliveryStatus { state, attempts, receipt, error, .. } = status(&journal, "a").await;
    let receipt = receipt.expect("it was sent").message_ids;
    assert_eq!((state, attempts, error, receipt), (DeliveryState::Sent, 2, None, vec!["id-of-a".to_owned()]));
}

async fn a_delivery_that_was_being_sent_is_uncertain_after_a_start(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["a", "b", "c"] {
        journal.deliver(note(id)).await.unwrap();
    }
    for update in [sending("a", 1), sending("b", 1), sent("b")] {
        journal.update(update).await.unwrap();
    }
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let mut states = Vec::new();
    for id in ["a", "b", "c"] {
        states.push(status(&journal, id).await.state);
    }
    assert_eq!(states, [DeliveryState::Uncertain, DeliveryState::Sent, DeliveryState::Pending]);
}

async fn blocks_of_a_run_that_did_not_end_are_not_sent_after_a_start(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for run_id in ["open", "over"] {
        accept(&journal, chat(run_id, "hi")).await;
    }
    journal.update(Update::Finish(finished("over", "done"), Vec::new())).await.unwrap();
    let ids = ["open:b1.1", "open:b2.1", "open:1", "over:b1.1", "opener:b1.1"];
    for id in ids {
        journal.deliver(note(id)).await.unwrap();
    }
    journal.update(sending("open:b1.1", 1)).await.unwrap();
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let mut left = Vec::new();
    for id in ids {
        left.extend(journal.delivery(id).await.unwrap().map(|status| status.id));
    }
    assert_eq!(
        left,
        ["open:b1.1", "open:1", "over:b1.1", "opener:b1.1"],
        "what may have been seen is looked after"
    );
}

async fn a_failed_delivery_is_listed_revived_or_discarded(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["a", "b", "c"] {
        journal.deliver(note(id)).await.unwrap();
        journal.update(sending(id, 5)).await.unwrap();
        journal.update(failed(id)).await.unwrap();
    }
    let listed = async |most| {
        let failed = journal.failed_deliveries(most).await.unwrap();
        failed.into_iter().map(|failed| (failed.status.id, failed.status.error.unwrap())).collect::<Vec<_>>()
    };
    let row = |id: &str| (id.to_owned(), "no such chat".to_owned());
    assert_eq!(listed(2).await, [row("c"), row("b")], "the newest first");
    assert_eq!(journal.update(Update::Revive { id: "b".to_owned(), now: 4_000 }).await, Ok(true));
    assert_eq!(journal.update(Update::Discard { id: "c".to_owned(), now: 4_500 }).await, Ok(true));
    assert_eq!(listed(9).await, [row("a")]);
    let [revived] = <[_; 1]>::try_from(journal.open_deliveries(0).await.unwrap()).unwrap();
    assert_eq!(revived.next_at, 4_000);
    let StoredDelivery { delivery, attempts, .. } =
        journal.stored_delivery(revived.number).await.unwrap().unwrap();
    let delivery = delivery.unwrap();
    assert_eq!((delivery.id.as_str(), delivery.expires_at, attempts), ("b", None, 0));
    assert_eq!(status(&journal, "b").await.error, None, "the old reason is none any more");
    let discarded = status(&journal, "c").await;
    assert_eq!(
        (discarded.state, discarded.given_up, discarded.error.as_deref()),
        (DeliveryState::Failed, Some(DeliveryFailure::Discarded), Some("no such chat"))
    );
    for past in [
        Update::Discard { id: "c".to_owned(), now: 4_500 },
        Update::Revive { id: "c".to_owned(), now: 5_000 },
    ] {
        assert_eq!(journal.update(past).await, Ok(false), "nothing of it is left to be sent");
    }
    assert_eq!(journal.deliver(note("c")).await, Ok(DeliveryInsert::Known(Box::new(discarded))));
    let Address { channel, account, .. } = note("c").delivery.address;
    assert_eq!(journal.account_counts(&channel, &account).await.unwrap().failed, 1, "a alone");
}

async fn a_conversation_whose_first_delivery_keeps_failing_is_late(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let to = |id: &str, target: &str| {
        let mut new = note(id);
        target.clone_into(&mut new.delivery.address.target);
        new
    };
    for (id, target) in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "z"), ("e", "z")] {
        journal.deliver(to(id, target)).await.unwrap();
    }
    let fails = async |id: &str, now: i64| {
        journal.update(sending(id, 1)).await.unwrap();
        let Update::Tried { id, verdict, .. } = retry(id, DeliveryState::Pending) else { unreachable!() };
        journal.update(Update::Tried { id, verdict, now }).await.unwrap();
    };
    let late = async || {
        let AccountCounts { late, late_total, .. } = journal.account_counts("fake", "default").await.unwrap();
        let of = |one: LateConversation| (one.target, one.id, one.since, one.error, one.waiting);
        (late.into_iter().map(of).collect::<Vec<_>>(), late_total)
    };
    let row = |target: &str, id: &str, waiting| {
        (target.to_owned(), id.to_owned(), 1_000, "busy".to_owned(), waiting)
    };
    // A delivery that is tried again soon is not late, and neither is one that only waits behind
    // it.
    fails("a", 2_000).await;
    fails("e", 80_000).await;
    assert_eq!(late().await, (vec![], 0));
    fails("a", 56_000).await;
    assert_eq!(late().await, (vec![row("x", "a", 2)], 1), "61 seconds later than it was accepted");
    journal.update(sending("a", 2)).await.unwrap();
    assert_eq!(late().await, (vec![row("x", "a", 2)], 1), "also while it is tried");
    fails("d", 80_000).await;
    assert_eq!(late().await, (vec![row("x", "a", 2), row("z", "d", 2)], 2));
    assert_eq!(journal.account_counts("fake", "other").await.unwrap().late_total, 0);
    journal.update(sent("a")).await.unwrap();
    assert_eq!(late().await, (vec![row("z", "d", 2)], 1));
    // Of many only some are listed, those that wait longest.
    for n in 0..7 {
        let (id, target) = (format!("many{n}"), format!("many{n}"));
        journal.deliver(to(&id, &target)).await.unwrap();
        fails(&id, 80_000).await;
    }
    let (listed, total) = late().await;
    assert_eq!((listed.len(), total, &listed[0], listed[4].0.as_str()), (5, 8, &row("z", "d", 2), "many3"));
}

/// Checks that the delivery's words replace it, at its place in the order, and that nothing of the
/// file is left to be sent.
async fn a_delivery_whose_file_is_refused_is_its_words_from_then_on(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["a", "b"] {
        journal.deliver(note(id)).await.unwrap();
    }
    let part = Part::text("the words\n\n(a note)");
    let refused = || {
        let verdict = DeliveryVerdict::WithoutFile {
            part: Box::new(part.clone()),
            left_out: "file x was not sent".to_owned(),
        };
        Update::Tried { id: "a".to_owned(), verdict, now: 2_000 }
    };
    assert_eq!(journal.update(refused()).await, Ok(false), "it was not tried");
    journal.update(sending("a", 3)).await.unwrap();
    assert_eq!(refused().durability(), CommitDurability::Synced);
    assert_eq!(journal.update(refused()).await, Ok(true));
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    assert_eq!(open_ids(&journal, 0).await, ["a", "b"]);
    let first = journal.open_deliveries(0).await.unwrap()[0].number;
    let StoredDelivery { delivery, state, attempts, .. } =
        journal.stored_delivery(first).await.unwrap().unwrap();
    assert_eq!((delivery.unwrap().part, state, attempts), (part, DeliveryState::Pending, 0));
    journal.update(sending("a", 1)).await.unwrap();
    journal.update(sent("a")).await.unwrap();
    let DeliveryStatus { state, error, left_out, .. } = status(&journal, "a").await;
    assert_eq!((state, error, left_out.as_deref()), (DeliveryState::Sent, None, Some("file x was not sent")));
}

/// Checks that a platform's request to wait holds the conversation, also across a restart.
async fn what_a_platform_asked_for_holds_the_conversation(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let mut elsewhere = note("elsewhere:1");
    elsewhere.delivery.address.target = "elsewhere".to_owned();
    for new in [note("a:1"), note("a:2"), note("b:1"), elsewhere] {
        journal.deliver(new).await.unwrap();
    }
    let held = async |journal: &Arc<dyn Journal>| {
        let mut found = Vec::new();
        for open in journal.open_deliveries(0).await.unwrap() {
            let stored = journal.stored_delivery(open.number).await.unwrap().unwrap();
            found.extend(stored.hold.map(|hold| (hold, stored.into_id())));
        }
        found
    };
    assert_eq!(held(&journal).await, []);
    let put_off = |id: &str, hold: Option<u64>| {
        let hold = hold.map(Duration::from_secs);
        tried(id, DeliveryVerdict::Failed { reason: "busy".to_owned(), why: DeliveryFailure::PutOff, hold })
    };
    journal.update(sending("a:1", 1)).await.unwrap();
    journal.update(put_off("a:1", Some(900))).await.unwrap();
    let now = status(&journal, "a:1").await.ended_at.unwrap();
    let hold = Hold { asked_at: now, until: now + 900_000 };
    let expect = [(hold, "a:2".to_owned()), (hold, "b:1".to_owned())];
    assert_eq!(held(&journal).await, expect);
    // The parts behind it ask for nothing.
    journal.update(put_off("a:2", None)).await.unwrap();
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    assert_eq!(held(&journal).await, expect[1..]);
    // A person does not wait for it.
    assert_eq!(journal.update(Update::Revive { id: "a:1".to_owned(), now }).await, Ok(true));
    assert_eq!(held(&journal).await, []);
}

async fn what_waits_is_thrown_away_for_good_but_not_while_it_is_sent(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["a", "b"] {
        journal.deliver(note(id)).await.unwrap();
    }
    let named = |id: &str| id.to_owned();
    let discard = |id: &str| Update::Discard { id: named(id), now: 5_000 };
    let hasten = |id: &str| Update::Hasten { id: named(id), now: 2_000 };
    let steps = [
        (discard("a"), true),
        (discard("a"), false),
        (hasten("a"), false),
        (sending("a", 1), false),
        (sending("b", 1), true),
        (hasten("b"), false),
        (discard("b"), false),
        (retry("b", DeliveryState::Uncertain), true),
        (hasten("b"), true),
    ];
    for (update, may_follow) in steps {
        assert_eq!(journal.update(update.clone()).await, Ok(may_follow), "{update:?}");
    }
    let thrown = status(&journal, "a").await;
    assert_eq!((thrown.state, thrown.given_up), (DeliveryState::Failed, Some(DeliveryFailure::Discarded)));
    assert_eq!(thrown.ended_at, Some(5_000));
    let waiting = journal.waiting_deliveries().await.unwrap();
    let [waits] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((waits.status.id.as_str(), waits.status.next_at), ("b", Some(2_000)));
    assert!(waits.part.is_some());
    for (update, may_follow) in [
        (discard("b"), true),
        // The platform was being asked for its fate.
        (retry("b", DeliveryState::Uncertain), false),
        (Update::Revive { id: named("b"), now: 6_000 }, false),
    ] {
        assert_eq!(journal.update(update.clone()).await, Ok(may_follow), "{update:?}");
    }
    assert!(status(&journal, "b").await.error.unwrap().ends_with("it may have arrived"));
    assert_eq!(journal.waiting_deliveries().await.unwrap(), []);
    // Nothing of it holds up what comes behind it.
    journal.deliver(note("c")).await.unwrap();
    let number = journal.open_deliveries(0).await.unwrap()[0].number;
    assert_eq!(journal.stored_delivery(number).await.unwrap().unwrap().hold, None);
}

async fn what_waits_behind_another_delivery_is_known(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let mut elsewhere = note("elsewhere");
    elsewhere.delivery.address.target = "elsewhere".to_owned();
    for new in [note("a"), elsewhere, note("b"), note("c")] {
        journal.deliver(new).await.unwrap();
    }
    let ahead = async |id: &str| journal.delivery_ahead_of(id).await.unwrap();
    let a = || Some("a".to_owned());
    for (id, expect) in [("a", None), ("elsewhere", None), ("b", a()), ("c", a()), ("unknown", None)] {
        assert_eq!(ahead(id).await, expect, "{id}");
    }
    journal.update(sending("a", 1)).await.unwrap();
    journal.update(sent("a")).await.unwrap();
    assert_eq!((ahead("a").await, ahead("b").await, ahead("c").await), (None, None, Some("b".to_owned())));
}

async fn what_stands_behind_a_part_that_was_put_off_is_cut_off(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let ids = ["run:1", "run:2", "run:3", "other:4", "runner:5"];
    for id in ids {
        journal.deliver(note(id)).await.unwrap();
    }
    let mut elsewhere = note("run:6");
    elsewhere.delivery.address.target = "elsewhere".to_owned();
    journal.deliver(elsewhere).await.unwrap();
    let cut_off = async || {
        let mut found = Vec::new();
        for open in journal.open_deliveries(0).await.unwrap() {
            let stored = journal.stored_delivery(open.number).await.unwrap().unwrap();
            found.extend(stored.is_cut_off.then(|| stored.into_id()));
        }
        found
    };
    let put_off = |why| tried("run:2", DeliveryVerdict::failed("busy".to_owned(), why));
    let revive = Update::Revive { id: "run:2".to_owned(), now: 1 };
    for (why, expect, state) in [
        (DeliveryFailure::Refused, Vec::new(), DeliveryState::Pending),
        (DeliveryFailure::PutOff, vec!["run:3"], DeliveryState::Pending),
        (DeliveryFailure::Unknown, vec!["run:3"], DeliveryState::Uncertain),
    ] {
        journal.update(sending("run:2", 1)).await.unwrap();
        journal.update(put_off(why)).await.unwrap();
        assert_eq!(cut_off().await, expect, "{why:?}");
        assert_eq!(status(&journal, "run:2").await.given_up, Some(why));
        assert_eq!(journal.update(revive.clone()).await, Ok(true));
        let DeliveryStatus { state: revived, given_up, .. } = status(&journal, "run:2").await;
        assert_eq!((revived, given_up), (state, None), "what may have arrived still may have");
        assert_eq!(cut_off().await, Vec::<String>::new());
    }
}

async fn a_closed_journal_refuses_everything(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    accept(&journal, chat("a", "x")).await;
    let (reserved, late) = (journal.reserve().await.unwrap(), stored(chat("b", "x")).await);
    journal.close().await;
    journal.close().await;
    assert_eq!(reserved(late, CommitDurability::Synced).await, Err(JournalError::Closed));
    assert_eq!(journal.reserve().await.err(), Some(JournalError::Closed));
    assert_eq!(journal.deliver(note("a")).await, Err(JournalError::Closed));
    assert_eq!(journal.update(Update::Attempt(run("a"))).await, Err(JournalError::Closed));
    assert_eq!(journal.message(&run("a")).await, Err(JournalError::Closed));
    assert_eq!(journal.payload(&run("a")).await, Err(JournalError::Closed));
    assert_eq!(journal.entries_since(0).await, Err(JournalError::Closed));
    assert_eq!(journal.delivery("a").await, Err(JournalError::Closed));
    assert_eq!(journal.failed_deliveries(9).await, Err(JournalError::Closed));
    assert_eq!(journal.open_deliveries(0).await, Err(JournalError::Closed));
    assert_eq!(journal.stored_delivery(1).await, Err(JournalError::Closed));
    assert_eq!(unfinished(open, dir.path()), ["a"]);
}

/// Checks that no stop of the machine can undo a change that a client or a platform was told of.
#[test]
fn what_is_acknowledged_is_synced_before() {
    let run = || run("a");
    let rows = [
        (Update::Settle, CommitDurability::Synced),
        (Update::Abort(vec![run()], AbortReason::Stop), CommitDurability::Synced),
        (sending("a", 1), CommitDurability::Synced),
        (sent("a"), CommitDurability::Synced),
        (failed("a"), CommitDurability::Synced),
        (retry("a", DeliveryState::Pending), CommitDurability::Written),
        (Update::Begin(run(), SessionId::new("s")), CommitDurability::Written),
        (Update::Finish(finished("a", "x"), Vec::new()), CommitDurability::Written),
        (Update::Attempt(run()), CommitDurability::Written),
        (Update::FinishAll(finished("a", "x"), vec![run()], Vec::new()), CommitDurability::Written),
        (Update::Gather { leader: run(), others: vec![], answer_to: None }, CommitDurability::Synced),
        (
            Update::Cut { run_id: run(), arrivals: Box::default(), dropped: 1, now: 1 },
            CommitDurability::Synced,
        ),
        (
            Update::Drop { record: finished("a", "x"), rule: DropRule::New, arrivals: Box::default() },
            CommitDurability::Synced,
        ),
    ];
    for (update, expected) in rows {
        assert_eq!(update.durability(), expected, "{update:?}");
    }
}
