use openclaw_channels::Address;
use openclaw_journal::queue::QueueSettings;
use openclaw_journal::rights::Rights;
use openclaw_journal::rights::testing::{OWNERS, STRANGERS};
use proptest::prelude::*;

use super::*;

/// Test job. Jobs with numbers for names were accepted in that order. `/new` alters the session,
/// `/model` too, beside a run.
#[derive(Debug, Clone, PartialEq)]
struct Job(RunId, Option<AbortReason>);

/// Names in capitals are `agent` runs; a `?` means that somebody else than the owner says it.
impl LaneMessage for Job {
    fn run_id(&self) -> &RunId {
        &self.0
    }

    fn is_stopped(&self) -> bool {
        self.1.is_some()
    }

    fn stop(&mut self, reason: AbortReason) {
        self.1 = Some(reason);
    }

    fn order(&self) -> u64 {
        let name = self.0.as_str();
        name.split_once('/').map_or(name, |(order, _)| order).parse().unwrap_or(0)
    }

    fn alters(&self) -> bool {
        self.0.as_str().contains('/') && !self.is_stopped()
    }

    fn is_aside(&self) -> bool {
        self.0.as_str().contains("/model") && !self.is_stopped()
    }

    fn queue(&self) -> Option<QueueSettings> {
        let is_chat = self.0.as_str().to_lowercase() == self.0.as_str();
        let is_prompt = is_chat && !self.0.as_str().contains('/') && !self.is_stopped();
        is_prompt.then(|| QueueSettings::with(QueueMode::Followup)).map(|settings| QueueSettings {
            cap: 1_000,
            debounce_ms: 0,
            ..settings
        })
    }

    fn place(&self) -> Option<&Address> {
        None
    }

    fn message_id(&self) -> Option<&str> {
        None
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn is_announcement(&self) -> bool {
        false
    }

    fn has_waited(&self) -> bool {
        false
    }

    fn cut(&self) -> Option<u64> {
        None
    }

    fn set_cut(&mut self, _: u64) {
        panic!("the queue is never full");
    }

    fn takes_steering(&self) -> bool {
        self.0.as_str() != "BEAT"
    }

    fn rights(&self) -> Option<&Rights> {
        let is_strangers = self.0.as_str().ends_with('?');
        Some(if is_strangers { &STRANGERS } else { &OWNERS })
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
    assert_eq!(send(&mut lane, "a", QueueMode::Collect), [LaneEffect::Start(job("a"))]);
    assert_eq!(lane.on(Instant::now(), Input::Streaming(streaming)), []);
    lane
}

fn send(lane: &mut Machine<Job>, name: &str, mode: QueueMode) -> Vec<LaneEffect<Job>> {
    lane.on(Instant::now(), Input::Message { job: job(name), mode })
}

fn change(lane: &mut Machine<Job>, id: ChangeId) -> Vec<LaneEffect<Job>> {
    lane.on(Instant::now(), Input::Change { id, beside: false })
}

fn beside(lane: &mut Machine<Job>, id: ChangeId) -> Vec<LaneEffect<Job>> {
    lane.on(Instant::now(), Input::Change { id, beside: true })
}

fn end(lane: &mut Machine<Job>) -> Vec<LaneEffect<Job>> {
    lane.on(Instant::now(), Input::Ended { untaken: Vec::new() })
}

fn abort(lane: &mut Machine<Job>, target: AbortTarget) -> Vec<LaneEffect<Job>> {
    lane.on(Instant::now(), Input::Abort { target, reason: AbortReason::Rpc })
}

#[test]
fn a_message_is_treated_as_the_table_says() {
    use LaneEffect::{Cancel, Steer};
    use QueueMode::{Collect, Followup, Interrupt, SteerBacklog};
    let b = || job("b");
    let cases = [
        // mode, streaming, effects now, effects once the run has ended
        (Collect, true, vec![], vec![LaneEffect::Start(b())]),
        (Collect, false, vec![], vec![LaneEffect::Start(b())]),
        (Followup, true, vec![], vec![LaneEffect::Start(b())]),
        (Followup, false, vec![], vec![LaneEffect::Start(b())]),
        (QueueMode::Steer, true, vec![Steer(b())], vec![]),
        (QueueMode::Steer, false, vec![], vec![LaneEffect::Start(b())]),
        (SteerBacklog, true, vec![LaneEffect::SteerCopy(b())], vec![LaneEffect::Start(b())]),
        (SteerBacklog, false, vec![], vec![LaneEffect::Start(b())]),
        (Interrupt, true, vec![Cancel(AbortReason::Interrupt)], vec![LaneEffect::Start(b())]),
        (Interrupt, false, vec![Cancel(AbortReason::Interrupt)], vec![LaneEffect::Start(b())]),
    ];
    for (mode, streaming, now, then) in cases {
        let mut lane = busy(streaming);
        assert_eq!(send(&mut lane, "b", mode), now, "{mode:?} {streaming}");
        assert_eq!(end(&mut lane), then, "{mode:?} {streaming}");
        let mut idle = Machine::default();
        assert_eq!(send(&mut idle, "b", mode), [LaneEffect::Start(b())], "{mode:?} with no run");
    }
}

#[test]
fn a_message_is_steered_into_a_run_with_its_rights_alone() {
    for (run, said, is_steered) in
        [("r", "b", true), ("r", "b?", false), ("r?", "b?", true), ("r?", "b", false)]
    {
        let mut lane = Machine::default();
        send(&mut lane, run, QueueMode::Collect);
        lane.on(Instant::now(), Input::Streaming(true));
        let (now, then) = match is_steered {
            true => (vec![LaneEffect::Steer(job(said))], vec![]),
            false => (vec![], vec![LaneEffect::Start(job(said))]),
        };
        assert_eq!(send(&mut lane, said, QueueMode::Steer), now, "{run} {said}");
        assert_eq!(end(&mut lane), then, "{run} {said}");
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
            LaneEffect::Cancel(AbortReason::Interrupt),
            LaneEffect::Discard(stopped("b", AbortReason::Interrupt), AbortReason::Interrupt),
            LaneEffect::Discard(stopped("c", AbortReason::Interrupt), AbortReason::Interrupt),
        ]
    );
    assert_eq!(send(&mut lane, "e", QueueMode::Followup), []);
    for next in
        [stopped("b", AbortReason::Interrupt), stopped("c", AbortReason::Interrupt), job("d"), job("e")]
    {
        assert_eq!(end(&mut lane), [LaneEffect::Start(next)], "each in its place");
    }
}

#[test]
fn steered_messages_the_run_did_not_take_come_first_in_their_order() {
    let mut lane = busy(true);
    send(&mut lane, "1", QueueMode::Steer);
    send(&mut lane, "2", QueueMode::Steer);
    send(&mut lane, "3", QueueMode::Followup);
    // A message that was taken back comes first in the list.
    let ended = lane.on(Instant::now(), Input::Ended { untaken: vec![job("2"), job("1")] });
    assert_eq!(ended, [LaneEffect::Start(job("1"))]);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("2"))]);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("3"))]);
    assert_eq!(end(&mut lane), []);
    assert!(lane.is_idle());
}

#[test]
fn nothing_is_steered_in_front_of_what_waits() {
    let mut lane = busy(false);
    send(&mut lane, "1", QueueMode::Steer);
    lane.on(Instant::now(), Input::Streaming(true));
    assert_eq!(send(&mut lane, "2", QueueMode::Steer), []);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("1"))]);
    lane.on(Instant::now(), Input::Streaming(true));
    assert_eq!(send(&mut lane, "3", QueueMode::Steer), [], "2 still waits");
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("2"))]);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("3"))]);
    lane.on(Instant::now(), Input::Streaming(true));
    assert_eq!(send(&mut lane, "4", QueueMode::Steer), [LaneEffect::Steer(job("4"))]);
}

#[test]
fn what_is_steered_and_kept_is_read_at_once_and_run_in_its_turn() {
    let mut lane = busy(true);
    for name in ["1", "2"] {
        assert_eq!(send(&mut lane, name, QueueMode::SteerBacklog), [LaneEffect::SteerCopy(job(name))]);
    }
    assert_eq!(
        send(&mut lane, "3", QueueMode::Steer),
        [LaneEffect::Steer(job("3"))],
        "all before it is read"
    );
    assert_eq!(send(&mut lane, "4", QueueMode::Followup), []);
    assert_eq!(send(&mut lane, "5", QueueMode::SteerBacklog), [], "4 is not read by this run");
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("1"))]);
    lane.on(Instant::now(), Input::Streaming(true));
    assert_eq!(send(&mut lane, "6", QueueMode::SteerBacklog), [], "2 waits, and this run has not read it");
    for next in ["2", "4", "5", "6"] {
        assert_eq!(end(&mut lane), [LaneEffect::Start(job(next))]);
    }
    assert_eq!(end(&mut lane), []);
    assert!(lane.is_idle());
}

#[test]
fn what_is_stopped_while_it_is_kept_is_taken_back_from_the_run() {
    for target in [AbortTarget::Run(RunId::new("1")), AbortTarget::All] {
        let mut lane = busy(true);
        send(&mut lane, "1", QueueMode::SteerBacklog);
        let discarded = LaneEffect::Discard(stopped("1", AbortReason::Rpc), AbortReason::Rpc);
        let mut expect = vec![LaneEffect::Retract(RunId::new("1")), discarded];
        if target == AbortTarget::All {
            expect.insert(0, LaneEffect::Cancel(AbortReason::Rpc));
        }
        assert_eq!(abort(&mut lane, target), expect);
        assert_eq!(end(&mut lane), [LaneEffect::Start(stopped("1", AbortReason::Rpc))], "to be closed");
        assert_eq!(end(&mut lane), []);
    }
}

#[test]
fn a_change_has_its_place_among_the_messages() {
    let (one, two) = (ChangeId(1), ChangeId(2));
    let mut lane = busy(true);
    send(&mut lane, "1", QueueMode::Followup);
    assert_eq!(change(&mut lane, one), []);
    assert_eq!(
        send(&mut lane, "2", QueueMode::Steer),
        [],
        "what comes after a change is not steered before it"
    );
    assert_eq!(change(&mut lane, two), []);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("1"))]);
    assert_eq!(end(&mut lane), [LaneEffect::Change(one)]);
    assert_eq!(lane.active(), None);
    assert_eq!(abort(&mut lane, AbortTarget::All).len(), 1, "only what waits behind it");
    assert_eq!(lane.on(Instant::now(), Input::Changed), [LaneEffect::Start(stopped("2", AbortReason::Rpc))]);
    assert_eq!(end(&mut lane), [LaneEffect::Change(two)]);
    assert!(!lane.is_idle());
    assert_eq!(lane.on(Instant::now(), Input::Changed), []);
    assert!(lane.is_idle());
    assert_eq!(change(&mut lane, one), [LaneEffect::Change(one)], "an idle lane begins at once");
}

#[test]
fn a_steered_message_the_run_did_not_take_comes_before_a_change_behind_it() {
    let mut lane = busy(true);
    assert_eq!(send(&mut lane, "1", QueueMode::Steer), [LaneEffect::Steer(job("1"))]);
    assert_eq!(change(&mut lane, ChangeId(2)), []);
    send(&mut lane, "3", QueueMode::Steer);
    assert_eq!(
        lane.on(Instant::now(), Input::Ended { untaken: vec![job("1")] }),
        [LaneEffect::Start(job("1"))]
    );
    assert_eq!(end(&mut lane), [LaneEffect::Change(ChangeId(2))]);
    assert_eq!(lane.on(Instant::now(), Input::Changed), [LaneEffect::Start(job("3"))]);
}

#[test]
fn what_alters_nothing_waits_only_for_what_does() {
    let mut lane = busy(true);
    send(&mut lane, "1", QueueMode::Followup);
    let at_once = "words wait for their turn, nothing else for them";
    assert_eq!(beside(&mut lane, ChangeId(2)), [LaneEffect::ChangeBeside(ChangeId(2))], "{at_once}");
    assert_eq!(
        send(&mut lane, "3/model", QueueMode::Followup),
        [LaneEffect::Aside(job("3/model"))],
        "{at_once}"
    );
    send(&mut lane, "4/new", QueueMode::Followup);
    assert_eq!(beside(&mut lane, ChangeId(5)), []);
    assert_eq!(send(&mut lane, "6/model", QueueMode::Followup), []);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("1"))]);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("4/new"))], "it has yet to begin the conversation");
    let now = [LaneEffect::ChangeBeside(ChangeId(5)), LaneEffect::Aside(job("6/model"))];
    assert_eq!(lane.on(Instant::now(), Input::Streaming(true)), now);
    assert_eq!(end(&mut lane), []);
    assert_eq!(send(&mut lane, "7/model", QueueMode::Followup), [LaneEffect::Start(job("7/model"))]);
    assert_eq!(beside(&mut lane, ChangeId(8)), [], "a command in its turn is waited for");
    assert_eq!(end(&mut lane), [LaneEffect::Change(ChangeId(8))]);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Words,
    Reset,
    New,
    Model,
    Patch,
}

/// Every order of five things said during a run, which steers or not: each is done once and in its turn, but for settings, which do
/// not wait for words.
#[test]
fn every_order_of_what_is_said_during_a_run() {
    use Said::{Model, New, Patch, Reset, Words};
    let all = [Words, Reset, New, Model, Patch];
    for number in 0..5_u32.pow(5) {
        let order: Vec<Said> = (0..5).map(|at| all[(number / 5_u32.pow(at) % 5) as usize]).collect();
        for streaming in [true, false] {
            check(&order, streaming);
        }
    }
}

fn check(order: &[Said], streaming: bool) {
    let mut lane = busy(streaming);
    let (mut steered, mut done) = (Vec::new(), Vec::new());
    let mut pending = VecDeque::new();
    for (n, said) in (1..).zip(order) {
        let place = ChangeId(n);
        pending.extend(match said {
            Said::Words => send(&mut lane, &n.to_string(), QueueMode::Steer),
            Said::Reset => change(&mut lane, place),
            Said::New => send(&mut lane, &format!("{n}/new"), QueueMode::Followup),
            Said::Model => send(&mut lane, &format!("{n}/model"), QueueMode::Followup),
            Said::Patch => beside(&mut lane, place),
        });
    }
    let mut asked_to_end = true;
    loop {
        while let Some(effect) = pending.pop_front() {
            asked_to_end = false;
            match effect {
                LaneEffect::Steer(job) => steered.push(job),
                LaneEffect::ChangeBeside(id) => done.push(id.0),
                LaneEffect::Aside(job) => done.push(job.order()),
                LaneEffect::Start(job) => {
                    done.push(job.order());
                    pending.extend(lane.on(Instant::now(), Input::Streaming(true)));
                }
                LaneEffect::Change(id) => {
                    done.push(id.0);
                    pending.extend(lane.on(Instant::now(), Input::Changed));
                }
                other => panic!("{other:?}"),
            }
        }
        if lane.is_idle() {
            break;
        }
        assert!(!asked_to_end || done.is_empty(), "{order:?}: it stands still at {done:?}");
        asked_to_end = true;
        pending.extend(lane.on(Instant::now(), Input::Ended { untaken: std::mem::take(&mut steered) }));
    }
    let at = |n: usize| done.iter().position(|done| *done == n as u64 + 1).unwrap();
    for later in 0..order.len() {
        for before in 0..later {
            let may_overtake =
                matches!((order[before], order[later]), (Said::Words, Said::Model | Said::Patch));
            assert!(may_overtake || at(before) < at(later), "{order:?}, streaming {streaming}: {done:?}");
        }
    }
    assert_eq!(done.len(), order.len(), "{order:?}: {done:?}");
}

#[test]
fn an_abort_of_all_stops_what_runs_and_discards_what_waits() {
    let mut lane = busy(true);
    send(&mut lane, "s", QueueMode::Steer);
    send(&mut lane, "b", QueueMode::Followup);
    assert_eq!(
        abort(&mut lane, AbortTarget::All),
        [
            LaneEffect::Cancel(AbortReason::Rpc),
            LaneEffect::Withdraw(RunId::new("s"), AbortReason::Rpc),
            LaneEffect::Discard(stopped("b", AbortReason::Rpc), AbortReason::Rpc),
        ]
    );
    assert_eq!(abort(&mut lane, AbortTarget::All), [], "once is enough");
    assert_eq!(end(&mut lane), [LaneEffect::Start(stopped("b", AbortReason::Rpc))], "to be closed");
    assert_eq!(abort(&mut lane, AbortTarget::All), []);
    assert_eq!(end(&mut lane), []);
}

#[test]
fn an_abort_does_not_ask_who_began_a_run() {
    let mut lane = Machine::default();
    send(&mut lane, "A", QueueMode::Followup);
    send(&mut lane, "b", QueueMode::Followup);
    send(&mut lane, "C", QueueMode::Followup);
    let discard = |name: &str| LaneEffect::Discard(stopped(name, AbortReason::Rpc), AbortReason::Rpc);
    assert_eq!(abort(&mut lane, AbortTarget::Run(RunId::new("C"))), [discard("C")]);
    assert_eq!(abort(&mut lane, AbortTarget::All), [LaneEffect::Cancel(AbortReason::Rpc), discard("b")]);
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
        [LaneEffect::Discard(stopped("b", AbortReason::Rpc), AbortReason::Rpc)]
    );
    assert_eq!(abort(&mut lane, run("a")), [LaneEffect::Cancel(AbortReason::Rpc)]);
    assert_eq!(end(&mut lane), [LaneEffect::Start(stopped("b", AbortReason::Rpc))]);
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("c"))]);
}

#[test]
fn a_run_is_stopped_once_and_not_after_it_has_its_result() {
    let mut lane = busy(true);
    assert_eq!(abort(&mut lane, AbortTarget::All), [LaneEffect::Cancel(AbortReason::Rpc)]);
    assert_eq!(abort(&mut lane, AbortTarget::All), []);
    let mut lane = busy(true);
    lane.on(Instant::now(), Input::Closing);
    assert_eq!(abort(&mut lane, AbortTarget::All), []);
    assert_eq!(send(&mut lane, "b", QueueMode::Steer), [], "nor does it take messages");
    assert_eq!(end(&mut lane), [LaneEffect::Start(job("b"))]);
}

#[test]
fn a_stopped_lane_starts_nothing_and_counts_as_idle_after_its_run() {
    let mut lane = busy(true);
    send(&mut lane, "b", QueueMode::Followup);
    lane.on(Instant::now(), Input::Stop);
    assert!(!lane.is_idle());
    assert_eq!(end(&mut lane), []);
    assert!(lane.is_idle());
    assert_eq!(send(&mut lane, "c", QueueMode::Followup), []);
}

#[test]
fn a_held_lane_begins_no_run_and_all_else_goes_on() {
    let mut lane = busy(true);
    lane.on(Instant::now(), Input::Hold);
    assert_eq!(send(&mut lane, "b", QueueMode::Steer), [LaneEffect::Steer(job("b"))], "the run takes it");
    assert_eq!(send(&mut lane, "c", QueueMode::Followup), []);
    assert_eq!(end(&mut lane), [], "it waits for the next start");
    assert!(!lane.is_idle() && lane.due().is_none());
    let words = Input::Change { id: ChangeId(9), beside: true };
    assert_eq!(lane.on(Instant::now(), words), [LaneEffect::ChangeBeside(ChangeId(9))]);
    // A stopped message is closed.
    let stopped = stopped("c", AbortReason::Rpc);
    let effects = [LaneEffect::Discard(stopped.clone(), AbortReason::Rpc), LaneEffect::Start(stopped)];
    assert_eq!(abort(&mut lane, AbortTarget::All), effects);
    assert_eq!(end(&mut lane), []);
    assert!(lane.is_idle());
    let reset = Input::Change { id: ChangeId(10), beside: false };
    assert_eq!(lane.on(Instant::now(), reset), [LaneEffect::Change(ChangeId(10))]);
    assert_eq!(send(&mut lane, "d", QueueMode::Followup), []);
    assert_eq!(lane.on(Instant::now(), Input::Changed), []);
    lane.on(Instant::now(), Input::Stop);
    assert!(lane.is_idle());
}

proptest! {
    /// Whatever comes, every message is started or steered exactly once, stopped ones to be closed, one run at a time, and follow-ups run
    /// in the order in which they came.
    #[test]
    fn every_message_has_one_fate(steps in proptest::collection::vec((0..7_u8, 0..12_usize), 1..60)) {
        let mut lane = Machine::default();
        let (mut sent, mut fates, mut started) = (0, Vec::new(), Vec::new());
        let mut running = false;
        let mut steered: Vec<Job> = Vec::new();
        for (kind, pick) in steps {
            let effects = match kind {
                0 | 1 => { sent += 1; send(&mut lane, &format!("{sent:03}"), QueueMode::Followup) }
                2 => { sent += 1; send(&mut lane, &format!("{sent:03}"), QueueMode::Steer) }
                6 => { sent += 1; send(&mut lane, &format!("{sent:03}"), QueueMode::SteerBacklog) }
                3 => lane.on(Instant::now(), Input::Streaming(pick % 2 == 0)),
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
                    LaneEffect::Start(job) => {
                        prop_assert!(!running);
                        running = true;
                        started.push(job.0.to_string());
                        fates.push(job.0.to_string());
                    }
                    LaneEffect::Steer(job) => { prop_assert!(running); steered.push(job); }
                    LaneEffect::Withdraw(run_id, _) => {
                        let place = steered.iter().position(|job| job.0 == run_id).unwrap();
                        fates.push(steered.remove(place).0.to_string());
                    }
                    LaneEffect::SteerCopy(_) | LaneEffect::Retract(_) => prop_assert!(running),
                    LaneEffect::Discard(job, _) => prop_assert!(job.is_stopped()),
                    LaneEffect::Cancel(_) => prop_assert!(running),
                    other => panic!("{other:?}: nobody asked for one"),
                }
            }
        }
        while running || !lane.is_idle() {
            running = false;
            fates.extend(steered.drain(..).map(|job| job.0.to_string()));
            for effect in end(&mut lane) {
                let LaneEffect::Start(job) = effect else { panic!("only starts are left") };
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

#[test]
fn nothing_is_steered_into_a_heartbeat() {
    let mut lane = Machine::default();
    assert_eq!(send(&mut lane, "BEAT", QueueMode::Followup), [LaneEffect::Start(job("BEAT"))]);
    assert_eq!(lane.on(Instant::now(), Input::Streaming(true)), []);
    assert_eq!(send(&mut lane, "1", QueueMode::Steer), []);
    assert_eq!(lane.on(Instant::now(), Input::Ended { untaken: Vec::new() }), [LaneEffect::Start(job("1"))]);
}
