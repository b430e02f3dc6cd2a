//! Vectors of spec `queue.md` §3 and §4, and the property that no message is lost, whatever comes.

use std::collections::BTreeSet;
use std::time::Duration;

use openclaw_channels::Address;
use openclaw_config::settings::QueueDrop;
use openclaw_journal::queue::QueueSettings;
use openclaw_journal::rights::Rights;
use openclaw_journal::rights::testing::{OWNERS, STRANGERS};
use proptest::prelude::*;

use super::*;

/// Kind of message that comes to a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Words of a person.
    Prompt,
    /// An `agent` request.
    Agent,
    /// `/new`.
    Reset,
    /// A command that is answered beside a run.
    Command,
}

#[derive(Debug, Clone, PartialEq)]
struct Job {
    run_id: RunId,
    order: u64,
    what: What,
    settings: QueueSettings,
    /// Address of the answer; `None` for a client of the gateway.
    to: Option<Address>,
    message_id: String,
    alone: bool,
    waited: bool,
    cut: Option<u64>,
    stopped: bool,
}

impl LaneMessage for Job {
    fn run_id(&self) -> &RunId {
        &self.run_id
    }
    fn is_stopped(&self) -> bool {
        self.stopped
    }
    fn stop(&mut self, _: AbortReason) {
        self.stopped = true;
    }
    fn order(&self) -> u64 {
        self.order
    }
    fn alters(&self) -> bool {
        self.what == What::Reset || self.what == What::Command && !self.stopped
    }
    fn is_aside(&self) -> bool {
        self.what == What::Command && !self.stopped
    }
    fn takes_steering(&self) -> bool {
        true
    }
    fn queue(&self) -> Option<QueueSettings> {
        (self.what == What::Prompt && !self.stopped).then_some(self.settings)
    }
    fn place(&self) -> Option<&Address> {
        self.to.as_ref()
    }
    fn message_id(&self) -> Option<&str> {
        (!self.message_id.is_empty()).then_some(self.message_id.as_str())
    }
    fn is_alone(&self) -> bool {
        self.alone
    }
    fn is_announcement(&self) -> bool {
        self.run_id.as_str().starts_with("announce")
    }
    fn has_waited(&self) -> bool {
        self.waited
    }
    fn cut(&self) -> Option<u64> {
        self.cut
    }
    fn set_cut(&mut self, dropped: u64) {
        self.cut = Some(dropped);
    }
    fn rights(&self) -> Option<&Rights> {
        let is_strangers = self.run_id.as_str().ends_with('?');
        Some(if is_strangers { &STRANGERS } else { &OWNERS })
    }
}

const NO_WAIT: QueueSettings =
    QueueSettings { mode: QueueMode::Collect, debounce_ms: 0, cap: 20, drop: QueueDrop::Summarize };

fn address(channel: &str, target: &str, thread: Option<&str>) -> Address {
    let own = str::to_owned;
    Address { channel: own(channel), account: own("default"), target: own(target), thread: thread.map(own) }
}

/// `channel:target/thread`, or `webchat`.
fn place(text: &str) -> Option<Address> {
    let (channel, rest) = text.split_once(':')?;
    let (target, thread) =
        rest.split_once('/').map_or((rest, None), |(target, thread)| (target, Some(thread)));
    Some(address(channel, target, thread))
}

fn prompt(name: &str, order: u64, to: &str, settings: QueueSettings) -> Job {
    Job {
        run_id: RunId::new(name),
        order,
        what: What::Prompt,
        settings,
        to: place(to),
        message_id: String::new(),
        alone: false,
        waited: false,
        cut: None,
        stopped: false,
    }
}

/// A lane with a run under way.
fn busy(now: Instant) -> Machine<Job> {
    let mut lane = Machine::default();
    let first = prompt("first", 0, "slack:A", NO_WAIT);
    assert_eq!(
        lane.on(now, Input::Message { job: first.clone(), mode: QueueMode::Collect }),
        [LaneEffect::Start(first)]
    );
    lane.on(now, Input::Streaming(true));
    lane
}

fn say(lane: &mut Machine<Job>, now: Instant, job: Job) -> Vec<LaneEffect<Job>> {
    let mode = job.settings.mode;
    lane.on(now, Input::Message { job, mode })
}

fn names(jobs: &[Job]) -> String {
    jobs.iter().map(|job| job.run_id.as_str()).collect::<Vec<_>>().join("+")
}

/// Formats an effect as the tables write it, with a `?` behind words of somebody else than the
/// owner: `a+b` are asked in one collected run, `!2(a)` tells of two dropped ones, `→c` answers
/// where `c` was said.
fn shown(effect: &LaneEffect<Job>) -> String {
    match effect {
        LaneEffect::Start(job) => job.run_id.to_string(),
        LaneEffect::StartAll(batch) => {
            let Batch { leader, items, cut, dropped, answer_as } = batch;
            let (mut asked, mut cut) = (items.clone(), cut.clone());
            if leader.cut.is_some() {
                cut.push(leader.clone())
            } else {
                asked.push(leader.clone())
            }
            let overflow = if *dropped > 0 { format!("!{dropped}({})", names(&cut)) } else { String::new() };
            let route = answer_as.as_ref().map(|job| format!("→{}", job.run_id)).unwrap_or_default();
            format!("[{}]{overflow}{route}", names(&asked))
        }
        LaneEffect::Drop(job, rule) => format!("drop {} {}", job.run_id, rule.as_str()),
        LaneEffect::Cut(job) => format!("cut {}", job.run_id),
        other => format!("{other:?}"),
    }
}

/// Returns the runs, and the dropped messages, that come of what was said during a run.
fn drained(said: Vec<Job>) -> (Vec<String>, Vec<String>) {
    let now = Instant::now();
    let mut lane = busy(now);
    let dropped: Vec<String> =
        said.into_iter().flat_map(|job| say(&mut lane, now, job)).map(|e| shown(&e)).collect();
    let mut runs = Vec::new();
    loop {
        let begun = lane.on(now, Input::Ended { untaken: Vec::new() });
        if begun.is_empty() {
            assert!(lane.is_idle(), "something waits: {lane:?}");
            return (runs, dropped);
        }
        runs.extend(begun.iter().map(shown));
    }
}

/// Spec `queue.md` §4.1 and §4.2.
#[test]
fn what_waited_is_run_as_the_tables_say() {
    let with = |mode, cap, drop| QueueSettings { mode, cap, drop, ..NO_WAIT };
    let (collect, followup) = (QueueMode::Collect, QueueMode::Followup);
    type Row<'a> = (&'a str, QueueSettings, &'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);
    let rows: &[Row<'_>] = &[
        ("same place", NO_WAIT, &[("one", "slack:A"), ("two", "slack:A")], &["[one+two]"], &[]),
        ("one alone", NO_WAIT, &[("one", "slack:A")], &["[one]"], &[]),
        ("two places", NO_WAIT, &[("one", "slack:A"), ("two", "slack:B")], &["one", "two"], &[]),
        (
            "once apart, all apart",
            NO_WAIT,
            &[("a", "slack:A"), ("b", "slack:B"), ("c", "slack:B")],
            &["a", "b", "c"],
            &[],
        ),
        (
            "a client among them",
            NO_WAIT,
            &[("a", "slack:A"), ("b", "webchat"), ("c", "slack:A")],
            &["a", "b", "c"],
            &[],
        ),
        ("clients", NO_WAIT, &[("one", "webchat"), ("two", "webchat")], &["[one+two]"], &[]),
        ("one client alone", NO_WAIT, &[("one", "webchat")], &["[one]"], &[]),
        ("topics", NO_WAIT, &[("one", "telegram:1/1"), ("two", "telegram:1/2")], &["one", "two"], &[]),
        ("text threads", NO_WAIT, &[("one", "slack:C/1.1"), ("two", "slack:C/2.2")], &["one", "two"], &[]),
        ("one thread", NO_WAIT, &[("one", "slack:C/1.1"), ("two", "slack:C/1.1")], &["[one+two]"], &[]),
        (
            "follow-ups",
            with(followup, 20, QueueDrop::New),
            &[("one", "slack:A"), ("two", "slack:A")],
            &["one", "two"],
            &[],
        ),
        (
            "newcomers stay out",
            with(followup, 2, QueueDrop::New),
            &[("a", "slack:A"), ("b", "slack:A"), ("c", "slack:A")],
            &["a", "b"],
            &["drop c queue-cap-new"],
        ),
        (
            "the oldest goes",
            with(followup, 2, QueueDrop::Old),
            &[("a", "slack:A"), ("b", "slack:A"), ("c", "slack:A")],
            &["b", "c"],
            &["drop a queue-cap-old"],
        ),
        (
            "summary with what is asked",
            with(collect, 2, QueueDrop::Summarize),
            &[("a", "slack:A"), ("b", "slack:A"), ("c", "slack:A"), ("d", "slack:A")],
            &["[c+d]!2(a+b)"],
            &["cut a", "cut b"],
        ),
        (
            "summary before follow-ups, with as many lines as may wait",
            with(followup, 1, QueueDrop::Summarize),
            &[("a", "slack:A"), ("b", "slack:A"), ("c", "slack:A")],
            &["[]!2(b)→c", "c"],
            &["cut a", "cut b", "drop a queue-cap-summarized"],
        ),
        (
            "a stranger among them",
            NO_WAIT,
            &[("a", "slack:A"), ("b", "slack:A"), ("c?", "slack:A"), ("d", "slack:A"), ("e", "slack:A")],
            &["[a+b]", "[c?]", "[d+e]"],
            &[],
        ),
        (
            "a stranger among those that a summary tells of",
            with(collect, 2, QueueDrop::Summarize),
            &[("a", "slack:A"), ("b?", "slack:A"), ("c", "slack:A"), ("d", "slack:A")],
            &["[]!1(a)→d", "[]!1(b?)", "[c+d]"],
            &["cut a", "cut b?"],
        ),
        (
            "summary behind what is run apart",
            with(collect, 2, QueueDrop::Summarize),
            &[("a", "slack:A"), ("b", "slack:A"), ("c", "slack:B")],
            &["b", "c", "[]!1(a)→c"],
            &["cut a"],
        ),
    ];
    for (what, settings, said, runs, dropped) in rows {
        let jobs = (1..).zip(*said).map(|(order, (name, to))| prompt(name, order, to, *settings)).collect();
        let found = drained(jobs);
        assert_eq!(found.0, *runs, "{what}");
        assert_eq!(found.1, *dropped, "{what}");
    }
}

/// Checks that a message is steered only if its answer goes to the place of the run's own message:
/// otherwise the answer would be told to the wrong people, or to nobody.
#[test]
fn only_what_is_answered_in_the_same_place_is_steered() {
    for mode in [QueueMode::Steer, QueueMode::SteerBacklog] {
        let rows = [
            ("slack:A", true),
            ("slack:B", false),
            ("telegram:A", false),
            ("slack:A/7", false),
            ("webchat", false),
        ];
        for (to, is_steered) in rows {
            let now = Instant::now();
            let mut lane = busy(now);
            let job = prompt("second", 1, to, QueueSettings { mode, ..NO_WAIT });
            let effects = say(&mut lane, now, job.clone());
            let is_kept = mode == QueueMode::SteerBacklog;
            let expect = match (is_steered, is_kept) {
                (true, true) => vec![LaneEffect::SteerCopy(job.clone())],
                (true, false) => vec![LaneEffect::Steer(job.clone())],
                (false, _) => Vec::new(),
            };
            assert_eq!(effects, expect, "{mode:?} {to}");
            let behind = lane.on(now, Input::Ended { untaken: Vec::new() });
            let runs: Vec<String> = behind.iter().map(shown).collect();
            let expect: &[&str] = if is_steered && !is_kept { &[] } else { &["second"] };
            assert_eq!(runs, expect, "{mode:?} {to}: it is asked by itself");
        }
    }
}

/// Checks that a message that gives way in a full queue is told as dropped if no run has read it,
/// and is not asked again if a run has.
#[test]
fn what_a_run_has_read_is_not_told_as_dropped_to_the_next() {
    let settings =
        QueueSettings { mode: QueueMode::SteerBacklog, cap: 2, drop: QueueDrop::Summarize, ..NO_WAIT };
    let now = Instant::now();
    let mut lane = busy(now);
    for (order, name) in (1..).zip(["a", "b"]) {
        say(&mut lane, now, prompt(name, order, "slack:A", settings));
    }
    // The run has read the one and not the other; `a` is under way now, beside which nothing is
    // read.
    lane.on(now, Input::Read(vec![RunId::new("b")]));
    let begun = lane.on(now, Input::Ended { untaken: Vec::new() });
    assert_eq!(begun.iter().map(shown).collect::<Vec<_>>(), ["a"]);
    let mut found = Vec::new();
    for (order, name) in (3..).zip(["c", "d", "e"]) {
        found.extend(say(&mut lane, now, prompt(name, order, "slack:A", settings)).iter().map(shown));
    }
    assert_eq!(found, ["drop b queue-cap-read", "cut c"]);
    let mut begun = Vec::new();
    while !lane.is_idle() {
        begun.extend(lane.on(now, Input::Ended { untaken: Vec::new() }).iter().map(shown));
    }
    assert_eq!(begun, ["[]!1(c)→e", "d", "e"]);
}

/// Checks that steered messages that are also kept count as waiting: a full queue and a repetition
/// are dealt with as always.
#[test]
fn what_is_steered_and_kept_takes_room_in_the_queue() {
    type Row<'a> = (QueueDrop, &'a [&'a str], &'a [&'a str]);
    let rows: &[Row<'_>] = &[
        (QueueDrop::New, &["copy a", "copy b", "steer c", "drop b queue-duplicate"], &["a", "b"]),
        (QueueDrop::Old, &["copy a", "copy b", "leave a", "copy c", "drop b queue-duplicate"], &["b", "c"]),
        (
            QueueDrop::Summarize,
            &["copy a", "copy b", "leave a", "copy c", "drop b queue-duplicate"],
            &["b", "c"],
        ),
    ];
    for (drop, heard, runs) in rows {
        let settings = QueueSettings { mode: QueueMode::SteerBacklog, cap: 2, drop: *drop, ..NO_WAIT };
        let now = Instant::now();
        let mut lane = busy(now);
        let mut found = Vec::new();
        for (order, name) in (1..).zip(["a", "b", "c", "b"]) {
            let job = Job { message_id: name.to_owned(), ..prompt(name, order, "slack:A", settings) };
            found.extend(say(&mut lane, now, job).iter().map(|effect| match effect {
                LaneEffect::SteerCopy(job) => format!("copy {}", job.run_id),
                LaneEffect::Steer(job) => format!("steer {}", job.run_id),
                LaneEffect::Leave(job) => format!("leave {}", job.run_id),
                other => shown(other),
            }));
        }
        assert_eq!(found, *heard, "{drop:?}");
        let mut begun = Vec::new();
        while !lane.is_idle() {
            begun.extend(lane.on(now, Input::Ended { untaken: Vec::new() }).iter().map(shown));
        }
        assert_eq!(begun, *runs, "{drop:?}");
    }
}

#[test]
fn the_same_message_does_not_wait_twice_in_one_place() {
    let told = |name: &str, order, id: &str, to: &str| Job {
        message_id: id.to_owned(),
        ..prompt(name, order, to, QueueSettings { mode: QueueMode::Followup, ..NO_WAIT })
    };
    let said = vec![
        told("a", 1, "1", "slack:1"),
        told("b", 2, "1", "slack:1"),
        told("c", 3, "1", "slack:2"),
        told("d", 4, "", "slack:1"),
        told("e", 5, "", "slack:1"),
    ];
    let (runs, dropped) = drained(said);
    assert_eq!(runs, ["a", "c", "d", "e"]);
    assert_eq!(dropped, ["drop b queue-duplicate"]);
}

#[test]
fn it_is_waited_for_quiet_behind_a_run_and_never_in_front_of_one() {
    let start = Instant::now();
    let later = |ms| start + Duration::from_millis(ms);
    let settings = QueueSettings { debounce_ms: 100, ..NO_WAIT };
    let mut lane = busy(start);
    say(&mut lane, later(0), prompt("a", 1, "slack:A", settings));
    assert_eq!(lane.due(), None, "a run is under way");
    assert_eq!(lane.on(later(10), Input::Ended { untaken: Vec::new() }), []);
    assert_eq!(lane.due(), Some(later(100)));
    assert!(!lane.is_idle());
    say(&mut lane, later(90), prompt("b", 2, "slack:A", settings));
    assert_eq!(lane.due(), Some(later(190)), "each message extends it");
    assert_eq!(lane.on(later(150), Input::Quiet), []);
    let command = Job { what: What::Command, ..prompt("c", 3, "slack:A", settings) };
    assert_eq!(
        say(&mut lane, later(160), command.clone()),
        [LaneEffect::Aside(command)],
        "a command is answered at once"
    );
    let begun = lane.on(later(190), Input::Quiet);
    assert_eq!(begun.iter().map(shown).collect::<Vec<_>>(), ["[a+b]"]);
    assert_eq!(lane.on(later(200), Input::Ended { untaken: Vec::new() }), []);
    assert!(lane.is_idle());
    let alone = prompt("d", 4, "slack:A", settings);
    assert_eq!(
        say(&mut lane, later(201), alone.clone()),
        [LaneEffect::Start(alone)],
        "an idle session starts at once"
    );
}

#[test]
fn what_is_not_for_the_agent_ends_the_wait_and_is_not_run_with_it() {
    let now = Instant::now();
    let settings = QueueSettings { debounce_ms: 60_000, ..NO_WAIT };
    let mut lane = busy(now);
    say(&mut lane, now, prompt("a", 1, "slack:A", settings));
    assert_eq!(lane.on(now, Input::Ended { untaken: Vec::new() }), []);
    let agent = Job {
        what: What::Agent,
        settings: QueueSettings { mode: QueueMode::Followup, ..settings },
        ..prompt("B", 2, "slack:A", settings)
    };
    let begun = say(&mut lane, now, agent.clone());
    assert_eq!(begun.iter().map(shown).collect::<Vec<_>>(), ["[a]"]);
    say(&mut lane, now, prompt("c", 3, "slack:A", settings));
    assert_eq!(lane.on(now, Input::Ended { untaken: Vec::new() }), [LaneEffect::Start(agent)]);
    assert_eq!(lane.on(now, Input::Ended { untaken: Vec::new() }), [], "c is waited with");
    let other_model = Job { alone: true, ..prompt("d", 4, "slack:A", NO_WAIT) };
    let begun = say(&mut lane, now, other_model.clone());
    assert_eq!(begun.iter().map(shown).collect::<Vec<_>>(), ["[c]"], "the newest message says how long");
    assert_eq!(lane.on(now, Input::Ended { untaken: Vec::new() }), [LaneEffect::Start(other_model)]);
}

#[test]
fn a_stop_ends_what_waits_for_quiet_and_what_was_dropped() {
    let now = Instant::now();
    let settings = QueueSettings { debounce_ms: 60_000, cap: 1, ..NO_WAIT };
    let mut lane = busy(now);
    say(&mut lane, now, prompt("a", 1, "slack:A", settings));
    say(&mut lane, now, prompt("b", 2, "slack:A", settings));
    lane.on(now, Input::Ended { untaken: Vec::new() });
    let all = Input::Abort { target: AbortTarget::All, reason: AbortReason::Stop };
    let told = lane.on(now, all);
    let told: Vec<String> = told
        .iter()
        .map(|effect| match effect {
            LaneEffect::Discard(job, _) => format!("discard {}", job.run_id),
            other => shown(other),
        })
        .collect();
    assert_eq!(told, ["discard a", "discard b", "a"], "its turn only closes it");
    let closed = lane.on(now, Input::Ended { untaken: Vec::new() });
    assert_eq!(closed.iter().map(shown).collect::<Vec<_>>(), ["b"]);
    assert_eq!(lane.on(now, Input::Ended { untaken: Vec::new() }), []);
    assert!(lane.is_idle());
}

#[test]
fn what_waited_before_a_crash_is_run_together_after_it() {
    let now = Instant::now();
    let settings = QueueSettings { debounce_ms: 50, cap: 1, ..NO_WAIT };
    let found = |name, order| Job { waited: true, ..prompt(name, order, "slack:A", settings) };
    let mut lane = Machine::default();
    let cut = Job { cut: Some(3), ..found("a", 1) };
    for job in [cut, found("b", 2), found("c", 3)] {
        assert_eq!(
            lane.on(now, Input::Message { job, mode: QueueMode::Followup }),
            [],
            "it was accepted: nothing is dropped"
        );
    }
    let begun = lane.on(now + Duration::from_millis(50), Input::Quiet);
    assert_eq!(begun.iter().map(shown).collect::<Vec<_>>(), ["[b+c]!3(a)"]);
}

#[derive(Debug, Clone)]
enum Event {
    Say {
        what: What,
        mode: u8,
        drop: u8,
        cap: u64,
        to: u8,
        alone: bool,
        debounce: u64,
    },
    Streaming(bool),
    Closing,
    /// The run ends and has taken so many of the steered messages.
    End(usize),
    Pass(u64),
    AbortAll,
    Abort(u64),
    Change(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        12 => Just(What::Prompt), 2 => Just(What::Agent), 1 => Just(What::Reset), 2 => Just(What::Command)
    ];
    let said = (what, 0..5_u8, 0..3_u8, 1..4_u64, 0..4_u8, prop::bool::weighted(0.1), 0..3_u64);
    prop_oneof![
        10 => said.prop_map(|(what, mode, drop, cap, to, alone, debounce)| Event::Say { what, mode, drop, cap, to, alone, debounce }),
        3 => any::<bool>().prop_map(Event::Streaming),
        1 => Just(Event::Closing),
        5 => (0..4_usize).prop_map(Event::End),
        3 => (1..30_u64).prop_map(Event::Pass),
        1 => Just(Event::AbortAll),
        1 => (1..40_u64).prop_map(Event::Abort),
        1 => any::<bool>().prop_map(Event::Change),
    ]
}

/// Fates of the messages in a test.
#[derive(Default)]
struct World {
    running: bool,
    /// Steered messages, in order.
    steered: Vec<Job>,
    /// Messages of which the run under way was handed a copy, by order.
    copied: BTreeSet<u64>,
    /// The fate of each, by its order.
    ended: Vec<u64>,
    /// Messages that were begun and not only closed, in order.
    begun: Vec<u64>,
    cut: BTreeSet<u64>,
    changes: usize,
}

impl World {
    fn begin(&mut self, job: &Job) {
        // A stopped one is only closed.
        self.begun.extend((!job.stopped).then_some(job.order));
        self.ended.push(job.order);
    }

    fn see(&mut self, effects: Vec<LaneEffect<Job>>) {
        for effect in effects {
            match effect {
                LaneEffect::Start(job) => {
                    assert!(!std::mem::replace(&mut self.running, true), "one run at a time");
                    self.begin(&job);
                }
                LaneEffect::StartAll(batch) => {
                    assert!(!std::mem::replace(&mut self.running, true), "one run at a time");
                    let Batch { leader, items, cut, dropped, .. } = batch;
                    let told = cut.len() + usize::from(leader.cut.is_some());
                    assert!(dropped >= told as u64, "{dropped} {told}");
                    items.iter().for_each(|item| self.begin(item));
                    match leader.cut {
                        Some(_) => self.ended.push(leader.order),
                        None => self.begin(&leader),
                    }
                    self.ended.extend(cut.iter().map(|job| job.order));
                    let together: Vec<_> = items.iter().chain([&leader]).map(|job| job.to.clone()).collect();
                    assert!(together.windows(2).all(|two| two[0] == two[1]), "one answer in one place");
                }
                LaneEffect::Steer(job) => {
                    assert!(self.running);
                    self.steered.push(job);
                }
                LaneEffect::Leave(job) => {
                    assert!(self.running && self.copied.contains(&job.order));
                    self.steered.push(job);
                }
                LaneEffect::SteerCopy(job) => {
                    assert!(self.running);
                    assert!(self.copied.insert(job.order), "it is handed over once");
                    assert!(!self.ended.contains(&job.order), "it waits for its own run");
                }
                LaneEffect::Retract(run_id) => {
                    assert!(self.copied.contains(&run_id.as_str().parse().unwrap()), "there is one");
                }
                LaneEffect::Aside(job) => self.ended.push(job.order),
                LaneEffect::Drop(job, _) => self.ended.push(job.order),
                LaneEffect::Cut(job) => assert!(self.cut.insert(job.order), "once"),
                LaneEffect::Withdraw(run_id, _) => {
                    let at = self.steered.iter().position(|job| job.run_id == run_id).unwrap();
                    self.ended.push(self.steered.remove(at).order);
                }
                LaneEffect::Discard(job, _) => assert!(job.stopped),
                LaneEffect::Cancel(_) => assert!(self.running),
                LaneEffect::ChangeBeside(_) => self.changes += 1,
                LaneEffect::Change(_) => {
                    assert!(!std::mem::replace(&mut self.running, true), "nothing runs beside it");
                    self.changes += 1;
                }
            }
        }
    }
}

proptest! {
    /// Checks for every mode and every other input: each accepted message is in exactly one run, or
    /// closed, or dropped by a rule; runs follow the order of acceptance; and nothing waits for
    /// ever.
    #[test]
    fn no_message_is_lost_or_asked_twice(events in prop::collection::vec(event(), 1..80)) {
        use QueueMode::{Collect, Followup, Interrupt, Steer, SteerBacklog};
        let mut now = Instant::now();
        let mut lane = Machine::default();
        let mut world = World::default();
        let (mut order, mut said, mut asked_changes) = (0, 0, 0);
        for event in events {
            let effects = match event {
                Event::Say { what, mode, drop, cap, to, alone, debounce } => {
                    order += 1;
                    said += 1;
                    let mode = [Collect, Followup, Steer, SteerBacklog, Interrupt][usize::from(mode)];
                    let drop = [QueueDrop::Old, QueueDrop::New, QueueDrop::Summarize][usize::from(drop)];
                    let mode = match what {
                        What::Prompt => mode,
                        What::Reset => Interrupt,
                        What::Agent | What::Command => Followup,
                    };
                    let settings = QueueSettings { mode, debounce_ms: debounce * 10, cap, drop };
                    let to = ["webchat", "slack:A", "slack:B/1", "slack:A"][usize::from(to)];
                    let job = Job { what, alone, ..prompt(&order.to_string(), order, to, settings) };
                    lane.on(now, Input::Message { job, mode })
                }
                Event::Streaming(streaming) if world.running && lane.active().is_some() => {
                    lane.on(now, Input::Streaming(streaming))
                }
                Event::Closing if lane.active().is_some() => lane.on(now, Input::Closing),
                Event::End(taken) if world.running => {
                    world.running = false;
                    let taken = taken.min(world.steered.len());
                    let untaken = world.steered.split_off(taken);
                    let taken: Vec<u64> = world.steered.drain(..).map(|job| job.order).collect();
                    world.ended.extend(taken);
                    let input = match lane.active() {
                        Some(_) => Input::Ended { untaken },
                        None => Input::Changed,
                    };
                    lane.on(now, input)
                }
                Event::Pass(ms) => {
                    now += Duration::from_millis(ms);
                    lane.on(now, Input::Quiet)
                }
                Event::AbortAll => {
                    lane.on(now, Input::Abort { target: AbortTarget::All, reason: AbortReason::Stop })
                }
                Event::Abort(n) => {
                    let target = AbortTarget::Run(RunId::new(n.to_string()));
                    lane.on(now, Input::Abort { target, reason: AbortReason::Rpc })
                }
                Event::Change(beside) => {
                    order += 1;
                    asked_changes += 1;
                    lane.on(now, Input::Change { id: ChangeId(order), beside })
                }
                Event::Streaming(_) | Event::Closing | Event::End(_) => continue,
            };
            world.see(effects);
        }
        for _ in 0..10_000 {
            if lane.is_idle() {
                break;
            }
            now += Duration::from_millis(1_000);
            let effects = if std::mem::take(&mut world.running) {
                let untaken = std::mem::take(&mut world.steered);
                match lane.active() {
                    Some(_) => lane.on(now, Input::Ended { untaken }),
                    None => lane.on(now, Input::Changed),
                }
            } else {
                lane.on(now, Input::Quiet)
            };
            world.see(effects);
        }
        prop_assert!(lane.is_idle(), "something waits for ever: {lane:?}");
        let mut ended = world.ended.clone();
        ended.sort_unstable();
        ended.dedup();
        prop_assert_eq!(ended.len(), world.ended.len(), "each has one fate");
        prop_assert_eq!(ended.len(), said, "each has a fate");
        prop_assert_eq!(world.changes, asked_changes);
        prop_assert!(world.begun.is_sorted(), "in the order of acceptance: {:?}", world.begun);
    }
}
