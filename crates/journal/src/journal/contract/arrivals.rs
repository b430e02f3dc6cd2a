//! The part of the suite about events of chat platforms, and about the answers that are stored with the end of a run.

use openclaw_channels::{Inbound, InboundEvent, InboundMessage};

use super::*;
use crate::arrival::{ArrivalInsert, ArrivalRecord, Arrivals, Fate, NewArrival, Routed, StoredArrival};
use crate::delivery::{Author, DeliveryState, SentMessage};
use crate::rights::{ANYBODY, Rights};
use crate::testing::group_event;

on_each! {
    events_wait_in_the_order_of_arrival_until_they_are_decided_about
    an_event_may_come_with_what_became_of_it
    an_event_is_taken_once_also_when_it_is_decided_about
    an_event_is_known_by_its_bot_whatever_the_account_is_called
    what_was_stored_without_a_bot_is_known_by_what_it_is_about
    an_accepted_message_takes_its_events_with_it
    what_is_noted_waits_for_its_conversation_and_is_told_once
    what_is_noted_and_edited_says_what_it_says_now
    what_was_sent_from_here_is_known
    events_are_found_by_message_event_and_run_and_each_has_one_fate
    answers_are_stored_with_the_end_of_their_run_and_never_again
}

fn event(native_id: &str, target: &str, thread: Option<&str>) -> Inbound {
    let message = InboundMessage {
        message_id: format!("m-{native_id}"),
        text: format!("text of {native_id}"),
        ..InboundMessage::default()
    };
    let mut event = Inbound { at: 500, ..group_event(native_id, target, message) };
    event.address.thread = thread.map(str::to_owned);
    event
}

fn routed() -> Routed {
    Routed { session_key: "agent:main:main".to_owned(), matched_by: "binding.peer".to_owned() }
}

async fn arrive(journal: &Arc<dyn Journal>, events: Vec<Inbound>) -> Vec<ArrivalInsert> {
    let new = events.into_iter().map(|event| NewArrival { event, received_at: 600, fate: None });
    journal.arrive(new.collect()).await.unwrap().unwrap()
}

pub(super) async fn arrive_one(journal: &Arc<dyn Journal>, new: NewArrival) -> ArrivalInsert {
    journal.arrive(vec![new]).await.unwrap().unwrap().remove(0)
}

/// Inserts events and returns their numbers.
async fn new(journal: &Arc<dyn Journal>, ids: &[&str]) -> Vec<i64> {
    let inserts = arrive(journal, ids.iter().map(|id| event(id, "-1", None)).collect()).await;
    let number = |insert: &ArrivalInsert| match insert {
        ArrivalInsert::New(number) => *number,
        ArrivalInsert::Known => panic!("it is new"),
    };
    inserts.iter().map(number).collect()
}

fn ids(found: &[StoredArrival]) -> Vec<String> {
    found.iter().map(|arrival| arrival.event.as_ref().unwrap().native_id.clone()).collect()
}

async fn decide(journal: &Arc<dyn Journal>, numbers: &[i64], fate: Fate) -> bool {
    journal
        .update(Update::Decided { numbers: numbers.to_vec(), fate, now: openclaw_sessions::time::now_ms() })
        .await
        .unwrap()
}

async fn events_wait_in_the_order_of_arrival_until_they_are_decided_about(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let numbers = new(&journal, &["a", "b", "c"]).await;
    assert!(decide(&journal, &numbers[1..2], Fate::dropped("dm-policy")).await);
    assert!(!decide(&journal, &numbers[1..2], Fate::Noted).await, "what is decided stays");
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let waiting = journal.waiting_arrivals(0, 10).await.unwrap();
    assert_eq!(ids(&waiting), ["a", "c"]);
    assert_eq!(
        waiting[0],
        StoredArrival { number: numbers[0], event: Ok(event("a", "-1", None)), received_at: 600 }
    );
    assert_eq!(ids(&journal.waiting_arrivals(numbers[0], 10).await.unwrap()), ["c"]);
    assert_eq!(ids(&journal.waiting_arrivals(0, 1).await.unwrap()), ["a"]);
}

async fn an_event_may_come_with_what_became_of_it(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let now = openclaw_sessions::time::now_ms();
    let new =
        |id: &str, fate: Option<Fate>| NewArrival { event: event(id, "-1", None), received_at: now, fate };
    let dropped = Fate::dropped("dm-policy");
    let events = vec![new("a", Some(dropped.clone())), new("b", None), new("c", Some(Fate::Noted))];
    journal.arrive(events).await.unwrap().unwrap();
    assert_eq!(journal.arrive(vec![new("a", None)]).await.unwrap(), Some(vec![ArrivalInsert::Known]));
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    assert_eq!(ids(&journal.waiting_arrivals(0, 10).await.unwrap()), ["b"]);
    let here = event("", "-1", None).address;
    assert_eq!(ids(&journal.noted_arrivals(&here, i64::MAX, 10).await.unwrap()), ["c"]);
    let record = journal.arrival_records(Some("a"), 10).await.unwrap().remove(0);
    assert_eq!((record.fate, record.decided_at, record.again), (Some(dropped), Some(now), 1));
    let tally = journal.arrival_tally().await.unwrap();
    let expect = [("dropped", 1), ("noted", 1), ("waiting", 1)].map(|(fate, count)| (fate.to_owned(), count));
    assert_eq!(tally, expect);
}

async fn an_event_is_taken_once_also_when_it_is_decided_about(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let numbers = new(&journal, &["a"]).await;
    decide(&journal, &numbers, Fate::handled("pairing")).await;
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let again = arrive(&journal, vec![event("a", "-1", None), event("b", "-1", None)]).await;
    assert!(matches!(again[..], [ArrivalInsert::Known, ArrivalInsert::New(number)] if number > numbers[0]));
    let mut other = event("a", "-1", None);
    other.address.account = "work".to_owned();
    assert!(
        matches!(arrive(&journal, vec![other]).await[..], [ArrivalInsert::New(_)]),
        "accounts have ids of their own"
    );
    let records = journal.arrival_records(Some("a"), 10).await.unwrap();
    let again: Vec<u32> = records.iter().map(|record| record.again).collect();
    assert_eq!(again, [0, 1], "how often it was brought once more is told");
}

/// An event that the bot brings to an account.
fn of_bot(unique_id: Option<&str>, account: &str, target: &str) -> Inbound {
    let mut event = event("a", target, None);
    event.unique_id = unique_id.map(str::to_owned);
    event.address.account = account.to_owned();
    event
}

async fn an_event_is_known_by_its_bot_whatever_the_account_is_called(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    // Two of one name, for two bots; a later event of the first bot has its number again.
    let first = [of_bot(Some("1:a:x"), "default", "-1"), of_bot(Some("2:a:x"), "default", "-1")];
    let anew = of_bot(Some("1:a:y"), "default", "-1");
    for event in first.iter().chain([&anew]) {
        assert!(
            matches!(arrive(&journal, vec![event.clone()]).await[..], [ArrivalInsert::New(_)]),
            "{event:?}"
        );
    }
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let renamed = ["1:a:x", "2:a:x", "1:a:y"].map(|id| of_bot(Some(id), "work", "-1"));
    assert_eq!(arrive(&journal, renamed.to_vec()).await, [ArrivalInsert::Known; 3]);
    let mut elsewhere = of_bot(Some("1:a:x"), "default", "-1");
    elsewhere.address.channel = "slack".to_owned();
    assert!(matches!(arrive(&journal, vec![elsewhere]).await[..], [ArrivalInsert::New(_)]));
    let records = journal.arrival_records(Some("a"), 10).await.unwrap();
    assert_eq!(records.iter().map(|record| record.again).collect::<Vec<_>>(), [0, 1, 1, 1]);
    assert_eq!(records[3].identity, "telegram\n\n1:a:x");
}

async fn what_was_stored_without_a_bot_is_known_by_what_it_is_about(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    arrive(&journal, vec![of_bot(None, "default", "-1")]).await;
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let rows = [
        (of_bot(Some("1:a:x"), "default", "-1"), true),
        (of_bot(None, "default", "-1"), true),
        // The number begins anew, with something else.
        (of_bot(Some("1:a:y"), "default", "-2"), false),
        (of_bot(Some("1:a:z"), "work", "-1"), false),
    ];
    for (event, is_known) in rows {
        let came = arrive(&journal, vec![event.clone()]).await;
        assert_eq!(came == [ArrivalInsert::Known], is_known, "{event:?}");
    }
    let first = journal.arrival_records(None, 10).await.unwrap().pop().unwrap();
    assert_eq!((first.identity.as_str(), first.again), ("telegram\ndefault\na", 2));
}

async fn an_accepted_message_takes_its_events_with_it(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let numbers = new(&journal, &["a", "b", "c"]).await;
    let mut row = chat("run-1", "x");
    row.payload.arrivals =
        Arrivals { said: numbers[..2].to_vec(), context: Vec::new(), route: Some(routed()) };
    assert_eq!(accept(&journal, row).await, Insert::New);
    let (_crashed, OpenedJournal { journal, unfinished, .. }) = restarted(open, dir.path());
    assert_eq!(unfinished.len(), 1);
    assert_eq!(ids(&journal.waiting_arrivals(0, 10).await.unwrap()), ["c"]);
    let fates: Vec<_> = journal.arrival_records(Some("run-1"), 10).await.unwrap();
    assert_eq!(fates.iter().map(|record| record.native_id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert!(fates.iter().all(|record| record.fate == Some(Fate::Run(run("run-1")))));
    assert!(fates.iter().all(|record| record.route == Some(routed())), "it is told where it was led");
}

async fn what_is_noted_waits_for_its_conversation_and_is_told_once(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let numbers = new(&journal, &["a", "b", "c"]).await;
    let threads = vec![event("other", "-2", None), event("topic", "-1", Some("5"))];
    let elsewhere: Vec<i64> = arrive(&journal, threads)
        .await
        .iter()
        .filter_map(|insert| if let ArrivalInsert::New(number) = insert { Some(*number) } else { None })
        .collect();
    decide(&journal, &[numbers.clone(), elsewhere].concat(), Fate::Noted).await;
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let here = event("", "-1", None).address;
    assert_eq!(ids(&journal.noted_arrivals(&here, i64::MAX, 10).await.unwrap()), ["a", "b", "c"]);
    assert_eq!(ids(&journal.noted_arrivals(&here, i64::MAX, 2).await.unwrap()), ["b", "c"], "the newest");
    let before_last = numbers.last().copied().unwrap();
    assert_eq!(
        ids(&journal.noted_arrivals(&here, before_last, 10).await.unwrap()),
        ["a", "b"],
        "what was said before"
    );
    let topic = Address { thread: Some("5".to_owned()), ..here.clone() };
    assert_eq!(ids(&journal.noted_arrivals(&topic, i64::MAX, 10).await.unwrap()), ["topic"]);
    let mut row = chat("run-1", "x");
    row.payload.arrivals = Arrivals { said: Vec::new(), context: numbers[..2].to_vec(), route: None };
    accept(&journal, row).await;
    assert_eq!(
        ids(&journal.noted_arrivals(&here, i64::MAX, 10).await.unwrap()),
        ["c"],
        "what was told is not told again"
    );
}

async fn what_is_noted_and_edited_says_what_it_says_now(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let numbers = new(&journal, &["a", "b", "c"]).await;
    decide(&journal, &numbers[..2], Fate::Noted).await;
    let edit = |message: &str, target: &str| Update::Reworded {
        conversation: event("", target, None).address,
        message_id: message.to_owned(),
        text: "other words".to_owned(),
    };
    assert_eq!(journal.update(edit("m-b", "-1")).await, Ok(true));
    assert_eq!(journal.update(edit("m-a", "-2")).await, Ok(false), "another conversation");
    assert_eq!(journal.update(edit("m-c", "-1")).await, Ok(true), "nothing is decided about it");
    decide(&journal, &numbers[2..], Fate::handled("stop")).await;
    assert_eq!(journal.update(edit("m-c", "-1")).await, Ok(false), "it does not wait");
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let noted = journal.noted_arrivals(&event("", "-1", None).address, i64::MAX, 10).await.unwrap();
    let words = |arrival: &StoredArrival| match &arrival.event.as_ref().unwrap().event {
        InboundEvent::Message(message) => message.text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(noted.iter().map(words).collect::<Vec<_>>(), ["text of a", "other words"]);
}

async fn what_was_sent_from_here_is_known(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for id in ["sent", "open", "lost"] {
        journal.deliver(note(id)).await.unwrap();
    }
    let mut agents = note("agents");
    agents.delivery.author = Author::Other;
    agents.delivery.address.target = "other".to_owned();
    let other = Address { target: "-1005".to_owned(), ..agents.delivery.address.clone() };
    journal.deliver(agents).await.unwrap();
    let address = note("sent").delivery.address;
    let now = openclaw_sessions::time::now_ms();
    let receipt = Receipt { message_ids: vec!["501".to_owned(), "502".to_owned()], ..Receipt::default() };
    // The group has another id by now.
    let same_id = Receipt { message_ids: vec!["501".to_owned()], target: Some("-1005".to_owned()) };
    for (id, verdict) in [
        ("sent", DeliveryVerdict::Sent(receipt)),
        ("agents", DeliveryVerdict::Sent(same_id)),
        ("lost", DeliveryVerdict::refused("gone".to_owned())),
    ] {
        journal.update(Update::Sending { id: id.to_owned(), attempts: 1 }).await.unwrap();
        journal.update(Update::Tried { id: id.to_owned(), verdict, now }).await.unwrap();
    }
    // Other buttons are put below one, by somebody of whom it is known what they may do.
    let by = Author::Buttons(Rights::ALL.least(&ANYBODY));
    let mut edit = note("edit");
    (edit.delivery.author, edit.delivery.address) = (by.clone(), other.clone());
    let receipt = Receipt { message_ids: vec!["503".to_owned()], ..Receipt::default() };
    let buttons = || Update::Buttons { note: Box::new(edit.clone()), receipt: receipt.clone() };
    assert_eq!(journal.update(buttons()).await, Ok(true));
    assert_eq!(journal.update(buttons()).await, Ok(false), "it is noted once");
    new(&journal, &["a"]).await;
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    let sent = |address: &Address, author| SentMessage { address: address.clone(), author };
    for (channel, message, expect) in [
        ("fake", "501", vec![sent(&address, Author::Gateway), sent(&other, Author::Other)]),
        ("fake", "502", vec![sent(&address, Author::Gateway)]),
        ("fake", "503", vec![sent(&other, by)]),
        ("fake", "50", vec![]),
        ("other", "501", vec![]),
    ] {
        assert_eq!(journal.sent_messages(channel, message).await, Ok(expect), "{channel} {message}");
    }
    let counts = journal.account_counts(&address.channel, &address.account).await.unwrap();
    assert_eq!((counts.pending, counts.failed), (1, 1));
    let of_events = journal.account_counts("telegram", "default").await.unwrap();
    assert_eq!(of_events.inbox, 1);
}

async fn events_are_found_by_message_event_and_run_and_each_has_one_fate(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let numbers = new(&journal, &["a", "b", "c", "d"]).await;
    decide(&journal, &numbers[..1], Fate::dropped("no-mention")).await;
    decide(&journal, &numbers[1..2], Fate::Noted).await;
    decide(&journal, &numbers[2..3], Fate::handled("stop")).await;
    let names =
        |records: Vec<ArrivalRecord>| records.into_iter().map(|record| record.native_id).collect::<Vec<_>>();
    assert_eq!(names(journal.arrival_records(None, 2).await.unwrap()), ["d", "c"], "the newest");
    assert_eq!(names(journal.arrival_records(Some("m-b"), 9).await.unwrap()), ["b"]);
    assert_eq!(names(journal.arrival_records(Some("c"), 9).await.unwrap()), ["c"]);
    assert_eq!(names(journal.arrival_records(Some("zzz"), 9).await.unwrap()), Vec::<String>::new());
    let dropped = journal.arrival_records(Some("a"), 9).await.unwrap().remove(0);
    assert_eq!(dropped.fate, Some(Fate::dropped("no-mention")));
    assert!(dropped.decided_at.is_some());
    let tally = journal.arrival_tally().await.unwrap();
    let expect = [("dropped", 1), ("handled", 1), ("noted", 1), ("waiting", 1)];
    assert_eq!(tally, expect.map(|(name, count)| (name.to_owned(), count)));
}

async fn answers_are_stored_with_the_end_of_their_run_and_never_again(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let replies = |run: &str| vec![note(&format!("{run}:1")), note(&format!("{run}:2"))];
    for name in ["run-1", "run-2"] {
        accept(&journal, InboxRow { entry_id: name.to_owned(), ..chat(name, "x") }).await;
    }
    assert_eq!(journal.update(Update::Finish(finished("run-1", "hi"), replies("run-1"))).await, Ok(true));
    assert_eq!(
        journal.update(Update::Finish(finished("run-1", "hi"), vec![note("run-1:3")])).await,
        Ok(false)
    );
    assert_eq!(journal.update(Update::Answered(finished("run-2", "hi"), replies("run-2"))).await, Ok(true));
    assert_eq!(journal.update(Update::Finish(finished("run-2", "hi"), Vec::new())).await, Ok(true));
    assert_eq!(
        journal.update(Update::Answered(finished("run-2", "x"), vec![note("run-2:3")])).await,
        Ok(false)
    );
    let (_crashed, OpenedJournal { journal, .. }) = restarted(open, dir.path());
    for name in ["run-1", "run-2"] {
        let found = journal.deliveries_of(&run(name)).await.unwrap();
        let ids: Vec<_> = found.iter().map(|status| (status.id.as_str(), status.state)).collect();
        let expect = [format!("{name}:1"), format!("{name}:2")];
        assert_eq!(
            ids,
            [(expect[0].as_str(), DeliveryState::Pending), (expect[1].as_str(), DeliveryState::Pending)]
        );
    }
    assert_eq!(journal.deliveries_of(&run("run")).await.unwrap(), [], "no other run's");
}
