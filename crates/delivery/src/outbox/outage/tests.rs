use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn down() -> Result<(), SendError> {
    Err(SendError::Down { reason: String::new() })
}

fn unreachable() -> Result<(), SendError> {
    Err(SendError::Unreachable { reason: String::new() })
}

fn lost() -> Result<(), SendError> {
    Err(SendError::Uncertain { reason: String::new() })
}

#[test]
fn trouble_in_one_conversation_is_no_outage_and_trouble_in_two_is() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    for came in [down(), lost(), down()] {
        assert_eq!(outage.on_tried("x", &came, now), Platform::Works);
    }
    assert_eq!(outage.on_tried("y", &down(), now), Platform::Down);
    assert_eq!(outage.on_tried("x", &lost(), now), Platform::Down);
    // A refusal is an answer.
    let refused = Err::<(), _>(SendError::Final { reason: String::new() });
    assert_eq!(outage.on_tried("x", &refused, now), Platform::Works);
    assert_eq!(outage.on_tried("y", &down(), now), Platform::Works);
}

#[test]
fn where_the_account_hears_nothing_either_one_is_enough() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    outage.lost();
    assert!(
        outage.may_try("x", 1, now) && outage.may_try("y", 2, now),
        "what is sent may arrive nevertheless"
    );
    let mut at = now;
    for pause in [15, 30, 60, 120, 240, 300, 300] {
        // Others that were under way at the same time.
        for target in ["x", "y", "z"] {
            assert_eq!(outage.on_tried(target, &down(), at), Platform::Down);
            assert_eq!(outage.next(), Some(at + pause * SECOND));
        }
        at += pause * SECOND;
    }
    outage.back();
    assert!(outage.may_try("x", 1, now) && outage.may_try("y", 2, now));
    assert_eq!(outage.on_tried("x", &down(), now), Platform::Works);
}

/// Checks that messages that may have arrived are not sent again and again to a platform that says
/// nothing.
#[test]
fn a_platform_that_says_nothing_is_asked_again_when_the_account_hears_from_it() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    outage.lost();
    outage.on_tried("x", &lost(), now);
    let later = now + 3600 * SECOND;
    for target in ["x", "y"] {
        assert!(!outage.may_try(target, 1, later));
        assert_eq!(outage.not_before(target, later), None);
    }
    outage.back();
    assert!(outage.may_try("x", 1, now));
}

#[test]
fn one_delivery_at_a_time_asks_whether_the_platform_is_back() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    let targets = [("x", 1), ("y", 2), ("z", 3)];
    assert!(targets.iter().all(|(target, number)| outage.may_try(target, *number, now)));
    for (target, _) in targets {
        assert_eq!(outage.on_tried(target, &unreachable(), now), Platform::Down);
    }
    let later = now + 15 * SECOND;
    assert!(!outage.may_try("x", 1, now));
    assert_eq!(outage.not_before("x", now), Some(later));
    assert!(outage.may_try("y", 2, later) && !outage.may_try("x", 1, later), "2 asks");
    assert_eq!(outage.not_before("x", later), None);
    outage.ended(1);
    assert!(!outage.may_try("x", 1, later), "2 still does");
    outage.on_tried("y", &unreachable(), later);
    outage.ended(2);
    assert!(!outage.may_try("y", 2, later));
    outage.hasten("y");
    assert!(!outage.may_try("x", 1, later) && outage.may_try("y", 2, later), "that one, at once");
    outage.ended(2);
    assert!(!outage.may_try("y", 2, later), "once");
    outage.on_tried("y", &Ok(()), later);
    assert!(outage.may_try("x", 1, later) && outage.may_try("z", 3, later), "it is back");
}

#[test]
fn all_that_a_person_wants_tried_are_tried_one_after_the_other() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    for target in ["x", "y", "z"] {
        outage.on_tried(target, &unreachable(), now);
    }
    for target in ["x", "y", "x"] {
        outage.hasten(target);
    }
    assert_eq!(["x", "y"].map(|target| outage.rank(target)), [ProbeRank::Wanted; 2]);
    for (target, number, other) in [("x", 1, "y"), ("y", 2, "x")] {
        assert_eq!(outage.not_before(target, now), Some(now));
        assert!(outage.may_try(target, number, now));
        assert!(!outage.may_try(other, 9, now), "one at a time");
        assert_eq!(outage.on_tried(target, &unreachable(), now), Platform::Down);
        outage.ended(number);
    }
    for target in ["x", "y", "z"] {
        assert!(!outage.may_try(target, 9, now), "{target}: once");
    }
    for target in 0..=MAX_WANTED {
        outage.hasten(&target.to_string());
    }
    assert_eq!(outage.wanted.len(), MAX_WANTED);
}

#[test]
fn those_that_did_not_fail_are_tried_first_and_one_of_them_waits_for_no_long_pause() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    for target in ["x", "y", "x"] {
        outage.on_tried(target, &down(), now);
    }
    let mut waiting = ["x", "y", "fresh", "wanted"];
    outage.hasten("wanted");
    waiting.sort_by_key(|target| outage.rank(target));
    assert_eq!(waiting, ["wanted", "fresh", "y", "x"]);
    assert_eq!(outage.not_before("fresh", now), Some(now));
    assert!(outage.may_try("fresh", 3, now));
    outage.on_tried("fresh", &down(), now);
    outage.ended(3);
    // The next new one is not tried with each message.
    let later = now + 15 * SECOND;
    assert!(!outage.may_try("new", 4, now));
    assert_eq!((outage.not_before("new", now), outage.not_before("fresh", now)), (Some(later), Some(later)));
    outage.on_tried("x", &down(), later);
    assert_eq!(
        (outage.not_before("new", later), outage.not_before("y", later)),
        (Some(later), Some(later + 30 * SECOND))
    );
    assert!(outage.may_try("new", 4, later));
}

#[test]
fn what_fails_while_others_get_through_fails_for_itself() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    outage.on_tried("x", &down(), now);
    assert_eq!(outage.on_tried("y", &down(), now), Platform::Down);
    outage.on_tried("owner", &Ok(()), now);
    for target in ["x", "y", "x", "y"] {
        assert_eq!(outage.on_tried(target, &down(), now), Platform::Works, "its tries count");
    }
    // A platform that is down is down for them as well.
    outage.on_tried("owner", &down(), now);
    assert_eq!(outage.on_tried("z", &down(), now), Platform::Down);
    assert_eq!(outage.on_tried("x", &down(), now), Platform::Down);
    // Once they were answered, or the account was away, nothing is held against them.
    outage.on_tried("x", &Ok(()), now);
    outage.on_tried("x", &down(), now);
    assert_eq!(outage.on_tried("new", &down(), now), Platform::Down);
    outage.back();
    outage.on_tried("y", &down(), now);
    assert_eq!(outage.on_tried("z", &down(), now), Platform::Down);
}

#[test]
fn only_so_many_failing_conversations_are_remembered() {
    let (now, mut outage) = (Instant::now(), Outage::default());
    for number in 0..2 * MAX_FAILING {
        outage.on_tried(&number.to_string(), &down(), now);
    }
    assert_eq!(outage.failing.len(), MAX_FAILING);
    assert_eq!(outage.rank("0"), ProbeRank::Fresh);
    assert!(outage.is_down());
}
