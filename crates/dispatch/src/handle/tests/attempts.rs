//! Messages that end the process, and those that only look like it (`docs/durability.md`).

use openclaw_journal::inbox::Attempts;
use openclaw_sessions::transcript::{TranscriptLock, TranscriptRef};

use super::commands::turn;
use super::*;

/// Checks a process that is stopped more often than a message may end one.
#[tokio::test]
async fn a_run_that_is_stopped_in_order_again_and_again_is_not_given_up() {
    const STOPS: usize = 25;
    let (dir, model) = (dir(), FakeModel::start((0..STOPS).map(|_| Answer::Stall("tick"))).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "long work").await;
    for _ in 0..STOPS {
        rig.events_until("r1 chat delta tick").await;
        assert_eq!(rig.dispatch.shutdown(Duration::ZERO).await, [RunId::new("r1")]);
        rig.store.close().await.unwrap();
        rig = Rig::start(dir.path(), &model).await;
    }
    assert_eq!(texts(&rig.end("r1").await), [format!("reply {}", STOPS + 1)]);
}

#[tokio::test]
async fn a_message_that_ends_the_process_whenever_the_model_answers_is_given_up_after_two_hundred_times() {
    const DEATHS: usize = 200;
    let model = FakeModel::start((0..DEATHS).map(|_| Answer::Stall("tick"))).await;
    let mut dirs = vec![dir()];
    let mut rig = Rig::start(dirs[0].path(), &model).await;
    send(&rig, "r1", "kill me").await;
    for _ in 0..DEATHS {
        rig.events_until("r1 chat delta tick").await;
        let crashed = crash(dirs[dirs.len() - 1].path());
        rig = Rig::start(crashed.path(), &model).await;
        dirs.push(crashed);
    }
    let record = rig.end("r1").await;
    let RunOutcome::Error { message, .. } = &record.outcome else { panic!("{record:?}") };
    assert!(message.contains("given up: the gateway ended unexpectedly 200 times"), "{message}");
    assert_eq!(said(dirs[DEATHS].path()), ["user: kill me\n[message_id: r1]", "assistant:  (error)"]);
    assert_eq!(model.count(), DEATHS);
    send(&rig, "r2", "and you?").await;
    assert_eq!(texts(&rig.end("r2").await), [format!("reply {}", DEATHS + 1)]);
}

/// Checks messages that are too big for memory: they are read when their run begins, when a run
/// under way takes them, and when they are stopped.
#[tokio::test]
async fn a_big_message_is_worked_on_as_a_small_one_is() {
    let big = |name: &str| format!("{name} {}", "word ".repeat(20_000));
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("one"), Answer::Text("two")]).await);
    let steer = json!({"messages": {"queue": {"mode": "steer"}}, "agents": {"defaults": {
        "model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true}}});
    let rig = Rig::with_config(dir.path(), &model, steer).await;
    send(&rig, "r1", &big("first")).await;
    model.asked(1).await;
    assert!(model.heard(0)[0].contains("first word word"));
    send(&rig, "r2", &big("second")).await;
    model.release();
    assert_eq!(texts(&rig.end("r2").await).last(), Some(&"two"));
    assert!(model.heard(1)[2].contains("second word word"));
    let said = said(dir.path());
    let kept: Vec<_> = said.iter().map(|line| line.chars().take(14).collect::<String>()).collect();
    assert_eq!(kept, ["user: first wo", "assistant: one", "user: second w", "assistant: two"]);
}

/// Sets up a message that has ended the process so many times, as a start finds it.
fn died(dir: &std::path::Path, run_id: &str, times: u32) {
    memory::edit(dir, |message| {
        if message.run_id.as_str() == run_id {
            message.progress.attempts = Attempts { all: times, unprepared: times };
        }
    });
}

/// Sets up a state directory in which one message ended without an answer and another one
/// waits.
async fn waiting(run_id: &str) -> (tempfile::TempDir, TranscriptRef) {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("hello"), Answer::Held("never")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    assert_eq!(turn(&rig, "r0", "hi").await, "hello");
    send(&rig, "held", "hold on").await;
    model.asked(2).await;
    send(&rig, run_id, "kill me").await;
    let crashed = crash(dir.path());
    let ended = rig.end("r0").await;
    memory::edit(crashed.path(), |message| {
        if message.run_id.as_str() == "held" {
            let ended = RunRecord { run_id: RunId::new("held"), ..ended.clone() };
            assert!(message.progress.finish(&ended).unwrap());
        }
    });
    let all = crate::testing::transcripts(crashed.path());
    let transcript =
        all.find(&openclaw_protocol::AgentId::default(), &rig.entry().await).expect("it is there");
    (crashed, transcript)
}

const GIVEN_UP: [&str; 5] = [
    "user: hi\n[message_id: r0]",
    "assistant: hello",
    "user: hold on\n[message_id: held]",
    "user: kill me\n[message_id: r1]",
    "assistant:  (error)",
];

#[tokio::test]
async fn a_crash_while_a_message_is_given_up_leaves_it_in_the_history() {
    let (dir, transcript) = waiting("r1").await;
    died(dir.path(), "r1", 3);
    let lock = TranscriptLock::acquire(&crate::testing::transcripts(dir.path()), &transcript).await.unwrap();
    let model = FakeModel::start([]).await;
    let _rig = Rig::start(dir.path(), &model).await;
    // True when the message is on its way to the transcript, or has ended.
    let has_begun = || {
        let mut has_begun = false;
        memory::edit(dir.path(), |message| {
            let is_it = message.run_id.as_str() == "r1";
            has_begun |= is_it && (message.progress.attempts.all == 4 || message.progress.is_finished);
        });
        has_begun
    };
    while !has_begun() {
        tokio::task::yield_now().await;
    }
    let crashed = crash(dir.path());
    drop(lock);
    let (rig, said) = after(&crashed, &model, &["r1"]).await;
    assert_eq!(said, GIVEN_UP);
    let why = rig.end("r1").await.outcome.failure().unwrap().to_owned();
    assert!(why.contains("given up: the gateway ended unexpectedly 3 times"), "{why}");
    assert_eq!(model.count(), 0);
}

#[tokio::test]
async fn a_message_is_given_up_in_the_history_once() {
    let (mut crashed, _) = waiting("r1").await;
    for times in [3, 4, 5] {
        died(crashed.path(), "r1", times);
        let model = FakeModel::start([]).await;
        let (_rig, said) = after(&crashed, &model, &["r1"]).await;
        assert_eq!((said.as_slice(), model.count()), (GIVEN_UP.map(str::to_owned).as_slice(), 0), "{times}");
        let next = crash(crashed.path());
        unfinish(next.path(), "r1");
        crashed = next;
    }
}

#[tokio::test]
async fn a_message_that_ends_the_process_while_it_is_given_up_is_left_out_of_the_history() {
    let (dir, _) = waiting("r1").await;
    died(dir.path(), "r1", 6);
    let model = FakeModel::start([]).await;
    let (rig, said) = after(&dir, &model, &["r1"]).await;
    assert_eq!(said, GIVEN_UP[..3]);
    assert!(rig.end("r1").await.outcome.failure().is_some());
    assert_eq!(turn(&rig, "r2", "and you?").await, "reply 1");
}
