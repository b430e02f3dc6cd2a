//! Simulation of many histories: whatever the platform does and whenever the process ends, every
//! delivery arrives, each once if that can be known, in the order of each chat. A delivery that was
//! tried five times, including tries that a crash cut short, is given up; it is left out.

use proptest::prelude::*;

use super::*;

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        4 => Just(Reply::Take),
        1 => Just(retry()),
        1 => Just(Reply::Refuse(SendError::NotReady)),
        1 => Just(Reply::Refuse(SendError::Uncertain { reason: "reset".to_owned() })),
        1 => Just(Reply::TakeThenSilence),
        1 => Just(Reply::TakeThenPanic),
        1 => Just(Reply::TakeThenHang),
        1 => Just(Reply::Hang),
    ]
}

fn knows() -> impl Strategy<Value = Knows> {
    prop_oneof![Just(Knows::Ids), Just(Knows::Contents), Just(Knows::Nothing)]
}

/// Life of a process: deliveries accepted (by target), and the number of requests after which it
/// ends.
type Life = (Vec<u8>, usize);

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 10, ..ProptestConfig::default() })]

    #[test]
    fn every_delivery_arrives_in_order_and_once_where_that_can_be_known(
        knows in knows(),
        replies in prop::collection::vec(prop::collection::vec(reply(), 0..4), 0..6),
        lives in prop::collection::vec((prop::collection::vec(0..3_u8, 0..4), 0..6_usize), 1..4),
    ) {
        let script = replies.into_iter().flat_map(|mut part| { part.push(Reply::Take); part });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (platform, kept) = runtime.block_on(live(knows, script.collect(), &lives));
        for target in 0..3_u8 {
            let target = target.to_string();
            let shown: Vec<String> = platform
                .shown_in(&target)
                .into_iter()
                .map(|text| text.split(' ').next().unwrap().to_owned())
                .filter(|id| kept.iter().any(|(kept, _)| kept == id))
                .collect();
            let expected: Vec<&String> =
                kept.iter().filter(|(_, to)| *to == target).map(|(id, _)| id).collect();
            let mut once = shown.clone();
            once.dedup();
            prop_assert_eq!(once.iter().collect::<Vec<_>>(), expected, "{:?}: {:?}", knows, shown);
            if knows != Knows::Nothing {
                prop_assert_eq!(&shown, &once, "nothing is doubled");
            }
        }
    }
}

async fn live(knows: Knows, script: Vec<Reply>, lives: &[Life]) -> (Arc<Platform>, Vec<(String, String)>) {
    let platform = Platform::new(knows, script);
    let mut dir = tempfile::tempdir().unwrap();
    let mut accepted = Vec::new();
    for (targets, requests) in lives {
        let rig = Rig::open(dir.path());
        for target in targets {
            let (id, target) = (format!("d{}", accepted.len()), target.to_string());
            rig.accept(&id, &target).await;
            accepted.push((id, target));
        }
        let wanted = platform.requests() + requests;
        rig.serve(&platform);
        let all = async {
            for (id, _) in &accepted {
                rig.over(id).await;
            }
        };
        tokio::select! { biased;
            () = platform.asked(wanted) => {}
            () = all => {}
        }
        let crashed = crash(dir.path());
        rig.end().await;
        dir = crashed;
    }
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    let mut kept = Vec::new();
    for (id, target) in accepted {
        let status = rig.over(&id).await;
        match status.state {
            DeliveryState::Sent => kept.push((id, target)),
            _ => assert_eq!((status.state, status.attempts), (DeliveryState::Failed, 5), "{id}"),
        }
    }
    rig.end().await;
    (platform, kept)
}
