//! Tests that the end of a run is told on every path, exactly once (spec `agent-runtime.md` §1.1,
//! §1.2, §2.6).

use super::*;

/// Events that clients get of the run `r1`, up to the event with this line.
async fn heard(rig: &mut Rig, last: &str) -> Vec<String> {
    let mut events = rig.events_until(last).await;
    events.retain(|event| event.starts_with("r1 "));
    events
}

/// A model that nobody has.
fn nobodys() -> Value {
    json!({"agents": {"defaults": {
        "model": {"primary": "nobody/none"}, "userTimezone": "UTC", "skipBootstrap": true,
    }}})
}

#[tokio::test]
async fn a_run_that_fails_while_it_is_prepared_ends_with_an_error() {
    for is_chat in [true, false] {
        let (dir, model) = (dir(), FakeModel::start([]).await);
        let mut rig = Rig::with_config(dir.path(), &model, nobodys()).await;
        if is_chat {
            send(&rig, "r1", "hi").await;
        } else {
            drop(rig.agent(agent("r1", "hi")).await.unwrap());
        }
        let record = rig.end("r1").await;
        let RunOutcome::Error { message, .. } = &record.outcome else { panic!("{record:?}") };
        assert!(record.started_at.is_some(), "{record:?}");
        let events = heard(&mut rig, &format!("r1 chat error {message}")).await;
        assert_eq!(
            events,
            ["r1 lifecycle error".to_owned(), format!("r1 chat error {message}")],
            "{is_chat}"
        );
    }
}

/// `golden/gw-agent-and-wait.jsonl`, run-agent-4: only the caller is told.
#[tokio::test]
async fn a_request_that_is_refused_never_was_a_run() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let mut message = agent("r1", "hi");
    message.thinking = Some("bogus".to_owned());
    drop(rig.agent(message).await.unwrap());
    rig.end("r1").await;
    send(&rig, "r2", "hi").await;
    assert_eq!(rig.event().await, "r2 lifecycle start");
}

#[tokio::test]
async fn a_model_that_never_answers_ends_the_run_all_the_same() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("too late")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let message = openclaw_journal::api::AgentMessage { timeout_seconds: Some(1), ..agent("r1", "hi") };
    drop(rig.agent(message).await.unwrap());
    let record = rig.end("r1").await;
    let told = format!("r1 chat error {}", record.outcome.failure().unwrap());
    let expected = ["r1 lifecycle start", "r1 lifecycle error", told.as_str()];
    assert_eq!(heard(&mut rig, &told).await, expected);
}

/// Stopped while it waits for its session, and while it waits for its lane.
#[tokio::test]
async fn a_run_that_is_stopped_while_it_waits_has_an_end_and_no_start() {
    for session in [KEY, "agent:main:other"] {
        let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick")]).await);
        let agents = json!({"defaults": {
            "model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true, "maxConcurrent": 1,
        }});
        let mut rig = Rig::with_config(dir.path(), &model, json!({"agents": agents})).await;
        send(&rig, "r0", "first").await;
        rig.events_until("r0 chat delta tick").await;
        let message = ChatMessage { session_key: key_of(session), ..chat("r1", "waits") };
        drop(rig.chat(message).await.unwrap());
        let target = AbortTarget::Run(RunId::new("r1"));
        assert_eq!(rig.abort(session, target, AbortReason::Rpc).await.unwrap(), [RunId::new("r1")]);
        let events = heard(&mut rig, "r1 lifecycle end aborted").await;
        assert_eq!(events, ["r1 chat aborted rpc", "r1 lifecycle end aborted"], "{session}");
        let record = rig.end("r1").await;
        assert!(matches!(record.outcome, RunOutcome::Aborted { .. }), "{record:?}");
        assert_eq!(model.count(), 1, "{session}");
    }
}

/// Checks that the message's stream has ended by the stop if it was acknowledged; no other run id
/// stands for it.
#[tokio::test]
async fn a_steered_message_that_is_stopped_ends_under_its_own_id() {
    for is_acknowledged in [true, false] {
        let (dir, model) = (dir(), FakeModel::start([Answer::Held("first")]).await);
        let steer = json!({"messages": {"queue": {"mode": "steer"}}});
        let mut rig = Rig::with_config(dir.path(), &model, steer).await;
        send(&rig, "r0", "one").await;
        model.asked(1).await;
        let receipt = rig.chat(chat("r1", "two")).await.unwrap();
        let receipt = Some(receipt).filter(|_| !is_acknowledged);
        let mut told = Vec::new();
        if is_acknowledged {
            told = heard(&mut rig, "r1 chat final -").await;
        }
        let target = AbortTarget::Run(RunId::new("r1"));
        assert_eq!(rig.abort(KEY, target, AbortReason::Rpc).await.unwrap(), [RunId::new("r1")]);
        drop(receipt);
        model.release();
        let rest = rig.events_until("r0 chat final first").await;
        told.extend(rest.into_iter().filter(|event| !event.starts_with("r0 ")));
        let expected: &[&str] = if is_acknowledged {
            &["r1 chat final -"]
        } else {
            &["r1 chat aborted rpc", "r1 lifecycle end aborted"]
        };
        assert_eq!(told, expected, "{is_acknowledged}");
    }
}

/// `agent.wait`: of a run nobody knows, one that waits, one that works, one that is over, and one that was over before a restart.
#[tokio::test]
async fn who_waits_hears_the_end_whenever_they_ask() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("done")]).await);
    let mut rig = Rig::start(dir.path(), &model).await;
    let runs = ["r0", "r1"].map(RunId::new);
    for run in &runs {
        assert_eq!(rig.dispatch.wait(run, Duration::ZERO).await, Waited::TimedOut, "unknown");
    }
    send(&rig, "r0", "first").await;
    model.asked(1).await;
    send(&rig, "r1", "second").await;
    for run in &runs {
        assert_eq!(
            rig.dispatch.wait(run, Duration::from_millis(1)).await,
            Waited::TimedOut,
            "{run} works or waits"
        );
    }
    let (first, second) = (rig.dispatch.wait(&runs[0], PATIENCE), rig.dispatch.wait(&runs[1], PATIENCE));
    let released = async { model.release() };
    let (first, second, ()) = tokio::join!(first, second, released);
    // The report of its prompt is told once, to those who waited.
    let told = without_report(first);
    assert!(matches!(second, Waited::Ended(_)), "{second:?}");
    rig.events_until("r1 lifecycle end").await;
    assert_eq!(without_report(rig.dispatch.wait(&runs[0], Duration::ZERO).await), told, "it is over");
    rig.dispatch.shutdown(PATIENCE).await;
    let again = Rig::start(dir.path(), &model).await;
    assert_eq!(without_report(again.dispatch.wait(&runs[0], Duration::ZERO).await), told, "before a restart");
}

fn without_report(waited: Waited) -> RunRecord {
    let Waited::Ended(record) = waited else { panic!("it is not over") };
    RunRecord { report: None, ..record }
}

/// Checks that a lane runs as many runs at the same time as it has places, and that lanes do not
/// wait for each other.
#[tokio::test]
async fn sessions_run_beside_each_other_up_to_the_places_of_their_lane() {
    const PLACES: usize = 8;
    let held = (0..=PLACES).map(|_| Answer::Held("done"));
    let (dir, model) = (dir(), FakeModel::start(held).await);
    let agents = json!({"defaults": {
        "model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true, "maxConcurrent": PLACES,
    }});
    let rig = Rig::with_config(dir.path(), &model, json!({"agents": agents})).await;
    for n in 0..2 * PLACES {
        let message = agent(&format!("r{n}"), "hi");
        let message = openclaw_journal::api::AgentMessage {
            session_key: key_of(&format!("agent:main:s{n}")),
            ..message
        };
        drop(rig.agent(message).await.unwrap());
    }
    // No answer comes before all of them have asked.
    model.asked(PLACES).await;
    let message = openclaw_journal::api::AgentMessage {
        session_key: key_of("agent:main:elsewhere"),
        lane: Some("cron".to_owned()),
        ..agent("cron", "hi")
    };
    drop(rig.agent(message).await.unwrap());
    model.asked(PLACES + 1).await;
    assert_eq!(model.count(), PLACES + 1, "the others wait for a place");
    model.release_all();
    for n in 0..2 * PLACES {
        rig.end(&format!("r{n}")).await;
    }
    rig.end("cron").await;
    assert_eq!(model.count(), 2 * PLACES + 1);
}
