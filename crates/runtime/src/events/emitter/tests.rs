use std::fmt::Write as _;
use std::time::Duration;

use openclaw_agent::event::{NextTry, RetryNotice};
use openclaw_models::FailureKind;
use openclaw_protocol::AgentId;
use serde_json::json;

use super::*;

fn emitter(verbose: Verbose) -> Emitter {
    let mut emitter = Emitter::new(RunId::new("r"), SessionKey::main(&AgentId::default(), "main"));
    emitter.set_verbose(verbose);
    emitter
}

/// Event for the text with which a message begins, or that is added to it.
fn say(text: &str) -> RunEvent {
    let change = if text.starts_with([' ', '.']) { TextChange::Grows } else { TextChange::Begins };
    RunEvent::Assistant(change(text.to_owned()))
}

fn end(end: RunEnd) -> RunEvent {
    RunEvent::Ended { started_at: 1, ended_at: 9, end }
}

/// Prints one line per event: name, audience unless everybody, then the payload without the fields
/// that are the same everywhere.
fn lines(broadcasts: &[Broadcast]) -> String {
    let mut out = String::new();
    for broadcast in broadcasts {
        let mut payload: Value = serde_json::from_str(broadcast.payload.as_str()).unwrap();
        let fields = payload.as_object_mut().unwrap();
        assert_eq!(fields.shift_remove("runId"), Some(json!("r")));
        assert_eq!(fields.shift_remove("sessionKey"), Some(json!("agent:main:main")));
        let audience = match broadcast.audience {
            Audience::All => "",
            Audience::ToolListeners => " (tools)",
            Audience::ToolWatchers => " (watchers)",
        };
        let loss = if broadcast.droppable { " (droppable)" } else { "" };
        writeln!(out, "{}{audience}{loss} {payload}", broadcast.name).unwrap();
    }
    out
}

fn check(verbose: Verbose, events: Vec<(i64, RunEvent)>, expected: &str) {
    let mut emitter = emitter(verbose);
    let broadcasts: Vec<_> = events.into_iter().flat_map(|(now, event)| emitter.on(now, event)).collect();
    assert_eq!(lines(&broadcasts).trim(), expected.trim());
}

#[test]
fn a_reply_streams_in_the_recorded_order_with_throttled_deltas() {
    // The times of golden `gw-chat-send`, run-hello-1.
    check(
        Verbose::Off,
        vec![
            (562, RunEvent::Started { started_at: 562 }),
            (575, say("Hello")),
            (667, say(" from")),
            (758, say(" the")),
            (851, say(" fake")),
            (943, say(" model.")),
            (1032, end(RunEnd::Completed)),
        ],
        r#"
agent {"stream":"lifecycle","data":{"phase":"start","startedAt":562},"seq":1,"ts":562}
agent {"stream":"assistant","data":{"text":"Hello","delta":"Hello"},"seq":2,"ts":575}
chat (droppable) {"seq":2,"state":"delta","message":{"role":"assistant","content":[{"type":"text","text":"Hello"}],"timestamp":575}}
agent {"stream":"assistant","data":{"text":"Hello from","delta":" from"},"seq":3,"ts":667}
agent {"stream":"assistant","data":{"text":"Hello from the","delta":" the"},"seq":4,"ts":758}
chat (droppable) {"seq":4,"state":"delta","message":{"role":"assistant","content":[{"type":"text","text":"Hello from the"}],"timestamp":758}}
agent {"stream":"assistant","data":{"text":"Hello from the fake","delta":" fake"},"seq":5,"ts":851}
agent {"stream":"assistant","data":{"text":"Hello from the fake model.","delta":" model."},"seq":6,"ts":943}
chat (droppable) {"seq":6,"state":"delta","message":{"role":"assistant","content":[{"type":"text","text":"Hello from the fake model."}],"timestamp":943}}
agent {"stream":"lifecycle","data":{"phase":"end","endedAt":9},"seq":7,"ts":1032}
chat {"seq":7,"state":"final","message":{"role":"assistant","content":[{"type":"text","text":"Hello from the fake model."}],"timestamp":1032}}
"#,
    );
}

#[test]
fn a_delta_is_due_after_150_ms_and_not_before() {
    let mut emitter = emitter(Verbose::Off);
    let names = |broadcasts: Vec<Broadcast>| broadcasts.iter().map(|b| b.name).collect::<Vec<_>>();
    assert_eq!(names(emitter.on(0, say("Hello world"))), ["agent", "chat"]);
    assert_eq!(names(emitter.on(100, say("."))), ["agent"]);
    assert_eq!(names(emitter.on(149, say("."))), ["agent"]);
    assert_eq!(names(emitter.on(160, say("."))), ["agent", "chat"]);
    assert_eq!(names(emitter.on(310, say("."))), ["agent", "chat"]);
}

#[test]
fn a_silent_reply_ends_without_a_message() {
    check(
        Verbose::Off,
        vec![(1, RunEvent::Started { started_at: 1 }), (9, end(RunEnd::Completed))],
        r#"
agent {"stream":"lifecycle","data":{"phase":"start","startedAt":1},"seq":1,"ts":1}
agent {"stream":"lifecycle","data":{"phase":"end","endedAt":9},"seq":2,"ts":9}
chat {"seq":2,"state":"final"}
"#,
    );
}

#[test]
fn a_failed_call_behind_which_another_follows_is_told_to_everybody_and_ends_nothing() {
    let notice = |next| {
        let notice = RetryNotice {
            provider: "openai".to_owned(),
            model: "gpt".to_owned(),
            kind: FailureKind::Transient,
            error: "down".to_owned(),
            broke_off: false,
            next,
        };
        RunEvent::Retry(Box::new(notice))
    };
    let again = NextTry::Again { attempt: 2, attempts: 4, wait: Duration::from_millis(2_000) };
    let fallback = NextTry::Fallback { provider: "local".to_owned(), model: "small".to_owned() };
    check(
        Verbose::Off,
        vec![(1, notice(again)), (2, notice(fallback)), (9, end(RunEnd::Completed))],
        r#"
agent {"stream":"lifecycle","data":{"phase":"retry","provider":"openai","model":"gpt","attempt":2,"maxAttempts":4,"delayMs":2000,"reason":"unavailable","error":"down","text":"openai/gpt does not answer (down); trying again in 2 s (2 of 4)"},"seq":1,"ts":1}
agent {"stream":"lifecycle","data":{"phase":"fallback","fromProvider":"openai","fromModel":"gpt","toProvider":"local","toModel":"small","reason":"unavailable","error":"down","text":"openai/gpt does not answer (down); asking local/small"},"seq":2,"ts":2}
agent {"stream":"lifecycle","data":{"phase":"end","endedAt":9},"seq":3,"ts":9}
chat {"seq":3,"state":"final"}
"#,
    );
}

fn tool_events() -> Vec<(i64, RunEvent)> {
    let (name, call_id) = ("read".to_owned(), "c".to_owned());
    vec![
        (1, RunEvent::ToolStart { name: name.clone(), call_id: call_id.clone(), args: json!({"path": "N"}) }),
        (2, RunEvent::ToolUpdate { name: name.clone(), call_id: call_id.clone(), partial: json!({"p": 1}) }),
        (
            3,
            RunEvent::ToolResult {
                name,
                call_id,
                meta: Some("N".to_owned()),
                is_error: false,
                result: json!({"content": []}),
            },
        ),
        (4, end(RunEnd::Completed)),
    ]
}

#[test]
fn tool_events_go_to_their_listeners_as_far_as_verbose_says_and_always_count() {
    let tail = r#"agent {"stream":"lifecycle","data":{"phase":"end","endedAt":9},"seq":4,"ts":4}
chat {"seq":4,"state":"final"}"#;
    check(
        Verbose::Off,
        tool_events(),
        &format!(
            r#"
agent (watchers) {{"stream":"tool","data":{{"phase":"start","name":"read","toolCallId":"c","args":{{"path":"N"}}}},"seq":1,"ts":1}}
agent (watchers) {{"stream":"tool","data":{{"phase":"update","name":"read","toolCallId":"c"}},"seq":2,"ts":2}}
agent (watchers) {{"stream":"tool","data":{{"phase":"result","name":"read","toolCallId":"c","meta":"N","isError":false}},"seq":3,"ts":3}}
{tail}"#
        ),
    );
    check(
        Verbose::On,
        tool_events(),
        &format!(
            r#"
agent (tools) {{"stream":"tool","data":{{"phase":"start","name":"read","toolCallId":"c","args":{{"path":"N"}}}},"seq":1,"ts":1}}
agent (tools) {{"stream":"tool","data":{{"phase":"update","name":"read","toolCallId":"c"}},"seq":2,"ts":2}}
agent (tools) {{"stream":"tool","data":{{"phase":"result","name":"read","toolCallId":"c","meta":"N","isError":false}},"seq":3,"ts":3}}
{tail}"#
        ),
    );
    check(
        Verbose::Full,
        tool_events(),
        &format!(
            r#"
agent (tools) {{"stream":"tool","data":{{"phase":"start","name":"read","toolCallId":"c","args":{{"path":"N"}}}},"seq":1,"ts":1}}
agent (tools) {{"stream":"tool","data":{{"phase":"update","name":"read","toolCallId":"c","partialResult":{{"p":1}}}},"seq":2,"ts":2}}
agent (tools) {{"stream":"tool","data":{{"phase":"result","name":"read","toolCallId":"c","meta":"N","isError":false,"result":{{"content":[]}}}},"seq":3,"ts":3}}
{tail}"#
        ),
    );
}

#[test]
fn a_failure_is_an_error_on_both_streams() {
    check(
        Verbose::Off,
        vec![
            (1, RunEvent::Started { started_at: 1 }),
            (2, end(RunEnd::Failed("HTTP 401: bad key".to_owned()))),
        ],
        r#"
agent {"stream":"lifecycle","data":{"phase":"start","startedAt":1},"seq":1,"ts":1}
agent {"stream":"lifecycle","data":{"phase":"error","error":"HTTP 401: bad key","endedAt":9},"seq":2,"ts":2}
chat {"seq":2,"state":"error","errorMessage":"HTTP 401: bad key"}
"#,
    );
}

#[test]
fn an_abort_ends_the_chat_stream_at_once_and_the_lifecycle_still_ends() {
    let mut emitter = emitter(Verbose::Off);
    let mut out = emitter.on(1, RunEvent::Started { started_at: 1 });
    out.extend(emitter.on(2, say("tick0")));
    out.extend(emitter.aborted("rpc"));
    out.extend(emitter.aborted("stop"));
    out.extend(emitter.on(500, say(" tick1")));
    out.extend(emitter.on(501, end(RunEnd::Aborted)));
    assert_eq!(
        lines(&out),
        r#"agent {"stream":"lifecycle","data":{"phase":"start","startedAt":1},"seq":1,"ts":1}
agent {"stream":"assistant","data":{"text":"tick0","delta":"tick0"},"seq":2,"ts":2}
chat (droppable) {"seq":2,"state":"delta","message":{"role":"assistant","content":[{"type":"text","text":"tick0"}],"timestamp":2}}
chat {"seq":3,"state":"aborted","stopReason":"rpc"}
agent {"stream":"assistant","data":{"text":"tick0 tick1","delta":" tick1"},"seq":3,"ts":500}
agent {"stream":"lifecycle","data":{"phase":"end","endedAt":9,"aborted":true},"seq":4,"ts":501}
"#
    );
}

#[test]
fn a_run_out_of_time_has_failed() {
    check(
        Verbose::Off,
        vec![(2, end(RunEnd::TimedOut))],
        r#"
agent {"stream":"lifecycle","data":{"phase":"error","error":"The run timed out: it was stopped at its time limit. Ask for less at once, or allow more time.","endedAt":9},"seq":1,"ts":2}
chat {"seq":1,"state":"error","errorMessage":"The run timed out: it was stopped at its time limit. Ask for less at once, or allow more time."}
"#,
    );
}

#[test]
fn only_the_last_lifecycle_event_ends_the_run() {
    for last in [RunEnd::Completed, RunEnd::Aborted, RunEnd::TimedOut, RunEnd::Failed("no".to_owned())] {
        let mut emitter = emitter(Verbose::Full);
        let mut out = emitter.on(1, RunEvent::Started { started_at: 1 });
        out.extend(tool_events().into_iter().take(3).flat_map(|(now, event)| emitter.on(now, event)));
        out.extend(emitter.on(2, RunEvent::CompactionEnd { will_retry: false }));
        assert!(out.iter().all(|broadcast| !broadcast.ends_run));
        let ends: Vec<_> = emitter.on(3, end(last)).iter().map(|b| (b.name, b.ends_run)).collect();
        assert_eq!(ends, [("agent", true), ("chat", false)]);
    }
}
