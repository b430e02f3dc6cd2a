use std::time::Duration;

use super::*;
use crate::delivery::Retry;

fn progress(state: DeliveryState) -> DeliveryProgress {
    DeliveryProgress {
        state,
        attempts: 1,
        next_at: 50,
        expires_at: Some(90),
        receipt: None,
        error: Some("busy".to_owned()),
        ended_at: None,
        may_repeat: false,
        given_up: None,
        left_out: None,
    }
}

fn row(id: &str, number: i64, progress: DeliveryProgress) -> DeliveryRow {
    DeliveryRow {
        number,
        id: id.to_owned(),
        address: Address {
            channel: "fake".to_owned(),
            account: "default".to_owned(),
            target: "x".to_owned(),
            thread: None,
        },
        session_key: None,
        author: Author::Other,
        asked: None,
        accepted_at: 10,
        progress,
        part: None,
    }
}

fn verdicts() -> [DeliveryVerdict; 5] {
    let retry = |state| {
        let (pause, reason) = (Duration::from_millis(5), "busy".to_owned());
        DeliveryVerdict::Retry(Retry { state, pause, attempts: 2, may_hurry: true, reason })
    };
    let part = Box::new(Part::text("the words"));
    [
        DeliveryVerdict::Sent(Receipt::default()),
        retry(DeliveryState::Pending),
        retry(DeliveryState::Uncertain),
        DeliveryVerdict::WithoutFile { part, left_out: "a file".to_owned() },
        DeliveryVerdict::refused("no such chat".to_owned()),
    ]
}

/// Each rule that is refused changes nothing, and each that is not leads to a state that may follow.
#[test]
fn a_delivery_takes_no_step_that_may_not_follow() {
    let rules: [fn(&mut DeliveryProgress) -> bool; 5] = [
        |one| one.sending(2).is_some(),
        |one| one.revive(60).is_some(),
        |one| one.discard(60).is_some(),
        |one| one.hasten(60).is_some(),
        |one| one.restart().is_some(),
    ];
    for state in DeliveryState::ALL {
        for (number, rule) in rules.iter().enumerate() {
            let mut one = progress(state);
            let is_made = rule(&mut one);
            assert!(is_made || one == progress(state), "{state:?} {number}");
            assert!(one.state == state || state.next_states().contains(&one.state), "{state:?} {number}");
        }
        for verdict in verdicts() {
            let mut one = progress(state);
            let is_made = one.tried(&verdict, 60).is_some();
            assert!(is_made || one == progress(state), "{state:?} {verdict:?}");
            assert!(!is_made || state.next_states().contains(&one.state), "{state:?} {verdict:?}");
            assert_eq!(one.ended_at.is_some(), is_made && !one.state.is_open(), "{state:?} {verdict:?}");
        }
    }
}

#[test]
fn only_another_try_of_one_that_may_have_arrived_may_repeat_it() {
    for (state, attempts, expect) in [
        (DeliveryState::Pending, 2, false),
        (DeliveryState::Uncertain, 1, false),
        (DeliveryState::Uncertain, 2, true),
    ] {
        let mut one = progress(state);
        assert!(one.sending(attempts).is_some());
        assert_eq!((one.may_repeat, one.attempts), (expect, attempts), "{state:?}");
    }
}

#[test]
fn what_is_thrown_away_keeps_its_error_and_what_is_revived_does_not() {
    let mut waits = progress(DeliveryState::Uncertain);
    assert!(matches!(waits.discard(60), Some(NewContent::Forgotten)));
    assert_eq!(waits.error.as_deref(), Some("busy; it may have arrived"));
    assert_eq!((waits.ended_at, waits.next_at), (Some(60), 60));
    assert!(waits.discard(61).is_none() && waits.revive(61).is_none());
    let put_off = DeliveryVerdict::Failed {
        reason: "too many".to_owned(),
        why: DeliveryFailure::Unknown,
        hold: Some(Duration::from_millis(7)),
    };
    let mut failed = progress(DeliveryState::Sending);
    assert!(matches!(failed.tried(&put_off, 60), Some(NewContent::Kept)));
    assert_eq!(row("a", 1, failed.clone()).hold(), Some(Hold { asked_at: 60, until: 67 }));
    assert!(failed.revive(70).is_some());
    assert_eq!((failed.state, failed.attempts, failed.error), (DeliveryState::Uncertain, 0, None));
    assert_eq!((failed.ended_at, failed.expires_at, failed.next_at), (None, None, 70));
}

#[test]
fn a_part_that_was_put_off_cuts_off_what_stands_behind_it_in_its_message() {
    let failed = |why| {
        let mut one = progress(DeliveryState::Pending);
        one.tried(&DeliveryVerdict::failed("busy".to_owned(), why), 60);
        one
    };
    let behind = row("run:3", 3, progress(DeliveryState::Pending));
    for (why, expect) in [
        (DeliveryFailure::Refused, false),
        (DeliveryFailure::PutOff, true),
        (DeliveryFailure::Unknown, true),
        (DeliveryFailure::Discarded, false),
    ] {
        assert_eq!(row("run:2", 2, failed(why)).cuts_off(&behind), expect, "{why:?}");
        for other in [row("runner:2", 2, failed(why)), row("run:4", 4, failed(why))] {
            assert!(!other.cuts_off(&behind), "{why:?}");
        }
        let mut elsewhere = row("run:2", 2, failed(why));
        elsewhere.address.target = "y".to_owned();
        assert!(!elsewhere.cuts_off(&behind), "{why:?}");
    }
}

#[test]
fn deliveries_are_selected_by_their_ids_states_and_receipts() {
    let receipt = Receipt { message_ids: vec!["501".to_owned()], ..Receipt::default() };
    let sent = DeliveryProgress { receipt: Some(receipt), ..progress(DeliveryState::Sent) };
    let sent = row("run:1", 1, sent);
    let waits = row("run:2", 2, progress(DeliveryState::Pending));
    let run = RunId::new("run");
    let rows = [
        (DeliveryQuery::Id("run:1"), [true, false]),
        (DeliveryQuery::Number(2), [false, true]),
        (DeliveryQuery::OfRun(&run), [true, true]),
        (DeliveryQuery::Named("501"), [true, false]),
        (DeliveryQuery::Named("run:2"), [false, true]),
        (DeliveryQuery::Named("50"), [false, false]),
        (DeliveryQuery::Sent { channel: "fake", message_id: "501" }, [true, false]),
        (DeliveryQuery::Sent { channel: "other", message_id: "501" }, [false, false]),
        (DeliveryQuery::Open { after: 0 }, [false, true]),
        (DeliveryQuery::Open { after: 2 }, [false, false]),
        (DeliveryQuery::OpenIn(&sent.address), [false, true]),
        (DeliveryQuery::OpenOf { channel: "fake", account: "other" }, [false, false]),
        (DeliveryQuery::GivenUp, [false, false]),
        (DeliveryQuery::GivenUpOf("run"), [false, false]),
        (DeliveryQuery::HeldIn(&sent.address), [false, false]),
    ];
    for (query, expect) in rows {
        assert_eq!([&sent, &waits].map(|row| query.matches(row)), expect, "{query:?}");
    }
    assert!(!DeliveryQuery::OfRun(&RunId::new("ru")).matches(&sent));
}
