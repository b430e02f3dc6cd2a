//! Messages that end the process, and those that only look like it (`docs/durability.md`).

use super::*;

/// A process that is stopped as often as a message may end one, and then some.
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

/// More than is kept in memory: it is read when its run begins, when a run under way takes it, and when it is stopped.
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
