//! The part of the suite about rows that are forgotten.

use openclaw_channels::InboundMessage;

use super::arrivals::arrive_one;
use super::*;
use crate::arrival::{ArrivalInsert, Fate, NewArrival};
use crate::journal::rows::{Forgettable, Removal, Retention, retentions};
use crate::rights::ANYBODY;
use crate::testing::group_event;

on_each! {
    finished_messages_go_when_they_are_old_or_too_many_and_unfinished_ones_stay
    a_crowd_that_is_dropped_takes_no_room_from_what_waits_or_was_heard
    what_has_buttons_and_what_the_gateway_sent_for_itself_is_known_for_a_month
    promises_that_ended_with_their_process_are_forgotten_after_a_day
}

/// Forgets rows.
async fn forget(journal: &Arc<dyn Journal>, retention: Retention) {
    let (reply, answer) = tokio::sync::oneshot::channel();
    let forget = move |rows: &dyn JournalRows| reply.send(rows.remove(Removal::Old(retention))).unwrap();
    journal.read(Box::new(forget)).await.unwrap();
    answer.await.unwrap().unwrap();
}

fn now() -> i64 {
    openclaw_sessions::time::now_ms()
}

async fn finished_messages_go_when_they_are_old_or_too_many_and_unfinished_ones_stay(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let now = now();
    let finish = async |name: &str, ended_at| {
        let record = RunRecord { ended_at: now + ended_at, ..finished(name, "x") };
        journal.update(Update::Finish(record, Vec::new())).await.unwrap();
    };
    for (name, ended_at) in [("1", 100), ("2", 500), ("3", 600), ("4", 700)] {
        accept(&journal, chat(name, "x")).await;
        // Far in the future: pruning by today's clock leaves them alone.
        finish(name, ended_at).await;
    }
    accept(&journal, chat("5", "x")).await;
    accept(&journal, chat("6", "x")).await;
    finish("6", 100).await;
    let left = async |ended_before, keep_rows| {
        let ended_before = now + ended_before;
        forget(&journal, Retention { of: Forgettable::Messages, ended_before, keep_rows }).await;
        let mut left = Vec::new();
        for name in ["1", "2", "3", "4", "5", "6"] {
            left.extend(journal.message(&run(name)).await.unwrap().map(|_| name));
        }
        left
    };
    assert_eq!(left(300, 100).await, ["2", "3", "4", "5", "6"], "up to one that stays");
    assert_eq!(left(300, 3).await, ["4", "5", "6"]);
    assert_eq!(left(800, 3).await, ["5"]);
}

async fn a_crowd_that_is_dropped_takes_no_room_from_what_waits_or_was_heard(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let now = now();
    let arrive = async |id: &str, fate: Option<Fate>| {
        let event = group_event(id, "-1", InboundMessage::default());
        arrive_one(&journal, NewArrival { event, received_at: now, fate }).await
    };
    let left = async |keep_rows| {
        for of in [Forgettable::Dropped, Forgettable::Heard] {
            forget(&journal, Retention { of, ended_before: now, keep_rows }).await;
        }
        let records = journal.arrival_records(None, 100).await.unwrap();
        records.into_iter().rev().map(|record| record.native_id).collect::<Vec<_>>()
    };
    arrive("waits", None).await;
    arrive("noted", Some(Fate::Noted)).await;
    arrive("heard", Some(Fate::Run(run("run")))).await;
    for n in 0..6 {
        arrive(&format!("stranger{n}"), Some(Fate::dropped("dm-policy"))).await;
    }
    assert_eq!(left(20).await.len(), 9);
    let few = ["waits", "noted", "heard", "stranger3", "stranger4", "stranger5"];
    assert_eq!(left(3).await, few, "the newest of each");
    assert_eq!(arrive("heard", None).await, ArrivalInsert::Known, "what was heard is not heard again");
    let here = group_event("", "-1", InboundMessage::default()).address;
    assert_eq!(journal.noted_arrivals(&here, i64::MAX, 10).await.unwrap().len(), 1);
    for n in 0..3 {
        arrive(&format!("noted{n}"), Some(Fate::Noted)).await;
    }
    let newest = ["waits", "stranger3", "stranger4", "stranger5", "noted0", "noted1", "noted2"];
    assert_eq!(left(3).await, newest, "what was heard is bounded too");
    for of in [Forgettable::Dropped, Forgettable::Heard] {
        forget(&journal, Retention { of, ended_before: now + 1, keep_rows: 9 }).await;
    }
    assert_eq!(left(9).await, ["waits"], "what is old goes");
}

/// Pressing their buttons gives commands, or says words with the rights of the buttons' maker.
async fn what_has_buttons_and_what_the_gateway_sent_for_itself_is_known_for_a_month(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let now = now();
    let buttons = || Author::Buttons(ANYBODY.clone());
    let rows = [
        ("own-29", Author::Gateway, 29),
        ("own-31", Author::Gateway, 31),
        ("buttons-29", buttons(), 29),
        ("buttons-31", buttons(), 31),
        ("agents-2", Author::Other, 2),
        ("agents-0", Author::Other, 0),
    ];
    for (id, author, days) in rows.clone() {
        let mut new = note(id);
        new.delivery.author = author;
        journal.deliver(new).await.unwrap();
        journal.update(sending(id, 1)).await.unwrap();
        let Update::Tried { id, verdict, .. } = sent(id) else { unreachable!() };
        let now = now - days * 24 * 60 * 60 * 1000;
        assert_eq!(journal.update(Update::Tried { id, verdict, now }).await, Ok(true));
    }
    journal.deliver(note("waits")).await.unwrap();
    for retention in retentions(now) {
        forget(&journal, retention).await;
    }
    let mut left = Vec::new();
    for id in rows.iter().map(|(id, ..)| *id).chain(["waits"]) {
        left.extend(journal.delivery(id).await.unwrap().map(|_| id));
    }
    assert_eq!(left, ["own-29", "buttons-29", "agents-0", "waits"]);
    forget(&journal, Retention { of: Forgettable::SentByGateway, ended_before: 0, keep_rows: 0 }).await;
    assert_eq!(journal.delivery("own-29").await, Ok(None), "too many");
    assert!(journal.delivery("buttons-29").await.unwrap().is_some(), "another kind");
}

async fn promises_that_ended_with_their_process_are_forgotten_after_a_day(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["a", "b"] {
        super::notices::promised(&journal, id, "").await;
    }
    let (crashed, opened) = restarted(open, dir.path());
    assert_eq!(opened.notices.lost.len(), 2);
    super::notices::promised(&opened.journal, "c", "").await;
    let lost = Forgettable::LostPromises;
    forget(&opened.journal, Retention { of: lost, ended_before: -1, keep_rows: 1 }).await;
    let (_crashed, opened) = restarted(open, crashed.path());
    let names: Vec<_> = opened.notices.lost.iter().map(|lost| lost.name.as_str()).collect();
    assert_eq!(names, ["name-b", "name-c"], "the newest stays, and one that is not lost");
}
