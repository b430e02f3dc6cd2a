//! Model servers that fail: whoever asked is told what happened, the transcript stays in order, the next turn works.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedCall, Step};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{
    end, failure, message, send, told, transcript_path, turn, well_formed, words,
};

const KEY: &str = "fake-key";

/// Name of a case, the server's behaviour for it, and the texts that people are told.
type Case = (&'static str, fn() -> Reply, &'static [&'static str]);

/// Half of a call of a tool, and the connection is gone.
fn half_a_call() -> Reply {
    let call = ScriptedCall::new("c1", "exec", &json!({"command": "echo this must never run > ran"}));
    Reply::steps([Step::Text("let me look".into()), Step::HalfToolCall(call), Step::Cut])
}

fn bytes(bytes: &[u8]) -> Reply {
    Reply::plain(200, "text/event-stream", bytes)
}

/// Failures that are not worth another try.
const LASTING: [Case; 6] = [
    (
        "html",
        || Reply::html(200, "Sign in"),
        &["web page titled \"Sign in\"", "asking fake (model fake-1)", "models.providers.fake.baseUrl"],
    ),
    ("html-404", || Reply::html(404, "Not here"), &["404", "web page titled \"Not here\"", "fake.baseUrl"]),
    (
        "401",
        || Reply::openai_error(401, "invalid_request_error", "Incorrect API key provided: fake-key"),
        &["401", "Incorrect API key"],
    ),
    (
        "404",
        || Reply::openai_error(404, "not_found_error", "model fake-1 does not exist"),
        &["404", "fake-1", "models.providers.fake.models in the config names its models"],
    ),
    (
        "400",
        || Reply::openai_error(400, "invalid_request_error", "no such parameter: x"),
        &["no such parameter: x", "the answer of fake (model fake-1)", "/model <provider>/<model>"],
    ),
    (
        "redirect",
        || Reply::plain(302, "text/plain", "").header("location", "http://elsewhere/"),
        &["http://elsewhere/", "the answer of fake (model fake-1)", "models.providers.fake.baseUrl"],
    ),
];

/// Failures that may be over in a moment.
const PASSING: [Case; 4] = [
    ("cut", half_a_call, &["connection error", "closed the connection"]),
    ("busy", || Reply::openai_error(503, "server_error", "restarting"), &["503", "restarting"]),
    ("json", || bytes(b"data: {\"choices\": [oops}\n\n"), &["oops"]),
    ("nothing", || bytes(b""), &["empty answer"]),
];

fn answer(request: &Captured) -> Reply {
    // A message that was not answered is asked again together with the one that follows it.
    let text = request.last_user_text();
    let (said, is_first) = (words(&text), !text.contains("and now?"));
    let mut cases = LASTING.iter().chain(&PASSING);
    let case = cases.find(|(name, ..)| is_first && said == format!("case {name}"));
    case.map_or_else(|| Reply::text("well again"), |(_, reply, _)| reply())
}

#[tokio::test]
async fn every_failure_is_told_and_the_next_turn_works() {
    let model = ModelServer::answering(answer).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (name, _, words) in LASTING {
        let run = format!("run-{name}");
        let before = model.requests().len();
        let text = format!("case {name}");
        send(&mut client, name, &text, &run).await;
        let told_text = failure(&mut client, name, &text, &run).await;
        for word in words {
            assert!(told_text.contains(word), "{name}: no \"{word}\" in: {told_text}");
        }
        assert!(!told_text.contains(KEY), "{name}: {told_text}");
        assert_eq!(model.requests().len() - before, 1, "{name} was tried again");

        assert_eq!(turn(&mut client, name, "and now?", &format!("{run}-2")).await, "well again");
        let entries = well_formed(&transcript_path(&gateway, name).await);
        let told = told(&entries);
        let [asked, failed, again, answered] = &told[..] else { panic!("{name}: {told:?}") };
        assert_eq!(asked, &format!("user: case {name}"));
        assert!(failed.ends_with("(error)"), "{name}: {failed}");
        assert_eq!([again, answered], ["user: and now?", "assistant: well again (stop)"]);
    }
    assert!(!gateway.log().contains(KEY), "{}", gateway.log());
}

#[tokio::test]
async fn bytes_that_are_no_text_spoil_no_answer() {
    let broken =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xff\xfeb\"}}]}\n\ndata: [DONE]\n\n";
    let model = ModelServer::answering(|_| bytes(broken)).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "a\u{fffd}\u{fffd}b");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_at_the_time_limit() {
    let model = ModelServer::answering(|request| match words(&request.last_user_text()) == "first" {
        true => Reply::never(),
        false => Reply::text("well again"),
    })
    .await;
    // Long enough for a busy machine to answer what comes behind it.
    let limit = json!({"agents": {"defaults": {"timeoutSeconds": 4}}});
    let gateway = gateway().fake_model(&model.v1()).config(limit).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let id = client.send("agent", message("main", "first", "run-1")).await.unwrap();
    let is_told = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        ["timed out", "time limit of 4 s", "timeoutSeconds"].iter().all(|words| text.contains(words))
    };
    let last = client.event("agent", |payload| payload["data"]["phase"] == "error").await.unwrap();
    assert!(is_told(&last["data"]["error"]), "{last}");
    let ended = end(&mut client, "run-1").await;
    assert!(ended["state"] == "error" && is_told(&ended["errorMessage"]), "{ended}");
    assert_eq!(client.answer(&id).await.unwrap().payload["status"], "accepted");
    let answer = client.answer(&id).await.unwrap();
    let payload = &answer.payload;
    assert_eq!((answer.ok, &payload["status"]), (true, &json!("error")), "{answer:?}");
    assert!(is_told(&payload["summary"]) && is_told(&payload["result"]["payloads"][0]["text"]), "{answer:?}");
    let waited = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
    assert!(waited["status"] == "error" && is_told(&waited["error"]), "{waited}");

    assert_eq!(turn(&mut client, "main", "second", "run-2").await, "well again");
    let entries = well_formed(&transcript_path(&gateway, "main").await);
    let expect = ["user: first", "assistant:  (aborted)", "user: second", "assistant: well again (stop)"];
    assert_eq!(told(&entries), expect);
}

#[tokio::test]
async fn an_answer_that_breaks_off_in_a_tool_call_is_asked_for_again() {
    let model = ModelServer::queue([half_a_call(), Reply::text("whole"), Reply::text("well again")]).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "first", "run-1").await, "whole");
    assert_eq!(turn(&mut client, "main", "second", "run-2").await, "well again");
    let entries = well_formed(&transcript_path(&gateway, "main").await);
    assert_eq!(
        told(&entries),
        [
            "user: first",
            "assistant: let me look (error)",
            "assistant: whole (stop)",
            "user: second",
            "assistant: well again (stop)",
        ]
    );
    // The half call was neither made nor shown to the model again.
    assert!(!gateway.state_dir().join("workspace/ran").exists());
    assert!(!model.requests()[1].body.to_string().contains("must never run"));
}

/// The waits between the tries (2, 4 and 8 seconds) are real: this test sleeps most of its time.
#[tokio::test]
async fn servers_that_stay_away_are_given_up_after_four_tries() {
    let model = ModelServer::answering(answer).await;
    let refused = (
        "refused",
        "http://127.0.0.1:1/v1".to_owned(),
        &["connection refused by 127.0.0.1:1", "is the server running?"][..],
    );
    let cases = PASSING.iter().map(|(name, _, words)| (*name, model.v1(), *words)).chain([refused]);
    let cases = cases.map(|(name, url, words)| async move {
        let gateway = gateway().fake_model(&url).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let asked = format!("case {name}");
        send(&mut client, "main", &asked, "run-1").await;
        let text = failure(&mut client, "main", &asked, "run-1").await;
        for word in words {
            assert!(text.contains(word), "{name}: no \"{word}\" in: {text}");
        }
        let entries = well_formed(&transcript_path(&gateway, "main").await);
        assert!(told(&entries).last().unwrap().ends_with("(error)"), "{name}: {:?}", told(&entries));
        assert!(!gateway.state_dir().join("workspace/ran").exists());
    });
    futures_util::future::join_all(cases).await;
    assert_eq!(model.requests().len(), 4 * PASSING.len());
}
