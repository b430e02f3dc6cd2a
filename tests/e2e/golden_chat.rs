//! Recorded conversations with a model behind them: streaming, tools, abort, waiting, sessions (spec
//! `gateway-protocol.md` §15). They were recorded one after the other on one gateway, and the later ones show the
//! sessions of the earlier ones, so they are replayed like that.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::golden::{LineChange, Replay};
use openclaw_testkit::model_server::{Captured, ModelServer, Pace, Reply, Step, reference_reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::golden::{differs, recording, skip};

/// The recorded stub (the newest words decide: those of an aborted run may stand before them), but slow answers stand still where the recording's client acts, instead of taking their time.
fn stub(request: &Captured) -> Reply {
    let text = request.last_user_text();
    let ticks = [("SLOW alias", 1), ("SLOW two", 2), ("SLOW one", 3)];
    match ticks.iter().find(|(keyword, _)| text.contains(keyword)) {
        Some((_, count)) => {
            Reply::deltas(["tick0", " tick1", " tick2"].into_iter().take(*count)).then(Step::Hang)
        }
        None => reference_reply(request, Pace::FAST),
    }
}

async fn started() -> (ModelServer, GatewayUnderTest) {
    let model = ModelServer::answering(stub).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("NOTE.txt"), "hello note\n").unwrap();
    gateway.start().await.unwrap();
    (model, gateway)
}

/// KB-16: an aborted run says that it is over, when it is; the reference says nothing.
fn end_of_an_aborted_run(frame: &Value) -> bool {
    frame["event"] == "agent" && frame["payload"]["data"]["aborted"] == true
}

/// KB-18: events carry the canonical key.
fn canonical_key(frame: &mut Value) {
    frame["payload"]["sessionKey"] = json!("agent:main:main");
}

/// Error of a person's run that the model refuses: the recorded words, then the model and what to do.
const REFUSED: &str = "400 fake model rejected the request\nThis is the answer of fake (model fake-1). It refuses the request as it is: \
                 /model <provider>/<model> asks another model, /new begins a conversation without this history.";
/// Error of a program's run: its words are no commands.
const PROGRAM_REFUSED: &str = "400 fake model rejected the request\nThis is the answer of fake (model fake-1). It refuses the request as \
                 it is: `openclaw models set <provider>/<model>` sets another model, `openclaw agent --session-id <new id>` begins a \
                 conversation without this history.";

/// A failed run says so (KB-16); the reference ends it as if all were well.
fn failed_run(run: &str, key: &str, error: &str) -> (Value, Value) {
    let data = json!({"phase": "error", "error": error, "endedAt": 0});
    let agent =
        json!({"runId": run, "stream": "lifecycle", "data": data, "sessionKey": key, "seq": 2, "ts": 0});
    let chat = json!({"runId": run, "sessionKey": key, "seq": 2, "state": "error", "errorMessage": error});
    (
        json!({"type": "event", "event": "agent", "payload": agent}),
        json!({"type": "event", "event": "chat", "payload": chat}),
    )
}

fn chat_send(replay: Replay<'_>) -> Replay<'_> {
    let history = |frame: &mut Value| {
        // Without the `NO_REPLY` that nobody was told, and the answer to `/status`.
        let messages = frame["payload"]["messages"].as_array_mut().unwrap();
        assert_eq!(messages[3]["content"][0]["text"], "NO_REPLY");
        messages.drain(3..=4);
        let failed = messages.iter_mut().find(|message| message["stopReason"] == "error").unwrap();
        failed["errorText"] = json!(REFUSED);
    };
    replay.deviations([
        skip(29..=31, "commands are another issue"),
        differs(35, "KB-16", LineChange::Instead(|| failed_run("run-fail-1", "agent:main:main", REFUSED).0)),
        differs(36, "KB-16", LineChange::Instead(|| failed_run("run-fail-1", "agent:main:main", REFUSED).1)),
        differs(38, "silence is not shown, commands are another issue", LineChange::Edit(history)),
        differs(40, "KB-18", LineChange::Edit(canonical_key)),
    ])
}

fn abort(replay: Replay<'_>) -> Replay<'_> {
    let history = |frame: &mut Value| frame["payload"]["messages"] = json!(["…"]);
    replay.passing_over(end_of_an_aborted_run).deviations([differs(36, "KB-42", LineChange::Edit(history))])
}

/// KB-18: the run is found by the canonical key, so the first of the three aborts has it.
fn abort_alias(replay: Replay<'_>) -> Replay<'_> {
    let aborted = || {
        let payload = json!({"runId": "run-alias", "sessionKey": "agent:main:main", "seq": 3, "state": "aborted", "stopReason": "rpc"});
        json!({"type": "event", "event": "chat", "payload": payload})
    };
    replay.passing_over(end_of_an_aborted_run).deviations([
        differs(11, "KB-18", LineChange::Instead(aborted)),
        differs(11, "KB-18", LineChange::Then(|| aborted_answer("5", &["run-alias"]))),
        differs(13, "KB-18", LineChange::Instead(|| aborted_answer("6", &[]))),
        skip(15..=15, "KB-18"),
        differs(16, "KB-18", LineChange::Instead(|| aborted_answer("7", &[]))),
    ])
}

fn aborted_answer(id: &str, runs: &[&str]) -> Value {
    let payload = json!({"ok": true, "aborted": !runs.is_empty(), "runIds": runs});
    json!({"type": "res", "id": id, "ok": true, "payload": payload})
}

fn agent_and_wait(replay: Replay<'_>) -> Replay<'_> {
    let report = |frame: &mut Value| {
        let report = &mut frame["payload"]["result"]["meta"]["systemPromptReport"];
        // The recorded lists were cut to their first entry; skills come with a later issue.
        report["injectedWorkspaceFiles"].as_array_mut().unwrap().push(json!("…"));
        report["tools"]["entries"].as_array_mut().unwrap().push(json!("…"));
        report["skills"] = json!({"…": "…"});
    };
    let no_report = |frame: &mut Value| {
        frame["payload"]["result"]["meta"].as_object_mut().unwrap().remove("systemPromptReport");
    };
    let failed = |frame: &mut Value| {
        let payload = &mut frame["payload"];
        (payload["status"], payload["summary"]) = (json!("error"), json!(PROGRAM_REFUSED));
        payload["result"]["payloads"][0]["text"] = json!(PROGRAM_REFUSED);
        payload["result"]["payloads"][0]["…"] = json!("…");
        payload["result"]["meta"] = json!({"…": "…"});
    };
    let answered = |frame: &mut Value| {
        frame["ok"] = json!(true);
        frame.as_object_mut().unwrap().shift_remove("error");
    };
    let waited = |frame: &mut Value| {
        frame["payload"]["status"] = json!("error");
        frame["payload"]["…"] = json!("…");
    };
    let lifecycle = || failed_run("run-agent-3", "agent:main:side", PROGRAM_REFUSED).0;
    let chat = || failed_run("run-agent-3", "agent:main:side", PROGRAM_REFUSED).1;
    replay.passing_over(end_of_an_aborted_run).deviations([
        differs(38, "cut", LineChange::Edit(report)),
        differs(40, "a run's record holds no prompt report", LineChange::Edit(no_report)),
        differs(69, "cut", LineChange::Edit(report)),
        differs(74, "KB-16", LineChange::Instead(lifecycle)),
        differs(76, "KB-16", LineChange::Instead(lifecycle)),
        differs(75, "KB-16", LineChange::Instead(chat)),
        differs(77, "KB-16", LineChange::Instead(chat)),
        differs(78, "KB-16", LineChange::Edit(failed)),
        differs(80, "KB-16", LineChange::Edit(waited)),
        differs(
            83,
            "a run that failed is not asked for again by the command line",
            LineChange::Edit(answered),
        ),
        differs(85, "KB-16", LineChange::Edit(waited)),
    ])
}

/// The recorded gateway had a skill, ours has none.
fn plain_entry(entry: &mut Value) {
    if let Some(snapshot) = entry.get_mut("skillsSnapshot") {
        *snapshot = json!({"prompt": "", "skills": [], "version": 0});
    }
}

/// Entries also hold the prompt report and when somebody last spoke, which the reference's `agent` had just forgotten.
fn open_entry(frame: &mut Value) {
    let entry = &mut frame["payload"]["entry"];
    plain_entry(entry);
    entry["…"] = json!("…");
}

fn plain_rows(frame: &mut Value) {
    for row in frame["payload"]["sessions"].as_array_mut().unwrap() {
        plain_entry(row);
        match row["key"].as_str().unwrap() {
            // The size of the last prompt; the reference adds up those of all calls (spec `sessions.md` §3.2).
            "agent:main:tools-on" | "agent:main:tools-full" | "agent:main:tools-off" => {
                row["totalTokens"] = json!(100)
            }
            // The reference's `agent` forgets what the row held when the last run failed.
            "agent:main:side" => {
                row.as_object_mut().unwrap().shift_remove("totalTokens");
                row["…"] = json!("…");
            }
            // The reference's `agent` forgets who had talked there before.
            "agent:main:main" => row["…"] = json!("…"),
            // The last run of this session was aborted.
            "agent:main:abort" => row["abortedLastRun"] = json!(true),
            _ => {}
        }
    }
}

/// KB-14: titles come from what was said; the reference looks in the wrong place and falls back to the id.
fn real_titles(frame: &mut Value) {
    for row in frame["payload"]["sessions"].as_array_mut().unwrap() {
        row["derivedTitle"] = json!("…");
        row["lastMessagePreview"] = json!("…");
    }
}

/// KB-13: what is left of a transcript begins with what a person said; three lines are never a whole turn and a half.
fn whole_turns(frame: &mut Value) {
    frame["payload"]["kept"] = json!(2);
}

fn sessions(replay: Replay<'_>) -> Replay<'_> {
    // The answer to a reset shows the whole route that the row keeps (spec `sessions.md` §3.8).
    let entries = [22, 28, 30, 34, 36, 52].map(|line| differs(line, "entry", LineChange::Edit(open_entry)));
    let rows = [6, 8, 64].map(|line| differs(line, "rows", LineChange::Edit(plain_rows)));
    let cut = [46, 48].map(|line| differs(line, "KB-13", LineChange::Edit(whole_turns)));
    let levels = differs(
        32,
        "spec `models.md` §5: Opus 4.6 can, too",
        LineChange::Edit(|frame| {
            frame["error"]["message"] =
                json!("thinkingLevel \"xhigh\" is only supported for openai/gpt-5.2, …")
        }),
    );
    let titles = differs(8, "KB-14", LineChange::Edit(real_titles));
    replay.deviations(entries).deviations(rows).deviations(cut).deviations([titles, levels])
}

type Adapt = fn(Replay<'_>) -> Replay<'_>;

#[tokio::test]
async fn the_recorded_conversations_go_as_recorded() {
    let (_model, gateway) = started().await;
    let scenes: [(&str, Adapt); 5] = [
        ("gw-chat-send", chat_send),
        ("gw-chat-tool-events", |replay| replay),
        ("gw-chat-abort", abort),
        ("gw-agent-and-wait", agent_and_wait),
        ("gw-sessions", sessions),
    ];
    let mut failures = Vec::new();
    for (name, adapt) in scenes {
        if let Err(error) = adapt(Replay::new(&gateway)).play(&recording(name)).await {
            failures.push(format!("{name}: {error:#}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test]
async fn an_abort_finds_its_run_by_any_spelling_of_the_key() {
    let (_model, gateway) = started().await;
    let played = abort_alias(Replay::new(&gateway)).play(&recording("gw-chat-abort-alias")).await;
    if let Err(error) = played {
        panic!("{error:#}");
    }
}

/// Restores the text that fills the window; the recording holds only its beginning.
fn whole_pad(frame: &mut Value) {
    let cut = frame["params"]["message"].as_str().unwrap();
    let (beginning, _) = cut.split_once(" lorem").unwrap();
    frame["params"]["message"] = json!(format!("{beginning} {}", "lorem ipsum ".repeat(3_400)));
}

/// KB-38: compactions are told with their session.
fn with_its_session(frame: &mut Value) {
    frame["payload"]["sessionKey"] = json!("agent:main:compact");
}

/// The size of the conversation is that after the compaction; the reference shows the one before.
fn smaller_row(frame: &mut Value) {
    let row = &mut frame["payload"]["sessions"][0];
    plain_entry(row);
    row.as_object_mut().unwrap().shift_remove("totalTokens");
    row["…"] = json!("…");
}

#[tokio::test]
async fn a_compaction_after_a_run_goes_as_recorded() {
    let (_model, gateway) = started().await;
    let pads = [5, 18, 31].map(|line| differs(line, "cut", LineChange::Edit(whole_pad)));
    let told = [57, 58].map(|line| differs(line, "KB-38", LineChange::Edit(with_its_session)));
    let replay = Replay::new(&gateway).deviations(pads).deviations(told).deviations([differs(
        62,
        "the row",
        LineChange::Edit(smaller_row),
    )]);
    if let Err(error) = replay.play(&recording("gw-chat-auto-compaction")).await {
        panic!("{error:#}");
    }
}
