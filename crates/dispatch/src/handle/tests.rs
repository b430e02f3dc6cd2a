mod attempts;
mod clock_jumps;
mod commands;
mod contact;
mod ends;
mod failover;
mod lifecycle;
mod shared_transcript;
mod stopped;
mod system_events;

use openclaw_journal::api::{AbortTarget, Accepted, Broadcast, RunOutcome, RunPhase, RunRecord, Waited};
use openclaw_journal::journal::memory;
use openclaw_journal::run_result::RunResult;
use serde_json::{Value, json};

use super::*;
use crate::testing::{
    Answer, FakeModel, KEY, PANICS, PATIENCE, Rig, agent, chat, crash, in_files, key_of, said, unfinish,
};

/// The workspace of the main agent, in a home directory.
const WORKSPACE: &str = ".openclaw/workspace";

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn texts(record: &RunRecord) -> Vec<&str> {
    record.outcome.result().into_iter().flat_map(RunResult::texts).collect()
}

async fn send(rig: &Rig, run_id: &str, text: &str) {
    let receipt = rig.chat(chat(run_id, text)).await.unwrap();
    assert!(matches!(receipt.accepted, Accepted::New { .. }), "{receipt:?}");
}

/// Starts again on the files that a crash left, lets everything run, and returns the contents of
/// the transcripts.
async fn after(crashed: &tempfile::TempDir, model: &FakeModel, runs: &[&str]) -> (Rig, Vec<String>) {
    let rig = Rig::start(crashed.path(), model).await;
    for run in runs {
        rig.end(run).await;
    }
    let said = said(crashed.path());
    (rig, said)
}

#[tokio::test]
async fn a_chat_message_is_answered_once_in_the_recorded_order() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("Hello")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let receipt = rig.chat(chat("r1", "hi there")).await.unwrap();
    assert_eq!(model.count(), 0, "the run waits for the acknowledgement");
    drop(receipt);
    assert_eq!(
        rig.events_until("r1 chat final Hello").await,
        [
            "r1 lifecycle start",
            "r1 assistant Hello",
            "r1 chat delta Hello",
            "r1 lifecycle end",
            "r1 chat final Hello"
        ]
    );
    assert_eq!(texts(&rig.end("r1").await), ["Hello"]);
    assert_eq!(said(dir.path()), ["user: hi there\n[message_id: r1]", "assistant: Hello"]);
    assert!(model.heard(0)[0].ends_with("UTC] hi there\n[message_id: r1]"), "{:?}", model.heard(0));
    let entry = rig.entry().await;
    assert_eq!(
        (entry.input_tokens, entry.output_tokens, entry.total_tokens),
        (Some(100), Some(7), Some(100))
    );
    assert_eq!((entry.model_provider.as_deref(), entry.model.as_deref()), (Some("fake"), Some("fake-1")));
    assert_eq!((entry.context_tokens, entry.aborted_last_run), (Some(32_000), Some(false)));
    assert!(rig.dispatch.active_runs(&key_of(KEY)).is_empty());
}

#[tokio::test]
async fn a_repeated_key_answers_from_what_is_known_also_after_a_restart() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("late")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    model.asked(1).await;
    let again = rig.chat(chat("r1", "hi")).await.unwrap();
    assert!(matches!(again.accepted, Accepted::InFlight { .. }), "{again:?}");
    let other = rig.chat(chat("r1", "other words")).await;
    assert!(matches!(other, Err(DispatchError::KeyReused(_))), "{other:?}");
    model.release();
    rig.end("r1").await;
    let record = rig.end("r1").await;
    let again = rig.chat(chat("r1", "hi")).await.unwrap();
    assert_eq!(again.accepted, Accepted::Finished(record.clone()));
    assert_eq!(rig.dispatch.shutdown(PATIENCE).await, []);
    rig.store.close().await.unwrap();
    let rig = Rig::start(dir.path(), &model).await;
    let again = rig.chat(chat("r1", "hi")).await.unwrap();
    assert_eq!(again.accepted, Accepted::Finished(record));
    assert_eq!(model.count(), 1);
}

#[tokio::test]
async fn messages_of_a_session_wait_for_each_other_in_turn() {
    let (dir, model) =
        (dir(), FakeModel::start([Answer::Held("one"), Answer::Text("two"), Answer::Text("three")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "first").await;
    model.asked(1).await;
    send(&rig, "r2", "second").await;
    drop(rig.agent(agent("r3", "third")).await.unwrap());
    let waiting: Vec<_> =
        rig.dispatch.active_runs(&key_of(KEY)).into_iter().map(|run| (run.run_id, run.phase)).collect();
    let expected = [("r1", RunPhase::Running), ("r2", RunPhase::Queued), ("r3", RunPhase::Queued)];
    assert_eq!(waiting, expected.map(|(run, phase)| (RunId::new(run), phase)));
    model.release();
    assert_eq!(texts(&rig.end("r3").await), ["three"]);
    assert_eq!(
        said(dir.path()),
        [
            "user: first\n[message_id: r1]",
            "assistant: one",
            "user: second\n[message_id: r2]",
            "assistant: two",
            "user: third",
            "assistant: three"
        ]
    );
}

#[tokio::test]
async fn an_abort_is_heard_at_once_keeps_what_was_said_and_is_noted_in_the_next_turn() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick0"), Answer::Text("ok")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "slow").await;
    rig.events_until("r1 chat delta tick0").await;
    send(&rig, "r2", "queued").await;
    let other = rig.abort("agent:main:other", AbortTarget::Run(RunId::new("r1")), AbortReason::Rpc).await;
    assert_eq!(other, Err(AbortError::OtherSession));
    let stopped = rig.abort(KEY, AbortTarget::All, AbortReason::Rpc).await.unwrap();
    assert_eq!(stopped, [RunId::new("r1"), RunId::new("r2")]);
    assert_eq!(
        rig.events_until("r1 lifecycle end aborted").await,
        [
            "r1 chat aborted rpc",
            "r2 chat aborted rpc",
            "r2 lifecycle end aborted",
            "r1 lifecycle end aborted"
        ]
    );
    let record = rig.end("r1").await;
    assert!(matches!(&record.outcome, RunOutcome::Aborted { reason, .. } if reason == "rpc"), "{record:?}");
    let never = rig.end("r2").await;
    assert!(matches!(&never.outcome, RunOutcome::Aborted { reason, .. } if reason == "rpc"), "{never:?}");
    assert_eq!(said(dir.path())[..2], ["user: slow\n[message_id: r1]", "assistant: tick0 (aborted)"]);
    assert_eq!(rig.entry().await.aborted_last_run, Some(true));
    let again = rig.abort(KEY, AbortTarget::All, AbortReason::Rpc).await.unwrap();
    assert_eq!(again, []);
    send(&rig, "r3", "next").await;
    rig.end("r3").await;
    let heard = model.heard(1);
    let last = heard.last().unwrap();
    assert!(
        last.starts_with("user: ") && last.contains("Note: the user stopped the run before this message."),
        "{last}"
    );
    assert_eq!(rig.entry().await.aborted_last_run, Some(false));
}

#[tokio::test]
async fn a_provider_failure_is_told_as_one() {
    let (dir, model) =
        (dir(), FakeModel::start([Answer::Fail(400, r#"{"error":{"message":"no such thing"}}"#)]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    let record = rig.end("r1").await;
    let RunOutcome::Error { message, result: Some(_) } = &record.outcome else { panic!("{record:?}") };
    assert!(message.contains("no such thing"), "{message}");
    let events = rig.events_until(&format!("r1 chat error {message}")).await;
    assert_eq!(
        events,
        [
            "r1 lifecycle start".to_owned(),
            "r1 lifecycle error".to_owned(),
            format!("r1 chat error {message}")
        ]
    );
}

#[tokio::test]
async fn a_run_that_cannot_begin_is_remembered() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    let mut message = agent("r1", "hi");
    message.thinking = Some("bogus".to_owned());
    drop(rig.agent(message).await.unwrap());
    let record = rig.end("r1").await;
    let text = "Error: Invalid thinking level. Use one of: off, minimal, low, medium, high.";
    assert_eq!(record.outcome, RunOutcome::Error { message: text.to_owned(), result: None });
    assert_eq!((record.started_at, model.count()), (None, 0));
}

#[tokio::test]
async fn a_wait_may_come_before_the_message_and_gives_up_on_time() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("hey")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    let run = RunId::new("r1");
    assert_eq!(rig.dispatch.wait(&run, Duration::ZERO).await, Waited::TimedOut);
    let waiting = rig.dispatch.wait(&run, PATIENCE);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    send(&rig, "r1", "hi").await;
    assert!(matches!(waiting.await, Waited::Ended(_)));
    assert!(matches!(rig.dispatch.wait(&run, Duration::ZERO).await, Waited::Ended(_)));
}

#[tokio::test]
async fn a_forbidden_session_is_refused_and_nothing_is_kept() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig =
        Rig::with_config(dir.path(), &model, json!({"session": {"sendPolicy": {"default": "deny"}}})).await;
    let refused = rig.chat(chat("r1", "hi")).await.unwrap_err();
    assert!(matches!(refused, DispatchError::SendBlocked), "{refused}");
    assert_eq!(rig.dispatch.wait(&RunId::new("r1"), Duration::ZERO).await, Waited::TimedOut);
    assert_eq!(rig.dispatch.ended(&RunId::new("r1")).await, None);
}

#[tokio::test]
async fn a_steered_message_joins_the_run_and_ends_with_it() {
    let script = [Answer::Held("first answer"), Answer::Text("both answered")];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let mut rig =
        Rig::with_config(dir.path(), &model, json!({"messages": {"queue": {"mode": "steer"}}})).await;
    send(&rig, "r1", "one").await;
    model.asked(1).await;
    send(&rig, "r2", "two").await;
    assert_eq!(rig.events_until("r2 chat final -").await, ["r1 lifecycle start", "r2 chat final -"]);
    model.release();
    assert_eq!(texts(&rig.end("r2").await), texts(&rig.end("r1").await));
    assert_eq!(
        said(dir.path()),
        [
            "user: one\n[message_id: r1]",
            "assistant: first answer",
            "user: two\n[message_id: r2]",
            "assistant: both answered"
        ]
    );
}

#[tokio::test]
async fn what_is_steered_and_kept_is_read_by_the_run_and_answered_once_more() {
    let script = [Answer::Held("first answer"), Answer::Text("both answered"), Answer::Text("once more")];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let mut rig =
        Rig::with_config(dir.path(), &model, json!({"messages": {"queue": {"mode": "steer-backlog"}}})).await;
    send(&rig, "r1", "one").await;
    model.asked(1).await;
    send(&rig, "r2", "two").await;
    model.release();
    let events = rig.events_until("r2 chat final once more").await;
    assert_eq!(events.iter().filter(|event| event.starts_with("r2 chat final")).count(), 1, "{events:?}");
    assert_ne!(texts(&rig.end("r2").await), texts(&rig.end("r1").await));
    assert_eq!(
        said(dir.path()),
        [
            "user: one\n[message_id: r1]",
            "assistant: first answer",
            "user: two\n[message_id: r2]",
            "assistant: both answered",
            "user: two\n[message_id: r2]",
            "assistant: once more"
        ]
    );
}

#[tokio::test]
async fn what_is_steered_and_kept_is_stopped_as_a_whole() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("first answer")]).await);
    let mut rig =
        Rig::with_config(dir.path(), &model, json!({"messages": {"queue": {"mode": "steer-backlog"}}})).await;
    send(&rig, "r1", "one").await;
    model.asked(1).await;
    send(&rig, "r2", "two").await;
    let target = AbortTarget::Run(RunId::new("r2"));
    assert_eq!(rig.abort(KEY, target, AbortReason::Rpc).await.unwrap(), [RunId::new("r2")]);
    model.release();
    rig.events_until("r1 chat final first answer").await;
    assert!(matches!(rig.end("r2").await.outcome, RunOutcome::Aborted { .. }));
    rig.end("r1").await;
    assert_eq!(model.count(), 1, "no run has read it");
}

#[tokio::test]
async fn injected_words_are_stored_and_heard() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("hey")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let message = |key: &str| InjectMessage {
        session_key: key_of(key),
        text: "injected note".to_owned(),
        label: Some("ops".to_owned()),
    };
    let unknown = rig.dispatch.inject(message("agent:main:none")).await.outcome().await.unwrap_err();
    assert!(matches!(unknown, InjectError::UnknownSession), "{unknown}");
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat final hey").await;
    let injected = rig.dispatch.inject(message(KEY)).await.outcome().await.unwrap();
    assert_eq!(
        rig.event().await,
        format!("inject-{} chat final [ops]\n\ninjected note", injected.message_id)
    );
    assert_eq!(said(dir.path()).last().unwrap(), "assistant: [ops]\n\ninjected note");
}

#[tokio::test]
async fn a_reset_starts_a_new_transcript_and_asks_for_a_greeting() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("one"), Answer::Text("welcome")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    rig.end("r1").await;
    let before = rig.entry().await.session_id;
    send(&rig, "r2", "/new").await;
    assert_eq!(texts(&rig.end("r2").await), ["welcome"]);
    assert_ne!(rig.entry().await.session_id, before);
    let heard = model.heard(1);
    assert_eq!(heard.len(), 1, "the new conversation knows nothing of the old one");
    assert!(heard[0].starts_with("user: The user began a new session with /new or /reset"), "{heard:?}");
}

#[tokio::test]
async fn a_reset_may_name_the_model_to_go_on_with() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let listed = json!({"defaults": {
        "model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true,
        "models": {"fake/fake-1": {}, "fake/fake-mini": {"alias": "tiny"}},
    }});
    let rig = Rig::with_config(dir.path(), &model, json!({"agents": listed})).await;
    for (run, text, expected, words) in [
        ("r1", "/new tiny write a poem", Some("fake-mini"), "write a poem\n[message_id: r1]"),
        ("r2", "/new take notes", Some("fake-mini"), "take notes\n[message_id: r2]"),
        ("r3", "/reset fake/fake-1 and now?", None, "and now?\n[message_id: r3]"),
    ] {
        send(&rig, run, text).await;
        rig.end(run).await;
        let entry = rig.entry().await;
        assert_eq!(entry.model_override.as_deref(), expected, "{text}");
        assert_eq!(entry.model.as_deref(), Some(expected.unwrap_or("fake-1")), "{text}");
        let heard = model.heard(model.count() - 1);
        assert!(heard.len() == 1 && heard[0].ends_with(words), "{heard:?}");
    }
}

#[tokio::test]
async fn idle_lanes_do_not_stay() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    for n in 0..5 {
        let mut message = chat(&format!("r{n}"), "hi");
        message.session_key = key_of(&format!("agent:main:s{n}"));
        drop(rig.chat(message).await.unwrap());
        rig.end(&format!("r{n}")).await;
        rig.quiesce(&format!("agent:main:s{n}"), PATIENCE).await.unwrap();
    }
    let lanes = Arc::clone(&rig.dispatch.lanes);
    let gone = async move {
        while lanes.count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("lanes end");
}

#[tokio::test]
async fn a_crash_after_the_acknowledgement_loses_nothing() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let one_by_one = json!({"messages": {"queue": {"mode": "followup"}}});
    let rig = Rig::with_config(dir.path(), &model, one_by_one).await;
    let receipt = rig.chat(chat("r1", "hi")).await.unwrap();
    let second = rig.chat(chat("r2", "and")).await.unwrap();
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("one"), Answer::Text("two")]).await;
    let (rig, said) = after(&crashed, &model, &["r1", "r2"]).await;
    let expected =
        ["user: hi\n[message_id: r1]", "assistant: one", "user: and\n[message_id: r2]", "assistant: two"];
    assert_eq!(said, expected);
    let again = rig.chat(chat("r1", "hi")).await.unwrap();
    assert!(matches!(again.accepted, Accepted::Finished(_)), "{again:?}");
    drop((receipt, second));
}

#[tokio::test]
async fn a_crash_while_the_model_answers_gives_one_prompt_and_one_reply() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half an ans")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat delta half an ans").await;
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("whole answer")]).await;
    let (rig, said) = after(&crashed, &model, &["r1"]).await;
    assert_eq!(said, ["user: hi\n[message_id: r1]", "assistant: whole answer"]);
    assert_eq!(texts(&rig.end("r1").await), ["whole answer"]);
}

#[tokio::test]
async fn a_crash_between_tool_and_answer_goes_on_from_the_result() {
    let script = [Answer::Call("read", json!({"path": "NOTE.txt"})), Answer::Stall("…")];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    std::fs::create_dir_all(dir.path().join(WORKSPACE)).unwrap();
    std::fs::write(dir.path().join(WORKSPACE).join("NOTE.txt"), "a note").unwrap();
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "read it").await;
    model.asked(2).await;
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("it says: a note")]).await;
    let (_rig, said) = after(&crashed, &model, &["r1"]).await;
    let expected = [
        "user: read it\n[message_id: r1]",
        "assistant:  +1 calls",
        "toolResult: a note",
        "assistant: it says: a note",
    ];
    assert_eq!(said, expected);
    assert_eq!(model.count(), 1);
}

#[tokio::test]
async fn commands_know_the_gateway_they_run_under() {
    let call = Answer::Call("exec", json!({"command": "echo port $OPENCLAW_GATEWAY_PORT"}));
    let (dir, model) = (dir(), FakeModel::start([call]).await);
    let config = json!({"tools": {"exec": {"host": "gateway", "security": "full", "ask": "off"}}});
    let rig = Rig::with_config(dir.path(), &model, config).await;
    send(&rig, "r1", "where?").await;
    rig.end("r1").await;
    assert!(said(dir.path()).iter().any(|line| line.contains("port 18790")), "{:?}", said(dir.path()));
}

#[tokio::test]
async fn a_crash_inside_a_tool_call_closes_it_and_asks_again() {
    let script = [Answer::Call(
        "exec",
        json!({"command": "echo > begun; while [ ! -f release ]; do sleep 0.05; done"}),
    )];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let config = json!({"tools": {"exec": {"host": "gateway", "security": "full", "ask": "off"}}});
    let rig = Rig::with_config(dir.path(), &model, config).await;
    send(&rig, "r1", "run it").await;
    let begun = dir.path().join(WORKSPACE).join("begun");
    let tool = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, tool).await.expect("the tool begins");
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("I was interrupted")]).await;
    let (_rig, said) = after(&crashed, &model, &["r1"]).await;
    assert_eq!(said.len(), 4, "{said:#?}");
    assert_eq!(
        (said[0].as_str(), said[1].as_str()),
        ("user: run it\n[message_id: r1]", "assistant:  +1 calls")
    );
    assert!(said[2].starts_with("toolResult: [openclaw] "), "{}", said[2]);
    assert_eq!(said[3], "assistant: I was interrupted");
    std::fs::write(dir.path().join(WORKSPACE).join("release"), "").unwrap();
    rig.end("r1").await;
}

#[tokio::test]
async fn a_crash_after_the_answer_was_stored_asks_no_model() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("the answer")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    let record = rig.end("r1").await;
    let crashed = crash(dir.path());
    // Step 10 undone: the row as it was before.
    unfinish(crashed.path(), "r1");
    let model = FakeModel::start([]).await;
    let (rig, said) = after(&crashed, &model, &["r1"]).await;
    assert_eq!(said, ["user: hi\n[message_id: r1]", "assistant: the answer"]);
    assert_eq!(model.count(), 0);
    assert_eq!(texts(&rig.end("r1").await), texts(&record));
}

#[tokio::test]
async fn a_crash_after_an_abort_does_not_bring_the_run_back() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat delta tick").await;
    let runs = vec![RunId::new("r1")];
    rig.dispatch.requests().journal.update(Update::Abort(runs, AbortReason::Stop)).await.unwrap();
    let crashed = crash(dir.path());
    let model = FakeModel::start([]).await;
    let (rig, _) = after(&crashed, &model, &["r1"]).await;
    let record = rig.end("r1").await;
    assert_eq!(record.outcome, RunOutcome::Aborted { reason: "stop".to_owned(), result: None });
    assert_eq!(model.count(), 0);
}

#[tokio::test]
async fn a_steered_message_is_acknowledged_before_its_stream_ends() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("one"), Answer::Text("two")]).await);
    let mut rig =
        Rig::with_config(dir.path(), &model, json!({"messages": {"queue": {"mode": "steer"}}})).await;
    send(&rig, "r1", "first").await;
    model.asked(1).await;
    let receipt = rig.chat(chat("r2", "second")).await.unwrap();
    model.release();
    let before = rig.events_until("r1 chat final two").await;
    assert!(!before.iter().any(|event| event.starts_with("r2")), "{before:?}");
    drop(receipt);
    assert_eq!(rig.event().await, "r2 chat final -");
}

#[tokio::test]
async fn a_crash_with_a_steered_message_in_the_transcript_answers_it_once() {
    let script = [Answer::Held("first"), Answer::Stall("…")];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let rig = Rig::with_config(dir.path(), &model, json!({"messages": {"queue": {"mode": "steer"}}})).await;
    send(&rig, "r1", "one").await;
    model.asked(1).await;
    send(&rig, "r2", "two").await;
    model.release();
    model.asked(2).await;
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("second")]).await;
    let (_rig, said) = after(&crashed, &model, &["r1", "r2"]).await;
    let expected = [
        "user: one\n[message_id: r1]",
        "assistant: first",
        "user: two\n[message_id: r2]",
        "assistant: second",
    ];
    assert_eq!(said, expected);
    assert_eq!(model.count(), 1);
}

/// Checks that the run that read the message is taken up to the answer it had, and that the
/// message's own run answers it.
#[tokio::test]
async fn a_crash_with_a_kept_message_in_the_transcript_loses_neither_run() {
    let script = [Answer::Held("first"), Answer::Stall("…")];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let rig =
        Rig::with_config(dir.path(), &model, json!({"messages": {"queue": {"mode": "steer-backlog"}}})).await;
    send(&rig, "r1", "one").await;
    model.asked(1).await;
    send(&rig, "r2", "two").await;
    model.release();
    model.asked(2).await;
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("second")]).await;
    let (_rig, said) = after(&crashed, &model, &["r1", "r2"]).await;
    let expected = [
        "user: one\n[message_id: r1]",
        "assistant: first",
        "user: two\n[message_id: r2]",
        "user: two\n[message_id: r2]",
        "assistant: second",
    ];
    assert_eq!(said, expected);
    assert_eq!(model.count(), 1);
}

#[tokio::test]
async fn a_shutdown_waits_for_runs_and_cuts_off_what_misses_the_deadline() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("in time"), Answer::Stall("too sl")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "quick").await;
    model.asked(1).await;
    let mut slow = chat("r2", "slow");
    slow.session_key = key_of("agent:main:slow");
    drop(rig.chat(slow).await.unwrap());
    rig.events_until("r2 chat delta too sl").await;
    model.release();
    rig.end("r1").await;
    assert_eq!(rig.dispatch.shutdown(Duration::from_millis(50)).await, [RunId::new("r2")]);
    let refused = rig.chat(chat("r3", "hi")).await.unwrap_err();
    assert!(matches!(refused, DispatchError::ShuttingDown), "{refused}");
    let model = FakeModel::start([Answer::Text("now")]).await;
    let rig = Rig::start(dir.path(), &model).await;
    assert_eq!(texts(&rig.end("r2").await), ["now"]);
    let mut said = said(dir.path());
    said.sort();
    let expected: [&str; 4] = [
        "assistant: in time",
        "assistant: now",
        "user: quick\n[message_id: r1]",
        "user: slow\n[message_id: r2]",
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn the_agent_method_keeps_what_the_request_says_of_the_session() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("hey")]).await);
    in_files(dir.path());
    let rig = Rig::start(dir.path(), &model).await;
    let mut message = agent("r1", "hi");
    message.session_id = Some("my-session".to_owned());
    message.entry_patch = json!({"label": "side-label"}).as_object().unwrap().clone();
    drop(rig.agent(message).await.unwrap());
    let told = rig.dispatch.ended(&RunId::new("r1")).await.unwrap().told();
    let RunOutcome::Ok { result } = &told else { panic!("{told:?}") };
    let result = result.clone().into_json();
    assert_eq!(result.pointer("/meta/agentMeta/sessionId"), Some(&Value::from("my-session")));
    assert!(result.pointer("/meta/systemPromptReport").is_some());
    let entry = rig.entry().await;
    assert_eq!(entry.label.as_deref(), Some("side-label"));
    assert!(dir.path().join("agents/main/sessions/my-session.jsonl").exists());
}

#[tokio::test]
async fn a_panic_ends_its_run_alone() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("hey")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let mut message = chat("r1", "hi");
    message.session_key = key_of(PANICS);
    drop(rig.chat(message).await.unwrap());
    let record = rig.end("r1").await;
    let RunOutcome::Error { message, .. } = &record.outcome else { panic!("{record:?}") };
    assert_eq!(rig.event().await, "r1 lifecycle error");
    assert_eq!(rig.event().await, format!("r1 chat error {message}"));
    send(&rig, "r2", "hi").await;
    assert_eq!(texts(&rig.end("r2").await), ["hey"]);
}

#[tokio::test]
async fn a_run_out_of_time_says_so() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let mut message = agent("r1", "hi");
    message.timeout_seconds = Some(1);
    drop(rig.agent(message).await.unwrap());
    let record = rig.end("r1").await;
    let told = record.outcome.failure().unwrap_or_default();
    assert!(told.contains("timed out") && told.contains("time limit of 1 s"), "{record:?}");
    let events = rig.events_until(&format!("r1 chat error {told}")).await;
    assert_eq!(events.get(events.len() - 2).map(String::as_str), Some("r1 lifecycle error"));
    assert!(
        matches!(&record.outcome, RunOutcome::Aborted { reason, .. } if reason == "timeout"),
        "{record:?}"
    );
    assert_eq!(rig.entry().await.aborted_last_run, Some(false), "nobody stopped it");
}

#[tokio::test]
async fn an_interrupt_takes_the_place_of_what_runs() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick"), Answer::Text("now this")]).await);
    let config = json!({"messages": {"queue": {"byChannel": {"webchat": "interrupt"}}}});
    let mut rig = Rig::with_config(dir.path(), &model, config).await;
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat delta tick").await;
    send(&rig, "r2", "no, that").await;
    assert_eq!(texts(&rig.end("r2").await), ["now this"]);
    let record = rig.end("r1").await;
    assert!(
        matches!(&record.outcome, RunOutcome::Aborted { reason, .. } if reason == "interrupt"),
        "{record:?}"
    );
}

#[tokio::test]
async fn a_crash_before_the_row_names_the_new_transcript_finds_it_all_the_same() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half")]).await);
    in_files(dir.path());
    let mut rig = Rig::start(dir.path(), &model).await;
    send(&rig, "r1", "hi").await;
    rig.events_until("r1 chat delta half").await;
    let crashed = crash(dir.path());
    // The machine stopped before the note of step 4 and the row of step 5 reached the disk; the transcript did.
    memory::edit(crashed.path(), |message| message.progress.session_id = None);
    for file in std::fs::read_dir(crashed.path().join("agents/main/sessions")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let model = FakeModel::start([Answer::Text("whole")]).await;
    let (_rig, said) = after(&crashed, &model, &["r1"]).await;
    assert_eq!(said, ["user: hi\n[message_id: r1]", "assistant: whole"]);
}
