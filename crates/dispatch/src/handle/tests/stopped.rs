//! Tests of stopped runs and messages, and of sessions that share a transcript.

use super::*;

#[tokio::test]
async fn messages_stopped_while_they_waited_are_in_the_history_once() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r0", "first").await;
    rig.events_until("r0 chat delta tick").await;
    let mut expected =
        vec!["user: first\n[message_id: r0]".to_owned(), "assistant: tick (aborted)".to_owned()];
    for n in 1..=10 {
        send(&rig, &format!("r{n}"), &format!("more {n}")).await;
        expected.push(format!("user: more {n}\n[message_id: r{n}]"));
        expected.push("assistant:  (aborted)".to_owned());
    }
    let stopped = rig.abort(KEY, AbortTarget::All, AbortReason::Rpc).await.unwrap();
    assert_eq!(stopped.len(), 11);
    let record = rig.end("r10").await;
    assert!(matches!(&record.outcome, RunOutcome::Aborted { reason, .. } if reason == "rpc"), "{record:?}");
    let again = rig.chat(chat("r10", "more 10")).await.unwrap();
    assert!(matches!(again.accepted, Accepted::Finished(_)), "{again:?}");
    rig.quiesce(KEY, PATIENCE).await.unwrap();
    assert_eq!(said(dir.path()), expected);
    assert_eq!(model.count(), 1);
}

#[tokio::test]
async fn a_crash_between_stopping_and_writing_writes_each_message_once() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r0", "first").await;
    rig.events_until("r0 chat delta tick").await;
    let old = rig.entry().await.session_id;
    send(&rig, "r1", "second").await;
    let runs = vec![RunId::new("r0"), RunId::new("r1")];
    rig.dispatch.requests().journal.update(Update::Abort(runs, AbortReason::Rpc)).await.unwrap();
    let mut crashed = crash(dir.path());
    // A conversation begins anew also with a message that was stopped.
    let reset = json!({"kind": "chat", "text": "/new second"});
    memory::edit(crashed.path(), |message| {
        if message.run_id.as_str() == "r1" {
            message.payload = Some(reset.to_string());
        }
    });
    let expected = [
        "assistant:  (aborted)",
        "assistant:  (aborted)",
        "user: first\n[message_id: r0]",
        "user: second\n[message_id: r1]",
    ];
    for _ in 0..2 {
        let model = FakeModel::start([]).await;
        let (rig, mut said) = after(&crashed, &model, &["r0", "r1"]).await;
        said.sort();
        assert_eq!(said, expected);
        assert_ne!(rig.entry().await.session_id, old, "the message begins a conversation");
        assert_eq!(model.count(), 0);
        drop(rig);
        // The next time the rows were not closed yet.
        let next = crash(crashed.path());
        for run in ["r0", "r1"] {
            unfinish(next.path(), run);
        }
        crashed = next;
    }
}

/// A client that reads slowly holds the lane, so that the stop is there before the run's end.
#[tokio::test]
async fn a_stop_that_comes_behind_the_answer_says_that_it_stopped_nothing() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("one"), Answer::Text("two")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let mut slow = rig.dispatch.subscribe();
    send(&rig, "r0", "first").await;
    rig.events_until("r0 chat final one").await;
    let told = slow.recv().await.unwrap();
    for _ in 0..100 {
        rig.dispatch.requests().hub.publish(Broadcast { droppable: true, ..told.clone() }).await;
    }
    send(&rig, "r1", "second").await;
    let answered = async {
        while said(dir.path()).len() < 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("the answer is in the transcript");
    let stopping = rig.dispatch.abort(&key_of(KEY), AbortTarget::All, AbortReason::Rpc).await;
    drop(slow);
    assert_eq!(stopping.outcome().await.unwrap(), [], "there was nothing left to stop");
    assert!(matches!(rig.end("r1").await.outcome, RunOutcome::Ok { .. }));
    rig.events_until("r1 chat final two").await;
}

/// Spec `queue.md` §6.2.
#[tokio::test]
async fn a_message_that_is_stopped_before_its_run_begins_is_noted_in_the_next_turn() {
    let one = json!({"agents": {"defaults": {
        "maxConcurrent": 1, "model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true,
    }}});
    for reason in [AbortReason::Stop, AbortReason::Rpc] {
        let (dir, model) = (dir(), FakeModel::start([Answer::Held("elsewhere"), Answer::Text("here")]).await);
        let rig = Rig::with_config(dir.path(), &model, one.clone()).await;
        let elsewhere = ChatMessage { session_key: key_of("agent:main:other"), ..chat("r0", "first") };
        drop(rig.chat(elsewhere).await.unwrap());
        model.asked(1).await;
        // The session is free, but its lane is not.
        send(&rig, "r1", "drop the tables").await;
        assert_eq!(rig.abort(KEY, AbortTarget::All, reason).await.unwrap(), [RunId::new("r1")]);
        rig.end("r1").await;
        assert_eq!(rig.entry().await.aborted_last_run, Some(true));
        model.release();
        rig.end("r0").await;
        send(&rig, "r2", "hello").await;
        rig.end("r2").await;
        assert_eq!(model.count(), 2);
        let heard = model.heard(1);
        let last = heard.last().unwrap();
        assert!(last.contains("Note: the user stopped the run before this message."), "{heard:?}");
        assert_eq!(rig.entry().await.aborted_last_run, Some(false));
        let said = said(dir.path());
        let at = said.iter().position(|line| line.contains("drop the tables")).unwrap();
        assert_eq!(said[at + 1], "assistant:  (aborted)", "{said:?}");
    }
}

#[tokio::test]
async fn a_message_that_another_took_the_place_of_is_no_stop() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r0", "first").await;
    rig.events_until("r0 chat delta tick").await;
    send(&rig, "r1", "second").await;
    rig.abort(KEY, AbortTarget::All, AbortReason::Interrupt).await.unwrap();
    rig.end("r1").await;
    // By then it is in the history.
    rig.quiesce(KEY, PATIENCE).await.unwrap();
    assert_eq!(rig.entry().await.aborted_last_run, Some(false));
    assert_eq!(said(dir.path()).last().unwrap(), "user: second\n[message_id: r1]");
}

#[tokio::test]
async fn a_run_of_a_program_is_stopped_like_others() {
    for target in [AbortTarget::All, AbortTarget::Run(RunId::new("r1"))] {
        let (dir, model) = (dir(), FakeModel::start([Answer::Held("never")]).await);
        let rig = Rig::start(dir.path(), &model).await;
        drop(rig.agent(agent("r1", "work")).await.unwrap());
        model.asked(1).await;
        assert_eq!(rig.abort(KEY, target, AbortReason::Stop).await.unwrap(), [RunId::new("r1")]);
        let record = rig.end("r1").await;
        assert!(matches!(&record.outcome, RunOutcome::Aborted { .. }), "{record:?}");
    }
}

#[tokio::test]
async fn two_session_keys_with_one_transcript_take_turns() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("one"), Answer::Text("two")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    for (run, key) in [("r1", "agent:main:a"), ("r2", "agent:main:b")] {
        let mut message = agent(run, run);
        message.session_key = key_of(key);
        message.session_id = Some("shared".to_owned());
        drop(rig.agent(message).await.unwrap());
        if run == "r1" {
            model.asked(1).await;
        }
    }
    // The second one has its global lane and waits for nothing but the transcript.
    let begun = async {
        while rig
            .dispatch
            .active_runs(&key_of("agent:main:b"))
            .iter()
            .all(|run| run.phase == RunPhase::Queued)
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("the second run has its turn");
    assert_eq!(model.count(), 1);
    model.release();
    rig.end("r2").await;
    assert_eq!(said(dir.path()), ["user: r1", "assistant: one", "user: r2", "assistant: two"]);
    let heard = model.heard(1);
    assert_eq!(heard.len(), 3, "it knows what was said before: {heard:?}");
}

#[tokio::test]
async fn a_run_that_waits_for_a_transcript_can_be_stopped() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("one")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    model.asked(1).await;
    let mut message = agent("r2", "and");
    message.session_key = key_of("agent:main:b");
    message.session_id = rig.entry().await.session_id.map(|id| id.as_str().to_owned());
    drop(rig.agent(message).await.unwrap());
    let lanes = Arc::clone(&rig.dispatch.lanes);
    let (reply, stopped) = oneshot::channel();
    let (target, reason) = (AbortTarget::All, AbortReason::Rpc);
    lanes.send_existing(&key_of("agent:main:b"), LaneCommand::Abort { target, reason, reply }).await;
    assert_eq!(stopped.await.unwrap().unwrap(), [RunId::new("r2")]);
    model.release();
    let record = rig.end("r2").await;
    assert!(matches!(&record.outcome, RunOutcome::Aborted { .. }), "{record:?}");
    let expected = ["user: hi\n[message_id: r1]", "assistant: one", "user: and", "assistant:  (aborted)"];
    assert_eq!(said(dir.path()), expected);
}

#[tokio::test]
async fn a_run_out_of_time_leaves_no_bare_question() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("never")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    let mut message = agent("r1", "hi");
    message.timeout_seconds = Some(1);
    drop(rig.agent(message).await.unwrap());
    let record = rig.end("r1").await;
    let why = record.outcome.failure().unwrap();
    assert!(why.starts_with("The run timed out: it was stopped at its time limit of 1 s."), "{why}");
    assert_eq!(said(dir.path()), ["user: hi", "assistant:  (aborted)"]);
}

#[tokio::test]
async fn words_are_put_in_while_a_run_is_under_way_and_are_not_its_answer() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("the answer")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    model.asked(1).await;
    let message = InjectMessage { session_key: key_of(KEY), text: "a note".to_owned(), label: None };
    rig.dispatch.inject(message).await.outcome().await.unwrap();
    assert_eq!(said(dir.path()), ["user: hi\n[message_id: r1]", "assistant: a note"]);
    let crashed = crash(dir.path());
    let resumed = FakeModel::start([Answer::Text("asked again")]).await;
    let (other, said_then) = after(&crashed, &resumed, &["r1"]).await;
    assert_eq!(texts(&other.end("r1").await), ["asked again"]);
    assert_eq!(resumed.heard(0).len(), 1, "{:?}", resumed.heard(0));
    assert_eq!(said_then, ["user: hi\n[message_id: r1]", "assistant: a note", "assistant: asked again"]);
    model.release();
    rig.end("r1").await;
    let expected = ["user: hi\n[message_id: r1]", "assistant: a note", "assistant: the answer"];
    assert_eq!(said(dir.path()), expected);
}
