use std::collections::HashMap;

use openclaw_protocol::message::{Block, ToolResultMessage};
use parking_lot::Mutex;

use super::super::event::{CommandAction, EventKind};
use super::super::payload::AgentEnd;
use super::super::program::{ProgramError, Running};
use super::super::set::tests::set;
use super::*;

/// Programs that print what they are made to, and what they were given.
#[derive(Default)]
struct Scripted {
    prints: HashMap<&'static str, &'static str>,
    given: Mutex<Vec<(String, Value)>>,
}

impl Programs for Scripted {
    fn run<'a>(&'a self, program: &'a Program, input: Vec<u8>, limit: Duration) -> Running<'a> {
        Box::pin(async move {
            let input = serde_json::from_slice(&input).unwrap();
            self.given.lock().push((program.hook.clone(), input));
            match self.prints.get(program.hook.as_str()) {
                Some(&"throws") => Err(ProgramError::TimedOut(limit)),
                printed => Ok(printed.unwrap_or(&"").as_bytes().to_vec()),
            }
        })
    }
}

/// Row of a test: subscription, name, priority, output.
type Row = (&'static str, &'static str, f64, &'static str);

fn bus(rows: &[Row]) -> (HookBus, Arc<Scripted>) {
    let prints = rows.iter().map(|(_, name, _, printed)| (*name, *printed)).collect();
    let programs = Arc::new(Scripted { prints, ..Scripted::default() });
    let rows: Vec<_> = rows.iter().map(|(event, name, priority, _)| (*event, *name, *priority)).collect();
    let bus = HookBus::new(Arc::new(set(&rows)), Arc::clone(&programs) as Arc<dyn Programs>, Arc::default());
    (bus, programs)
}

/// Vectors of spec `agent-runtime.md` §8.4.
#[tokio::test]
async fn handlers_are_asked_in_order_and_failures_count_as_no_answer() {
    /// System prompt and context.
    type Expected = (Option<&'static str>, Option<&'static str>);
    let rows: &[(&[Row], Expected)] = &[
        (
            &[
                ("before_agent_start", "b", 0.0, r#"{"prependContext":"b"}"#),
                ("before_agent_start", "a", 10.0, r#"{"prependContext":"a"}"#),
            ],
            (None, Some("a\n\nb")),
        ),
        (
            &[
                ("before_agent_start", "a", 10.0, r#"{"systemPrompt":"x"}"#),
                ("before_agent_start", "b", 0.0, r#"{"systemPrompt":"y"}"#),
            ],
            (Some("y"), None),
        ),
        (
            &[
                ("before_agent_start", "a", 10.0, "throws"),
                ("before_agent_start", "g", 5.0, "garbage"),
                ("before_agent_start", "b", 0.0, r#"{"prependContext":"b"}"#),
            ],
            (None, Some("b")),
        ),
    ];
    for (handlers, expect) in rows {
        let (bus, _) = bus(handlers);
        let payload = BeforeAgentStart { prompt: "p", messages: &[] };
        let changes = bus.before_agent_start(&payload, &HookContext::default()).await;
        assert_eq!((changes.system_prompt.as_deref(), changes.prepend_context.as_deref()), *expect);
    }
}

#[tokio::test]
async fn each_handler_sees_the_arguments_the_one_before_has_left_until_one_refuses() {
    let (bus, programs) = bus(&[
        ("before_tool_call", "first", 3.0, r#"{"params":{"command":"pwd"}}"#),
        ("before_tool_call", "second", 2.0, r#"{"block":true,"blockReason":"not here"}"#),
        ("before_tool_call", "third", 1.0, r#"{"block":false}"#),
    ]);
    let context = HookContext { tool_name: Some("exec".into()), ..HookContext::default() };
    let gate = bus.before_tool_call("exec", json!({"command": "ls"}), &context).await;
    assert_eq!((gate.blocked.as_deref(), gate.params), (Some("not here"), json!({"command": "pwd"})));
    let given = programs.given.lock();
    let asked = |params: Value| json!({"hook": "before_tool_call", "payload": {"toolName": "exec", "params": params}, "context": {"toolName": "exec"}});
    assert_eq!(
        *given,
        [
            ("first".to_owned(), asked(json!({"command": "ls"}))),
            ("second".to_owned(), asked(json!({"command": "pwd"}))),
        ]
    );
}

#[tokio::test]
async fn a_result_is_changed_by_one_after_the_other_and_never_made_another_calls() {
    let result = |call: &str, text: &str| {
        Message::ToolResult(ToolResultMessage {
            tool_call_id: call.into(),
            tool_name: "exec".into(),
            content: vec![Block::text(text)],
            timestamp: 1,
            ..ToolResultMessage::default()
        })
    };
    let (bus, programs) = bus(&[
        (
            "tool_result_persist",
            "a",
            3.0,
            r#"{"message":{"role":"toolResult","toolCallId":"c","toolName":"exec","content":[{"type":"text","text":"two"}],"isError":false,"timestamp":1}}"#,
        ),
        (
            "tool_result_persist",
            "b",
            2.0,
            r#"{"message":{"role":"toolResult","toolCallId":"other","toolName":"exec","content":[]}}"#,
        ),
        ("tool_result_persist", "c", 1.0, "{}"),
    ]);
    let changed =
        bus.tool_result_persist(&result("c", "one"), ResultOrigin::Tool, &HookContext::default()).await;
    assert_eq!(changed, Some(result("c", "two")));
    let given = programs.given.lock();
    let texts: Vec<_> =
        given.iter().map(|(_, input)| input["payload"]["message"]["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["one", "two", "two"]);
}

#[tokio::test]
async fn whoever_is_only_told_is_told_beside_the_work() {
    let (bus, programs) = bus(&[("agent_end", "a", 0.0, "throws"), ("agent_end", "b", 0.0, "garbage")]);
    let payload = AgentEnd { messages: &[], success: false, error: Some("why"), duration_ms: 5 };
    bus.tell(&payload, &HookContext::default());
    bus.tell(&super::super::payload::GatewayStop { reason: "nobody listens" }, &HookContext::default());
    bus.tasks().end(Duration::from_secs(30)).await;
    let given = programs.given.lock();
    assert_eq!(given.len(), 2);
    assert_eq!(
        given[0].1["payload"],
        json!({"messages": [], "success": false, "error": "why", "durationMs": 5})
    );
}

#[tokio::test]
async fn messages_of_an_event_add_up() {
    let (bus, _) = bus(&[
        ("command", "adds", 0.0, r#"{"messages":["one"]}"#),
        ("command", "keeps", 0.0, r#"{"messages":["one","two"]}"#),
        ("command", "hangs", 0.0, "throws"),
        ("command", "alone", 0.0, r#"{"messages":["three"]}"#),
    ]);
    let kind = EventKind::Command(CommandAction::New);
    let mut event =
        Event { kind, session_key: String::new(), context: Map::new(), timestamp: 0, messages: Vec::new() };
    let programs: Vec<_> = bus.set().of_event(kind).cloned().collect();
    for action in programs {
        if let super::super::set::Action::Program(program) = action {
            bus.tell_event(&program, &mut event).await;
        }
    }
    assert_eq!(event.messages, ["one", "two", "three"]);
}

#[tokio::test]
async fn tasks_that_do_not_end_are_ended() {
    let tasks = HookTasks::default();
    tasks.spawn(std::future::pending());
    tasks.end(Duration::ZERO).await;
    assert!(tasks.tracker.is_empty());
}
