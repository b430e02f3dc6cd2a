//! Tests of conversations whose platform always fails, beside others that work.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

const CHATS: u8 = 5;

fn silence() -> Reply {
    Reply::Refuse(SendError::Uncertain { reason: "reset".to_owned() })
}

/// A message: its conversation, and whether the process ends before it.
type Said = (u8, bool);

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 5, ..ProptestConfig::default() })]

    #[test]
    fn whichever_are_dead_whoever_writes_first_and_whenever_the_process_ends_the_others_are_answered_at_once(
        dead in prop::collection::btree_set(0..CHATS, 0..usize::from(CHATS)),
        says_nothing in any::<bool>(),
        said in prop::collection::vec((0..CHATS, prop::bool::weighted(0.2)), 1..16),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let reply = if says_nothing { silence() } else { down() };
        runtime.block_on(all_living_are_answered(&dead, &reply, &said));
    }
}

async fn all_living_are_answered(dead: &BTreeSet<u8>, reply: &Reply, said: &[Said]) {
    let platform = Platform::new(Knows::Ids, []);
    for target in dead {
        platform.answers_in(&target.to_string(), Some(reply.clone()));
    }
    let mut dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    rig.serve(&platform);
    for (number, (target, ends_before)) in said.iter().enumerate() {
        if *ends_before {
            let crashed = crash(dir.path());
            rig.end().await;
            dir = crashed;
            rig = Rig::open(dir.path());
            rig.serve(&platform);
        }
        let id = format!("d{number}");
        rig.accept(&id, &target.to_string()).await;
        if !dead.contains(target) {
            let begun = Instant::now();
            assert_eq!(rig.over(&id).await.state, DeliveryState::Sent);
            assert!(begun.elapsed() < Duration::from_secs(5), "{id} waited {:?}", begun.elapsed());
        }
    }
    rig.end().await;
}

/// Checks that a conversation that failed like the others gets through soon once it works again.
#[tokio::test(start_paused = true)]
async fn those_that_failed_take_turns_at_asking() {
    for living in ["a", "b", "c", "d"] {
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::new(Knows::Ids, []);
        let rig = Rig::open(dir.path());
        for target in ["a", "b", "c", "d"] {
            platform.answers_in(target, Some(down()));
            rig.accept(target, target).await;
        }
        rig.serve(&platform);
        platform.asked(4).await;
        platform.answers_in(living, None);
        let begun = Instant::now();
        assert_eq!(rig.over(living).await.state, DeliveryState::Sent);
        // A probe of each: after 15, 30, 60 and 120 seconds.
        assert!(begun.elapsed() < Duration::from_secs(230), "{living} waited {:?}", begun.elapsed());
        rig.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_that_fail_while_another_gets_through_are_given_up_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Ids, []);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    for target in ["x", "y"] {
        platform.answers_in(target, Some(down()));
        rig.accept(target, target).await;
    }
    for hour in 0..26 {
        let id = format!("owner{hour}");
        rig.accept(&id, "owner").await;
        assert_eq!(rig.over(&id).await.attempts, 1);
        pass(&rig, 3600).await;
    }
    for target in ["x", "y"] {
        let given_up = rig.status(target).await;
        assert_eq!(given_up.given_up, Some(DeliveryFailure::PutOff), "{target} after {}", given_up.attempts);
    }
    rig.end().await;
}
