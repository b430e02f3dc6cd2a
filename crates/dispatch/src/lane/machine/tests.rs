use proptest::prelude::*;

use super::*;

/// Those with numbers for names were accepted in that order.
#[derive(Debug, Clone, PartialEq)]
struct Job(RunId, Option<AbortReason>);

/// Names in capitals are `agent` runs.
impl Turn for Job {
    fn run_id(&self) -> &RunId {
        &self.0
    }

    fn is_chat(&self) -> bool {
        self.0.as_str().to_lowercase() == self.0.as_str()
    }

    fn is_stopped(&self) -> bool {
        self.1.is_some()
    }

    fn stop(&mut self, reason: AbortReason) {
        self.1 = Some(reason);
    }

    fn order(&self) -> u64 {
        self.0.as_str().parse().unwrap_or(0)
    }
}

fn job(name: &str) -> Job {
    Job(RunId::new(name), None)
}

fn stopped(name: &str, reason: AbortReason) -> Job {
    Job(RunId::new(name), Some(reason))
}

/// A lane in which `a` runs.
fn busy(streaming: bool) -> Machine<Job> {
    let mut lane = Machine::default();
    assert_eq!(send(&mut lane, "a", QueueMode::Collect), [Effect::Start(job("a"))]);
    assert_eq!(lane.on(Input::Streaming(streaming)), []);
    lane
}

fn send(lane: &mut Machine<Job>, name: &str, mode: QueueMode) -> Vec<Effect<Job>> {
    lane.on(Input::Message { job: job(name), mode })
}

fn end(lane: &mut Machine<Job>) -> Vec<Effect<Job>> {
    lane.on(Input::Ended { untaken: Vec::new() })
}

fn abort(lane: &mut Machine<Job>, target: AbortTarget) -> Vec<Effect<Job>> {
    lane.on(Input::Abort { target, only: Only::Chats, reason: AbortReason::Rpc })
}

#[test]
fn a_message_is_treated_as_the_table_says() {
    use Effect::{Cancel, Steer};
    use QueueMode::{Collect, Followup, Interrupt, SteerBacklog};
    let b = || job("b");
    let cases = [
        // mode, streaming, effects now, effects once the run has ended
        (Collect, true, vec![], vec![Effect::Start(b())]),
        (Collect, false, vec![], vec![Effect::Start(b())]),
        (Followup, true, vec![], vec![Effect::Start(b())]),
        (Followup, false, vec![], vec![Effect::Start(b())]),
        (QueueMode::Steer, true, vec![Steer(b())], vec![]),
        (QueueMode::Steer, false, vec![], vec![Effect::Start(b())]),
        (SteerBacklog, true, vec![Steer(b())], vec![]),
        (SteerBacklog, false, vec![], vec![Effect::Start(b())]),
        (Interrupt, true, vec![Cancel(AbortReason::Interrupt)], vec![Effect::Start(b())]),
        (Interrupt, false, vec![Cancel(AbortReason::Interrupt)], vec![Effect::Start(b())]),
    ];
    for (mode, streaming, now, then) in cases {
        let mut lane = busy(streaming);
        assert_eq!(send(&mut lane, "b", mode), now, "{mode:?} {streaming}");
        assert_eq!(end(&mut lane), then, "{mode:?} {streaming}");
        let mut idle = Machine::default();
        assert_eq!(send(&mut idle, "b", mode), [Effect::Start(b())], "{mode:?} with no run");
    }
}

#[test]
fn an_interrupt_clears_what_waits() {
    let mut lane = busy(true);
    send(&mut lane, "b", QueueMode::Followup);
    send(&mut lane, "c", QueueMode::Followup);
    assert_eq!(
        send(&mut lane, "d", QueueMode::Interrupt),
        [
            Effect::Cancel(AbortReason::Interrupt),
            Effect::Discard(stopped("b", AbortReason::Interrupt), AbortReason::Interrupt),
            Effect::Discard(stopped("c", AbortReason::Interrupt), AbortReason::Interrupt),
        ]
    );
    assert_eq!(send(&mut lane, "e", QueueMode::Followup), []);
    for next in
        [stopped("b", AbortReason::Interrupt), stopped("c", AbortReason::Interrupt), job("d"), job("e")]
    {
        assert_eq!(end(&mut lane), [Effect::Start(next)], "each in its place");
    }
}

#[test]
fn steered_messages_the_run_did_not_take_come_first_in_their_order() {
    let mut lane = busy(true);
    send(&mut lane, "1", QueueMode::Steer);
    send(&mut lane, "2", QueueMode::Steer);
    send(&mut lane, "3", QueueMode::Followup);
    // One that was taken back comes first in the list.
    let ended = lane.on(Input::Ended { untaken: vec![job("2"), job("1")] });
    assert_eq!(ended, [Effect::Start(job("1"))]);
    assert_eq!(end(&mut lane), [Effect::Start(job("2"))]);
    assert_eq!(end(&mut lane), [Effect::Start(job("3"))]);
    assert_eq!(end(&mut lane), []);
    assert!(lane.is_idle());
}

#[test]
fn nothing_is_steered_in_front_of_what_waits() {
    let mut lane = busy(false);
    send(&mut lane, "1", QueueMode::Steer);
    lane.on(Input::Streaming(true));
    assert_eq!(send(&mut lane, "2", QueueMode::Steer), []);
    assert_eq!(end(&mut lane), [Effect::Start(job("1"))]);
    lane.on(Input::Streaming(true));
    assert_eq!(send(&mut lane, "3", QueueMode::Steer), [], "2 still waits");
    assert_eq!(end(&mut lane), [Effect::Start(job("2"))]);
    assert_eq!(end(&mut lane), [Effect::Start(job("3"))]);
    lane.on(Input::Streaming(true));
    assert_eq!(send(&mut lane, "4", QueueMode::Steer), [Effect::Steer(job("4"))]);
}

#[test]
fn a_change_has_its_place_among_the_messages() {
    let (one, two) = (ChangeId(1), ChangeId(2));
    let mut lane = busy(true);
    send(&mut lane, "1", QueueMode::Followup);
    assert_eq!(lane.on(Input::Change(one)), []);
    assert_eq!(
        send(&mut lane, "2", QueueMode::Steer),
        [],
        "what comes after a change is not steered before it"
    );
    assert_eq!(lane.on(Input::Change(two)), []);
    assert_eq!(end(&mut lane), [Effect::Start(job("1"))]);
    assert_eq!(end(&mut lane), [Effect::Change(one)]);
    assert_eq!(lane.active(), None);
    assert_eq!(abort(&mut lane, AbortTarget::All).len(), 1, "only what waits behind it");
    assert_eq!(lane.on(Input::Changed), [Effect::Start(stopped("2", AbortReason::Rpc))]);
    assert_eq!(end(&mut lane), [Effect::Change(two)]);
    assert!(!lane.is_idle());
    assert_eq!(lane.on(Input::Changed), []);
    assert!(lane.is_idle());
    assert_eq!(lane.on(Input::Change(one)), [Effect::Change(one)], "an idle lane begins at once");
}

#[test]
fn an_abort_of_all_stops_what_runs_and_discards_what_waits() {
    let mut lane = busy(true);
    send(&mut lane, "s", QueueMode::Steer);
    send(&mut lane, "b", QueueMode::Followup);
    assert_eq!(
        abort(&mut lane, AbortTarget::All),
        [
            Effect::Cancel(AbortReason::Rpc),
            Effect::Withdraw(RunId::new("s"), AbortReason::Rpc),
            Effect::Discard(stopped("b", AbortReason::Rpc), AbortReason::Rpc),
        ]
    );
    assert_eq!(abort(&mut lane, AbortTarget::All), [], "once is enough");
    assert_eq!(end(&mut lane), [Effect::Start(stopped("b", AbortReason::Rpc))], "to be closed");
    assert_eq!(abort(&mut lane, AbortTarget::All), []);
    assert_eq!(end(&mut lane), []);
}

#[test]
fn a_person_stops_chats_only() {
    let mut lane = Machine::default();
    send(&mut lane, "A", QueueMode::Followup);
    send(&mut lane, "b", QueueMode::Followup);
    send(&mut lane, "C", QueueMode::Followup);
    assert_eq!(abort(&mut lane, AbortTarget::Run(RunId::new("A"))), []);
    assert_eq!(
        abort(&mut lane, AbortTarget::All),
        [Effect::Discard(stopped("b", AbortReason::Rpc), AbortReason::Rpc)]
    );
    let all = Input::Abort { target: AbortTarget::All, only: Only::Any, reason: AbortReason::Rpc };
    assert_eq!(
        lane.on(all),
        [Effect::Cancel(AbortReason::Rpc), Effect::Discard(stopped("C", AbortReason::Rpc), AbortReason::Rpc)]
    );
}

#[test]
fn an_abort_of_one_run_touches_no_other() {
    let run = |name: &str| AbortTarget::Run(RunId::new(name));
    let mut lane = busy(true);
    send(&mut lane, "b", QueueMode::Followup);
    send(&mut lane, "c", QueueMode::Followup);
    assert_eq!(abort(&mut lane, run("zzz")), []);
    assert_eq!(
        abort(&mut lane, run("b")),
        [Effect::Discard(stopped("b", AbortReason::Rpc), AbortReason::Rpc)]
    );
    assert_eq!(abort(&mut lane, run("a")), [Effect::Cancel(AbortReason::Rpc)]);
    assert_eq!(end(&mut lane), [Effect::Start(stopped("b", AbortReason::Rpc))]);
    assert_eq!(end(&mut lane), [Effect::Start(job("c"))]);
}

#[test]
fn a_run_is_stopped_once_and_not_after_it_has_its_result() {
    let mut lane = busy(true);
    assert_eq!(abort(&mut lane, AbortTarget::All), [Effect::Cancel(AbortReason::Rpc)]);
    assert_eq!(abort(&mut lane, AbortTarget::All), []);
    let mut lane = busy(true);
    lane.on(Input::Closing);
    assert_eq!(abort(&mut lane, AbortTarget::All), []);
    assert_eq!(send(&mut lane, "b", QueueMode::Steer), [], "nor does it take messages");
    assert_eq!(end(&mut lane), [Effect::Start(job("b"))]);
}

#[test]
fn a_stopped_lane_starts_nothing_and_counts_as_idle_after_its_run() {
    let mut lane = busy(true);
    send(&mut lane, "b", QueueMode::Followup);
    lane.on(Input::Stop);
    assert!(!lane.is_idle());
    assert_eq!(end(&mut lane), []);
    assert!(lane.is_idle());
    assert_eq!(send(&mut lane, "c", QueueMode::Followup), []);
}

proptest! {
    /// Whatever comes, every message is started or steered exactly once, stopped ones to be closed, one run at a time, and follow-ups run
    /// in the order in which they came.
    #[test]
    fn every_message_has_one_fate(steps in proptest::collection::vec((0..6_u8, 0..12_usize), 1..60)) {
        let mut lane = Machine::default();
        let (mut sent, mut fates, mut started) = (0, Vec::new(), Vec::new());
        let mut running = false;
        let mut steered: Vec<Job> = Vec::new();
        for (kind, pick) in steps {
            let effects = match kind {
                0 | 1 => { sent += 1; send(&mut lane, &format!("{sent:03}"), QueueMode::Followup) }
                2 => { sent += 1; send(&mut lane, &format!("{sent:03}"), QueueMode::Steer) }
                3 => lane.on(Input::Streaming(pick % 2 == 0)),
                4 if running => {
                    running = false;
                    for job in steered.drain(..) { fates.push(job.0.to_string()); }
                    end(&mut lane)
                }
                5 => abort(&mut lane, AbortTarget::Run(RunId::new(format!("{pick:03}")))),
                _ => continue,
            };
            for effect in effects {
                match effect {
                    Effect::Start(job) => {
                        prop_assert!(!running);
                        running = true;
                        started.push(job.0.to_string());
                        fates.push(job.0.to_string());
                    }
                    Effect::Steer(job) => { prop_assert!(running); steered.push(job); }
                    Effect::Withdraw(run_id, _) => {
                        let place = steered.iter().position(|job| job.0 == run_id).unwrap();
                        fates.push(steered.remove(place).0.to_string());
                    }
                    Effect::Discard(job, _) => prop_assert!(job.is_stopped()),
                    Effect::Cancel(_) => prop_assert!(running),
                    Effect::Change(_) => panic!("nobody asked for one"),
                }
            }
        }
        while running || !lane.is_idle() {
            running = false;
            fates.extend(steered.drain(..).map(|job| job.0.to_string()));
            for effect in end(&mut lane) {
                let Effect::Start(job) = effect else { panic!("only starts are left") };
                running = true;
                started.push(job.0.to_string());
                fates.push(job.0.to_string());
            }
        }
        let mut sorted = started.clone();
        sorted.sort();
        prop_assert_eq!(started, sorted);
        fates.sort();
        let all: Vec<String> = (1..=sent).map(|n| format!("{n:03}")).collect();
        prop_assert_eq!(fates, all);
    }
}
