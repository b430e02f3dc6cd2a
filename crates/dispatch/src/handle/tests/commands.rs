//! Tests of messages that are for the gateway: `/model` and `/models`, alone, among words, during a
//! run, and across a crash.

use openclaw_sessions::SessionKey;

use super::*;

const SWITCHED: &str = "Model set to two (fake/fake-2).";

/// `fake/fake-1` is the default, `two` is another name of `fake/fake-2`, and nothing else is allowed.
fn two_models() -> Value {
    let models = json!({"fake/fake-1": {}, "fake/fake-2": {"alias": "two"}});
    let model = json!({"primary": "fake/fake-1"});
    json!({"agents": {"defaults": {"model": model, "models": models, "userTimezone": "UTC", "skipBootstrap": true}}})
}

async fn started(dir: &tempfile::TempDir, model: &FakeModel) -> Rig {
    Rig::with_config(dir.path(), model, two_models()).await
}

/// Sends a message and returns its answer.
pub(super) async fn turn(rig: &Rig, run_id: &str, text: &str) -> String {
    send(rig, run_id, text).await;
    texts(&rig.end(run_id).await).join("|")
}

/// `provider/model profile source` of the session's row.
async fn chosen(rig: &Rig) -> String {
    let entry = rig.entry().await;
    let model = entry.model_override_ref().map(|(provider, model)| format!("{}/{model}", provider.unwrap()));
    let source = entry.auth_profile_override_source.map(|source| format!("{source:?}"));
    let profile = entry.auth_profile_override.as_deref().map(str::to_owned);
    [model, profile, source].map(|part| part.unwrap_or_else(|| "-".to_owned())).join(" ")
}

#[tokio::test]
async fn who_chooses_a_model_that_cannot_be_had_is_told() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut config = two_models();
    config["agents"]["defaults"]["models"]["minimax/MiniMax-M2.1"] = json!({});
    let rig = Rig::with_config(dir.path(), &model, config).await;
    assert_eq!(
        turn(&rig, "r1", "/model minimax/MiniMax-M2.1").await,
        "Model set to minimax/MiniMax-M2.1.\n\nThere is no credential for minimax: runs fall back to fake/fake-1 until there \
         is one. Set \
         MINIMAX_API_KEY in ~/.env or in the environment of the gateway's service and restart the gateway; or, \
         without a restart, run `openclaw models auth paste-token --provider minimax`."
    );
    assert_eq!(chosen(&rig).await, "minimax/MiniMax-M2.1 - -");
    assert!(turn(&rig, "r2", "hi").await.contains("reply 1"));
    assert_eq!(model.model_of(0), "fake-1", "as was said");
    assert_eq!(turn(&rig, "r3", "/model two").await, SWITCHED);
}

#[tokio::test]
async fn a_session_is_switched_without_a_run_and_the_next_run_goes_by_it() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut rig = started(&dir, &model).await;
    send(&rig, "r1", "/model two").await;
    assert_eq!(rig.event().await, format!("r1 chat final {SWITCHED}"), "nothing else is heard of it");
    let record = rig.end("r1").await;
    assert_eq!((texts(&record), record.started_at), (vec![SWITCHED], None));
    assert_eq!((model.count(), chosen(&rig).await.as_str()), (0, "fake/fake-2 - -"));
    assert_eq!(said(dir.path()), [format!("assistant: {SWITCHED}")]);
    assert!(matches!(rig.chat(chat("r1", "/model two")).await.unwrap().accepted, Accepted::Finished(_)));

    assert_eq!(turn(&rig, "r2", "hi").await, "reply 1");
    assert_eq!(model.model_of(0), "fake-2");
    let heard = model.heard(0);
    assert_eq!(heard.len(), 1, "a conversation begins with a person: {heard:?}");
    assert!(heard[0].contains("Model switched to two (fake/fake-2).\n\n["), "{heard:?}");

    assert_eq!(turn(&rig, "r3", "/model default").await, "Model reset to default (fake/fake-1).");
    assert_eq!(chosen(&rig).await, "- - -");
    turn(&rig, "r4", "more").await;
    assert_eq!(model.model_of(1), "fake-1");
    let heard = model.heard(1);
    assert!(heard[2].starts_with("assistant: Model reset"), "what was said since then is shown: {heard:?}");
}

#[tokio::test]
async fn it_tells_what_is_used_and_what_there_is() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = started(&dir, &model).await;
    let current = |model: &str| {
        format!(
            "Current: {model}\n\nSwitch: /model <provider/model>\nBrowse: /models (providers) or /models <provider> \
             (models)\nMore: /model status"
        )
    };
    let providers = "Providers:\n- fake (2)\n\nUse: /models <provider>\nSwitch: /model <provider/model>";
    let hint = "Use /models to list providers, or /models <provider> to list models.";
    let rows = [
        ("/model", current("fake/fake-1")),
        ("/model list", providers.to_owned()),
        ("/models", providers.to_owned()),
        (
            "/models fake",
            "Models (fake) — showing 1-2 of 2 (page 1/1)\n- fake/fake-1\n- fake/fake-2\n\nSwitch: /model <provider/model>\nAll: /models fake all".to_owned(),
        ),
        ("/model nobody/x", format!("Model \"nobody/x\" is not allowed. {hint}")),
        ("/model two@gone", "Auth profile \"gone\" not found.".to_owned()),
        ("/model @gone", "Auth profile override requires a model selection.".to_owned()),
        (
            "/model 2",
            "Numeric model selection is not supported in chat.\n\nBrowse: /models or /models <provider>\nSwitch: /model <provider/model>".to_owned(),
        ),
        ("/model fake-2", SWITCHED.to_owned()),
        ("/model", current("fake/fake-2")),
    ];
    for (at, (text, expect)) in rows.into_iter().enumerate() {
        assert_eq!(turn(&rig, &format!("r{at}"), text).await, expect, "{text}");
    }
    let status = turn(&rig, "status", "/model status").await;
    assert!(
        status.starts_with("Current: fake/fake-2\nDefault: fake/fake-1\nAgent: main\nAuth file: ~/"),
        "{status}"
    );
    assert!(status.contains("\n\n[fake] endpoint: http://127.0.0.1:"), "{status}");
    let end =
        "/v1 api: openai-completions auth: api-key … (models.json)\n  • fake/fake-1\n  • fake/fake-2 (two)";
    assert!(status.ends_with(end), "{status}");
    assert_eq!(model.count(), 0);
}

#[tokio::test]
async fn a_profile_comes_with_a_model_and_goes_with_the_next() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let key = |provider: &str| json!({"type": "api_key", "provider": provider, "key": "k"});
    let file = dir.path().join("agents/main/agent/auth-profiles.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let profiles = json!({"profiles": {"fake:me@x.com": key("fake"), "xai:me": key("xai")}});
    std::fs::write(file, profiles.to_string()).unwrap();
    let rig = started(&dir, &model).await;
    assert_eq!(
        turn(&rig, "r1", "/model two@fake:me@x.com").await,
        format!("{SWITCHED} Auth profile set to fake:me@x.com.")
    );
    assert_eq!(chosen(&rig).await, "fake/fake-2 fake:me@x.com User");
    assert_eq!(turn(&rig, "r2", "/model two@xai:me").await, "Auth profile \"xai:me\" is for xai, not fake.");
    assert_eq!(chosen(&rig).await, "fake/fake-2 fake:me@x.com User");
    turn(&rig, "r3", "/two").await;
    assert_eq!(chosen(&rig).await, "fake/fake-2 - -");
    let reset = "Model reset to default (fake/fake-1). Auth profile set to fake:me@x.com.";
    assert_eq!(turn(&rig, "r4", "/model default@fake:me@x.com").await, reset);
    assert_eq!(chosen(&rig).await, "- fake:me@x.com User");
}

#[tokio::test]
async fn a_wish_among_words_is_for_their_run_alone() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Text("one"), Answer::Text("two")]).await);
    let rig = started(&dir, &model).await;
    assert_eq!(turn(&rig, "r1", "say /two hello").await, "one");
    assert_eq!(turn(&rig, "r2", "and now?").await, "two");
    assert_eq!([model.model_of(0), model.model_of(1)], ["fake-2", "fake-1"]);
    assert_eq!(chosen(&rig).await, "- - -");
    // A model that can't be granted is told, and the words are not lost on another model.
    let told = turn(&rig, "r3", "/model nobody/x what is it").await;
    assert!(told.starts_with("Model \"nobody/x\" is not allowed."), "{told}");
    assert_eq!(model.count(), 2);
    assert_eq!(
        said(dir.path())[..4],
        [
            "user: say hello\n[message_id: r1]",
            "assistant: one",
            "user: and now?\n[message_id: r2]",
            "assistant: two"
        ]
    );
}

#[tokio::test]
async fn a_new_conversation_takes_its_wishes_along() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = started(&dir, &model).await;
    turn(&rig, "r1", "hi").await;
    let before = rig.entry().await.session_id;
    assert_eq!(turn(&rig, "r2", "/new /model two").await, SWITCHED);
    let after = rig.entry().await.session_id;
    assert_ne!(before, after);
    assert_eq!(turn(&rig, "r3", "/new fake/fake-1 /two hello").await, "reply 2");
    assert_eq!((model.model_of(1).as_str(), chosen(&rig).await.as_str()), ("fake-2", "- - -"));
    assert!(model.heard(1)[0].ends_with("UTC] hello\n[message_id: r3]"), "{:?}", model.heard(1));
}

#[tokio::test]
async fn a_command_during_a_run_is_answered_at_once_and_holds_for_the_next() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("one"), Answer::Text("two")]).await);
    let mut rig = started(&dir, &model).await;
    send(&rig, "r1", "first").await;
    model.asked(1).await;
    send(&rig, "r2", "second").await;
    send(&rig, "c1", "/model fake/fake-1").await;
    send(&rig, "c2", "/model two").await;
    let events = rig.events_until(&format!("c2 chat final {SWITCHED}")).await;
    assert_eq!(
        events,
        [
            "r1 lifecycle start".to_owned(),
            "c1 chat final Model reset to default (fake/fake-1).".to_owned(),
            format!("c2 chat final {SWITCHED}"),
        ]
    );
    assert_eq!(texts(&rig.end("c2").await), [SWITCHED], "whoever waits knows it too");
    assert_eq!(model.count(), 1, "the run is still under way");
    // Whoever waits is told before it is written down.
    let written = async {
        while said(dir.path()).len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), written).await.unwrap();
    model.release();
    assert_eq!(texts(&rig.end("r2").await), ["two"]);
    assert_eq!([model.model_of(0), model.model_of(1)], ["fake-1", "fake-2"]);
    let said = said(dir.path());
    assert_eq!(
        said[..4],
        [
            "user: first\n[message_id: r1]",
            "assistant: Model reset to default (fake/fake-1).",
            &format!("assistant: {SWITCHED}"),
            "assistant: one",
        ]
    );
    assert!(said[4].ends_with("second\n[message_id: r2]"), "{said:?}");
    assert_eq!(said[5..], ["assistant: two"]);
}

/// Uses a row whose path is wrong, as in a directory that was copied from another home.
#[tokio::test]
async fn a_command_during_a_run_is_kept_where_the_run_is_wherever_the_row_says() {
    let answers = [Answer::Text("zero"), Answer::Held("one")];
    let (dir, model) = (dir(), FakeModel::start(answers).await);
    in_files(dir.path());
    let mut rig = started(&dir, &model).await;
    assert_eq!(turn(&rig, "r0", "before").await, "zero");
    let elsewhere = Box::new(|edit: openclaw_sessions::store::Edit<'_>| {
        let id = edit.entry.session_id.clone().unwrap();
        edit.entry.session_file = Some(format!("/nowhere/{id}.jsonl").into());
        Ok(())
    });
    rig.store.update(&SessionKey::parse(KEY).unwrap(), elsewhere).await.unwrap();
    send(&rig, "r1", "first").await;
    model.asked(2).await;
    send(&rig, "c1", "/model two").await;
    rig.events_until(&format!("c1 chat final {SWITCHED}")).await;
    model.release();
    assert_eq!(texts(&rig.end("r1").await), ["one"]);
    let said = said(dir.path());
    assert_eq!(
        said[2..],
        ["user: first\n[message_id: r1]", &format!("assistant: {SWITCHED}"), "assistant: one"]
    );
    assert!(!std::path::Path::new("/nowhere").exists());
}

#[tokio::test]
async fn of_two_commands_the_last_one_holds() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = started(&dir, &model).await;
    for n in 0..20 {
        send(&rig, &format!("a{n}"), "/model default").await;
        send(&rig, &format!("b{n}"), "/model two").await;
        rig.end(&format!("b{n}")).await;
        assert_eq!(chosen(&rig).await, "fake/fake-2 - -");
    }
}

#[tokio::test]
async fn an_answer_waits_outside_the_transcript_for_the_end_of_a_tool_call() {
    let wait = "while [ ! -e release ]; do sleep 0.01; done";
    let script = [Answer::Call("exec", json!({"command": wait})), Answer::Text("done")];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let mut config = two_models();
    config["tools"] = json!({"exec": {"host": "gateway", "security": "full", "ask": "off"}});
    let mut rig = Rig::with_config(dir.path(), &model, config).await;
    send(&rig, "r1", "run it").await;
    let called = async {
        while said(dir.path()).len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, called).await.expect("the call is in the transcript");
    send(&rig, "c1", "/model two").await;
    rig.events_until(&format!("c1 chat final {SWITCHED}")).await;
    assert_eq!(said(dir.path()).len(), 2, "the call is under way");
    std::fs::write(dir.path().join(WORKSPACE).join("release"), "").unwrap();
    rig.end("r1").await;
    let said = said(dir.path());
    assert_eq!(said[1], "assistant:  +1 calls");
    assert!(said[2].starts_with("toolResult: "), "{said:?}");
    assert_eq!(said[3..], [format!("assistant: {SWITCHED}"), "assistant: done".to_owned()]);
}

#[tokio::test]
async fn a_wish_for_another_model_is_not_steered_into_a_run() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("one"), Answer::Text("two")]).await);
    let mut config = two_models();
    config["messages"] = json!({"queue": {"mode": "steer"}});
    let rig = Rig::with_config(dir.path(), &model, config).await;
    send(&rig, "r1", "first").await;
    model.asked(1).await;
    send(&rig, "r2", "/two second").await;
    model.release();
    assert_eq!(texts(&rig.end("r2").await), ["two"]);
    assert_eq!([model.model_of(0), model.model_of(1)], ["fake-1", "fake-2"]);
}

#[tokio::test]
async fn an_answer_survives_a_crash_and_is_there_once() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half")]).await);
    let mut rig = started(&dir, &model).await;
    send(&rig, "r1", "first").await;
    rig.events_until("r1 chat delta half").await;
    send(&rig, "c1", "/model two").await;
    rig.events_until(&format!("c1 chat final {SWITCHED}")).await;
    // Wherever the crash falls between the answer and its message being closed.
    let crashed = crash(dir.path());
    let model = FakeModel::start([Answer::Text("whole")]).await;
    let rig = started(&crashed, &model).await;
    rig.end("r1").await;
    assert_eq!(texts(&rig.end("c1").await), [SWITCHED]);
    let answers = |dir: &std::path::Path| {
        said(dir).into_iter().filter(|line| *line == format!("assistant: {SWITCHED}")).count()
    };
    // The inbox knows that the answer was told before it is written.
    let written = async {
        while answers(crashed.path()) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("it is written");
    assert_eq!((answers(crashed.path()), chosen(&rig).await.as_str()), (1, "fake/fake-2 - -"));
    assert_eq!(rig.dispatch.shutdown(PATIENCE).await, []);
    rig.store.close().await.unwrap();

    // The row is lost twice over: the answer is found.
    for lost in ["c1", "c1"] {
        unfinish(crashed.path(), lost);
        let rig = started(&crashed, &FakeModel::start([]).await).await;
        assert_eq!(texts(&rig.end("c1").await), [SWITCHED]);
        assert_eq!((answers(crashed.path()), chosen(&rig).await.as_str()), (1, "fake/fake-2 - -"));
        assert_eq!(rig.dispatch.shutdown(PATIENCE).await, []);
        rig.store.close().await.unwrap();
    }
}

/// Sets up a session in which a command was told beside a run, and another choice was made since.
async fn overruled() -> tempfile::TempDir {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half")]).await);
    let mut rig = started(&dir, &model).await;
    send(&rig, "r1", "first").await;
    rig.events_until("r1 chat delta half").await;
    send(&rig, "c1", "/model two").await;
    rig.events_until(&format!("c1 chat final {SWITCHED}")).await;
    let patch = Box::new(|edit: openclaw_sessions::store::Edit<'_>| {
        edit.entry.switch_model(Some(("fake", "fake-1")), None);
        Ok(())
    });
    rig.store.update(&SessionKey::parse(KEY).unwrap(), patch).await.unwrap();
    // As if the crash came before the answer was stored.
    let crashed = crash(dir.path());
    memory::edit(crashed.path(), |message| message.progress.is_finished = false);
    crashed
}

#[tokio::test]
async fn what_was_told_is_not_done_again_after_a_crash() {
    let (crashed, model) = (overruled().await, FakeModel::start([Answer::Text("whole")]).await);
    let rig = started(&crashed, &model).await;
    let known = rig.chat(chat("c1", "/model two")).await.unwrap();
    assert!(matches!(known.accepted, Accepted::Finished(_)), "what clients were told holds: {known:?}");
    assert_eq!(texts(&rig.end("c1").await), [SWITCHED]);
    assert_eq!(turn(&rig, "r2", "more").await, "reply 2");
    assert_eq!(chosen(&rig).await, "fake/fake-1 - -", "what was chosen later holds");
    let answers = said(crashed.path()).into_iter().filter(|line| line.ends_with(SWITCHED));
    assert_eq!(answers.count(), 1);
}

#[tokio::test]
async fn what_was_told_cannot_be_stopped_any_more() {
    let (crashed, model) = (overruled().await, FakeModel::start([Answer::Stall("half again")]).await);
    let mut rig = started(&crashed, &model).await;
    rig.events_until("r1 chat delta half again").await;
    let stopped = rig.abort(KEY, AbortTarget::All, AbortReason::Rpc).await.unwrap();
    assert_eq!(stopped, [RunId::new("r1")]);
    assert_eq!(turn(&rig, "r2", "more").await, "reply 2");
    assert_eq!(texts(&rig.end("c1").await), [SWITCHED]);
    let said = said(crashed.path());
    assert!(!said.iter().any(|line| line.contains("/model two")), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.ends_with(SWITCHED)).count(), 1, "{said:?}");
}

#[tokio::test]
async fn a_command_that_was_stopped_is_no_word_to_the_agent() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Stall("half")]).await);
    let mut rig = started(&dir, &model).await;
    send(&rig, "r1", "first").await;
    rig.events_until("r1 chat delta half").await;
    send(&rig, "c1", "second").await;
    let crashed = crash(dir.path());
    let command = json!({"kind": "chat", "text": "/model two"});
    memory::edit(crashed.path(), |message| {
        if message.run_id.as_str() == "c1" {
            message.payload = Some(command.to_string());
            message.progress.abort = Some(AbortReason::Stop);
        }
    });
    let model = FakeModel::start([]).await;
    let rig = started(&crashed, &model).await;
    let ended = rig.end("c1").await;
    assert!(matches!(ended.outcome, RunOutcome::Aborted { .. }), "{ended:?}");
    assert_eq!(chosen(&rig).await, "- - -");
    let said = said(crashed.path());
    assert!(!said.iter().any(|line| line.contains("/model")), "{said:?}");
}

#[tokio::test]
async fn a_session_that_may_not_send_can_be_switched() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut config = two_models();
    config["session"] = json!({"sendPolicy": {"default": "deny"}});
    let rig = Rig::with_config(dir.path(), &model, config).await;
    let refused = rig.chat(chat("r1", "hi")).await;
    assert!(matches!(refused, Err(DispatchError::SendBlocked)), "{refused:?}");
    assert_eq!(turn(&rig, "r2", "/model two").await, SWITCHED);
    let refused = rig.chat(chat("r3", "/two hi")).await;
    assert!(matches!(refused, Err(DispatchError::SendBlocked)), "{refused:?}");
}

#[tokio::test]
async fn a_thread_goes_on_with_the_model_of_its_room_until_it_has_its_own() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = started(&dir, &model).await;
    turn(&rig, "r1", "/model two").await;
    let in_thread = |run_id: &str, text: &str| openclaw_journal::api::ChatMessage {
        session_key: key_of(&format!("{KEY}:thread:t1")),
        ..chat(run_id, text)
    };
    for (at, text) in ["hi", "/model fake/fake-1", "again", "/model"].into_iter().enumerate() {
        drop(rig.chat(in_thread(&format!("t{at}"), text)).await.unwrap());
        rig.end(&format!("t{at}")).await;
    }
    assert_eq!([model.model_of(0), model.model_of(1)], ["fake-2", "fake-1"]);
    let shown = rig.end("t3").await;
    assert!(texts(&shown)[0].starts_with("Current: fake/fake-1"), "{shown:?}");
    assert_eq!(chosen(&rig).await, "fake/fake-2 - -", "the room keeps its own");
}

#[tokio::test]
async fn a_model_that_is_not_allowed_any_more_is_let_go_and_the_agent_is_told() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = started(&dir, &model).await;
    let key = SessionKey::parse(KEY).unwrap();
    let choose_gone = || {
        rig.store.update(
            &key,
            Box::new(|edit| {
                edit.entry.switch_model(Some(("fake", "gone")), Some("fake:me"));
                Ok(())
            }),
        )
    };
    choose_gone().await.unwrap();
    assert_eq!(turn(&rig, "r1", "hi").await, "reply 1");
    assert_eq!((model.model_of(0).as_str(), chosen(&rig).await.as_str()), ("fake-1", "- - -"));
    let told = "Model override not allowed for this agent; reverted to fake/fake-1.";
    assert!(model.heard(0)[0].contains(told), "{:?}", model.heard(0));
    choose_gone().await.unwrap();
    let status = turn(&rig, "r2", "/model status").await;
    assert!(status.starts_with("Current: fake/fake-1\n"), "{status}");
    assert!(status.contains("\n(previous selection reset to default)\n"), "{status}");
    assert_eq!(chosen(&rig).await, "- - -");
}
