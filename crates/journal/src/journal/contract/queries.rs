//! The part of the suite about queries: a database finds the rows that a query means, and no others,
//! in its order.

use super::*;
use crate::arrival::{Arrivals, Fate, NewArrival};
use crate::journal::rows::{
    ArrivalIdentity, ArrivalQuery, DeliveryQuery, JournalRows, MessageProgress, MessageQuery, MessageRow,
    RowContent,
};
use crate::testing::group_event;

on_each! {
    deliveries_are_those_that_a_query_means
    messages_are_those_that_a_query_means
    events_are_those_that_a_query_means
}

/// Looks at the rows, and checks that there is nothing to complain of.
async fn check(
    journal: &Arc<dyn Journal>,
    look: impl FnOnce(&dyn JournalRows) -> Vec<String> + Send + 'static,
) {
    let (reply, answer) = tokio::sync::oneshot::channel();
    journal.read(Box::new(move |rows| reply.send(look(rows)).unwrap())).await.unwrap();
    assert_eq!(answer.await.unwrap(), Vec::<String>::new());
}

/// Compares the rows that were found with those of `all` that are meant, which are in the order of
/// acceptance.
fn compare<T: Clone + PartialEq + std::fmt::Debug>(
    query: &dyn std::fmt::Debug,
    (all, is_newest_first): (&[T], bool),
    is_meant: impl Fn(&T) -> bool,
    find: impl Fn(u32) -> Vec<T>,
) -> Vec<String> {
    let mut meant: Vec<T> = all.iter().filter(|row| is_meant(row)).cloned().collect();
    if is_newest_first {
        meant.reverse();
    }
    let mut complaints = Vec::new();
    if meant.is_empty() {
        complaints.push(format!("{query:?} finds nothing"));
    }
    for most in [u32::MAX, 1] {
        let found = find(most);
        meant.truncate(most as usize);
        if found != meant {
            complaints.push(format!("{query:?}, at most {most}: {found:#?} in place of {meant:#?}"));
        }
    }
    complaints
}

async fn deliveries_are_those_that_a_query_means(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let ids = [
        "run:1", "run:2", "run:3", "run:4", "runner:1", "ru:1", "sent", "sent too", "thrown", "held", "away",
    ];
    for id in ids {
        let mut new = note(id);
        if matches!(id, "sent too" | "away") {
            "other".clone_into(&mut new.delivery.address.account);
        }
        journal.deliver(new).await.unwrap();
    }
    let receipt = |ids: &[&str]| {
        let message_ids = ids.iter().map(|&id| id.to_owned()).collect();
        DeliveryVerdict::Sent(Receipt { message_ids, target: Some("-501".to_owned()) })
    };
    let put_off =
        |hold| DeliveryVerdict::Failed { reason: "busy".to_owned(), why: DeliveryFailure::PutOff, hold };
    for (id, verdict) in [
        ("run:1", put_off(None)),
        ("runner:1", put_off(None)),
        ("sent", receipt(&["501", "5\"02"])),
        ("sent too", receipt(&["50", "run:2"])),
        ("thrown", put_off(None)),
        ("held", put_off(Some(Duration::from_secs(9)))),
    ] {
        journal.update(sending(id, 1)).await.unwrap();
        assert_eq!(journal.update(tried(id, verdict)).await, Ok(true));
    }
    journal.update(Update::Discard { id: "thrown".to_owned(), now: 7 }).await.unwrap();
    journal.update(sending("run:3", 1)).await.unwrap();
    journal.update(sending("run:4", 1)).await.unwrap();
    journal.update(retry("run:4", DeliveryState::Uncertain)).await.unwrap();
    check(&journal, move |rows| {
        let find = |query: &DeliveryQuery<'_>, most| rows.deliveries(query, RowContent::Whole, most).unwrap();
        let all: Vec<_> = ids.iter().flat_map(|id| find(&DeliveryQuery::Id(id), 9)).collect();
        let (run_id, here) = (run("run"), all[0].address.clone());
        let queries = [
            DeliveryQuery::Id("run:2"),
            DeliveryQuery::Number(all[3].number),
            DeliveryQuery::OfRun(&run_id),
            DeliveryQuery::Named("501"),
            DeliveryQuery::Named("5\"02"),
            DeliveryQuery::Named("run:2"),
            DeliveryQuery::Sent { channel: "fake", message_id: "50" },
            DeliveryQuery::Open { after: all[1].number },
            DeliveryQuery::OpenOf { channel: "fake", account: "other" },
            DeliveryQuery::OpenIn(&here),
            DeliveryQuery::GivenUp,
            DeliveryQuery::GivenUpOf("run"),
            DeliveryQuery::HeldIn(&here),
        ];
        let check = |query: &DeliveryQuery<'_>| {
            let rows = (all.as_slice(), query.is_newest_first());
            compare(query, rows, |row| query.matches(row), |most| find(query, most))
        };
        queries.iter().flat_map(check).collect()
    })
    .await;
}

async fn messages_are_those_that_a_query_means(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for (name, accepted_at) in [("a", 5), ("b", 4), ("c", 3), ("d", 6), ("e", 7)] {
        let (entry_id, fresh_id) = (format!("entry-{name}"), SessionId::new(format!("fresh-{name}")));
        accept(&journal, InboxRow { accepted_at, entry_id, fresh_id, ..chat(name, "x") }).await;
    }
    let updates = [
        Update::Begin(run("a"), SessionId::new("sid")),
        Update::Taken { runs: vec![run("b")], by: run("a") },
        Update::Gather { leader: run("a"), others: vec![run("c")], answer_to: None },
        Update::Abort(vec![run("d")], AbortReason::Stop),
        Update::Cut { run_id: run("e"), arrivals: Box::default(), dropped: 3, now: 9 },
        Update::Finish(finished("b", "hi"), Vec::new()),
    ];
    for update in updates {
        assert_eq!(journal.update(update.clone()).await, Ok(true), "{update:?}");
    }
    check(&journal, |rows| {
        let find = |query: &MessageQuery<'_>, most| {
            let mut found = rows.messages(query, RowContent::Whole, most).unwrap();
            found.iter_mut().for_each(|row| clear_unread(query, row));
            found
        };
        let mut all = find(&MessageQuery::Newest, u32::MAX);
        all.reverse();
        let a = run("a");
        let queries = [
            MessageQuery::Run(&a),
            MessageQuery::Newest,
            MessageQuery::TakenBy(&a),
            MessageQuery::Entry("entry-c"),
            MessageQuery::Entry("fresh-d"),
            MessageQuery::AcceptedSince(5),
            MessageQuery::Unfinished,
        ];
        let check = |query: &MessageQuery<'_>| {
            let mut all = all.clone();
            all.iter_mut().for_each(|row| clear_unread(query, row));
            let rows = (all.as_slice(), query.is_newest_first());
            compare(query, rows, |row| query.matches(row), |most| find(query, most))
        };
        queries.iter().flat_map(check).collect()
    })
    .await;
}

/// Clears the columns that need not be read for a query.
fn clear_unread(query: &MessageQuery<'_>, row: &mut MessageRow) {
    row.queue_mode = None;
    if matches!(query, MessageQuery::AcceptedSince(_)) {
        row.progress = MessageProgress::default();
    }
}

async fn events_are_those_that_a_query_means(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    let event = |id: &str| {
        let message = openclaw_channels::InboundMessage {
            message_id: format!("m-{}", &id[..1]),
            ..openclaw_channels::InboundMessage::default()
        };
        let mut event = group_event(id, if id.ends_with("away") { "-2" } else { "-1" }, message);
        event.address.thread = id.ends_with("thread").then(|| "5".to_owned());
        event
    };
    let fates = [
        ("a", None),
        ("b", Some(Fate::Noted)),
        ("b thread", Some(Fate::Noted)),
        ("b away", Some(Fate::Noted)),
        ("c", Some(Fate::Run(run("run")))),
        ("d", Some(Fate::dropped("dm-policy"))),
        ("b told", Some(Fate::Noted)),
        ("a too", None),
        ("b again", Some(Fate::Noted)),
    ];
    // What was decided long ago is forgotten.
    let received_at = openclaw_sessions::time::now_ms();
    let new = |(id, fate)| NewArrival { event: event(id), received_at, fate };
    let stored = journal.arrive(fates.into_iter().map(new).collect()).await.unwrap().unwrap();
    let crate::arrival::ArrivalInsert::New(told) = stored[6] else { panic!("it is new") };
    let mut row = chat("teller", "x");
    row.payload.arrivals = Arrivals { said: Vec::new(), context: vec![told], route: None };
    accept(&journal, row).await;
    let brought = NewArrival { event: event("d"), received_at, fate: None };
    check(&journal, move |rows| {
        let find = |query: &ArrivalQuery<'_>, most| rows.arrivals(query, RowContent::Whole, most).unwrap();
        let mut all = find(&ArrivalQuery::Newest, u32::MAX);
        all.reverse();
        let here = brought.event.address.clone();
        let identity = ArrivalIdentity::of(&brought);
        let queries = [
            ArrivalQuery::Number(told),
            ArrivalQuery::Same(&identity),
            ArrivalQuery::Waiting { after: 0 },
            ArrivalQuery::Waiting { after: told },
            ArrivalQuery::Noted { conversation: &here, before: i64::MAX },
            ArrivalQuery::Noted { conversation: &here, before: told },
            ArrivalQuery::About { conversation: &here, message_id: "m-a" },
            ArrivalQuery::About { conversation: &here, message_id: "m-b" },
            ArrivalQuery::Newest,
            ArrivalQuery::Named("m-b"),
            ArrivalQuery::Named("a too"),
            ArrivalQuery::Named("teller"),
            ArrivalQuery::Named("run"),
        ];
        let check = |query: &ArrivalQuery<'_>| {
            let rows = (all.as_slice(), query.is_newest_first());
            compare(query, rows, |row| query.matches(row), |most| find(query, most))
        };
        queries.iter().flat_map(check).collect()
    })
    .await;
}
