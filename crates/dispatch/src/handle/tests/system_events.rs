//! System events on their way to an agent.

use super::*;

/// The first message of a request without the times in it.
fn heard(model: &FakeModel, request: usize, place: usize) -> String {
    let lines = model.heard(request);
    let line = lines[place].strip_prefix("user: ").unwrap();
    let untimed = line.split('\n').map(|line| match line.split_once("] ") {
        Some((time, text)) => {
            format!("{}{text}", if time.starts_with("System: [") { "System: " } else { "" })
        }
        None => line.to_owned(),
    });
    untimed.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_line_is_told_with_the_next_message_and_never_again() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    rig.system_events.enqueue(&key_of(KEY), "the door was opened", None, 1);
    rig.system_events.enqueue(&key_of(KEY), "the door was closed", None, 2);
    rig.system_events.enqueue(&key_of("agent:other:main"), "not for you", None, 3);
    send(&rig, "r1", "hi").await;
    rig.end("r1").await;
    let expected = "System: the door was opened\nSystem: the door was closed\n\nhi\n[message_id: r1]";
    assert_eq!(heard(&model, 0, 0), expected);
    send(&rig, "r2", "more").await;
    rig.end("r2").await;
    assert_eq!(heard(&model, 1, 2), "more\n[message_id: r2]");
    rig.system_events.enqueue(&key_of(KEY), "a knock", None, 4);
    drop(rig.agent(agent("r3", "and?")).await.unwrap());
    rig.end("r3").await;
    assert_eq!(heard(&model, 2, 4), "System: a knock\n\nand?");
}

#[tokio::test]
async fn a_message_that_never_reached_the_transcript_leaves_the_line_to_the_next() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    rig.system_events.enqueue(&key_of(KEY), "a knock", None, 1);
    let mut wrong = chat("r1", "hi");
    wrong.thinking = Some("sideways".to_owned());
    drop(rig.chat(wrong).await.unwrap());
    assert!(matches!(rig.end("r1").await.outcome, RunOutcome::Error { .. }));
    send(&rig, "r2", "hi").await;
    rig.end("r2").await;
    assert_eq!(heard(&model, 0, 0), "System: a knock\n\nhi\n[message_id: r2]");
}

#[tokio::test]
async fn a_run_taken_up_after_a_crash_has_been_told() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    rig.system_events.enqueue(&key_of(KEY), "a knock", None, 1);
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat delta half").await;
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("whole")]).await;
    let (_rig, said) = after(&crashed, &model, &["r1"]).await;
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(heard(&model, 0, 0), "System: a knock\n\nhi\n[message_id: r1]");
}

#[tokio::test]
async fn a_line_that_was_promised_survives_a_crash_and_is_told_once() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    rig.system_events.notice(&key_of(KEY), "Exec completed (a, code 0)", 1, None).await;
    rig.system_events.enqueue(&key_of(KEY), "a knock", None, 2);
    let waiting = crash(dir.path());
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat delta half").await;
    let under_way = crash(dir.path());

    let model = FakeModel::start([]).await;
    let rig = Rig::start(waiting.path(), &model).await;
    assert_eq!(rig.system_events.sessions_with_notices(), [key_of(KEY)]);
    send(&rig, "r2", "hi").await;
    rig.end("r2").await;
    assert_eq!(heard(&model, 0, 0), "System: Exec completed (a, code 0)\n\nhi\n[message_id: r2]");

    let model = FakeModel::start([Answer::Text("whole")]).await;
    let (rig, _) = after(&under_way, &model, &["r1"]).await;
    assert_eq!(
        heard(&model, 0, 0),
        "System: Exec completed (a, code 0)\nSystem: a knock\n\nhi\n[message_id: r1]"
    );
    assert_eq!(rig.system_events.sessions_with_notices(), []);
    let ended = crash(under_way.path());
    let rig = Rig::start(ended.path(), &model).await;
    assert_eq!(
        rig.system_events.peek(&key_of(KEY)),
        [""; 0],
        "it left the journal with the run that told it"
    );
}
