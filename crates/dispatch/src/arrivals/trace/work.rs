//! Work of a run, read from its transcript.

use std::io;
use std::ops::ControlFlow;

use openclaw_agent::is_interrupted;
use openclaw_agent::text::silent::is_silent;
use openclaw_journal::job::is_copy;
use openclaw_protocol::message::{Message, StopReason};
use openclaw_protocol::params::channels::TraceTool;
use openclaw_sessions::transcript::head::Kind;
use openclaw_sessions::transcript::inject::is_injected;
use openclaw_sessions::transcript::{Body, Entry, Part, TURN_START, TranscriptReader};

/// Bytes that are read from the end of a transcript. Calls of older runs are not told.
const READ: u64 = 8 * 1024 * 1024;

/// Work of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RunWork {
    /// Answers of the model, those with tool calls included.
    pub(super) model_calls: u32,
    /// Tool calls of the run, in order.
    pub(super) tools: Vec<TraceTool>,
    /// Kind of silence if the last answer has no words: `empty`, or `silent` if the model chose so.
    pub(super) silence: Option<&'static str>,
    /// Mark that an earlier run has read a copy of the message.
    pub(super) read_before: Option<ReadBefore>,
}

/// Marks that a run has read the copy of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReadBefore {
    /// Message behind which the copy stands, whose run has read it. `None` if it is not in the
    /// transcript any more.
    pub(super) behind: Option<String>,
}

/// Returns the work that followed the message with one of these ids, up to the next message behind
/// its answer, and whether a copy of it stands before that under one of the other ids. `None` if
/// neither is there.
pub(super) fn of(
    reader: &TranscriptReader,
    entry_ids: &[String],
    copies: &[String],
) -> io::Result<Option<RunWork>> {
    let mut behind: Vec<Entry> = Vec::new();
    let mut own: Option<Kind> = None;
    let mut read_before: Option<ReadBefore> = None;
    reader.visit(Part::End { bytes: READ }, &mut |kind, id, line| {
        let is_one_of = |ids: &[String]| id.is_some_and(|id| ids.iter().any(|own| own == id.as_str()));
        if let Some(read) = &mut read_before {
            read.behind = id.map(|id| id.as_str().to_owned()).filter(|id| kind == Kind::User && !is_copy(id));
            return if read.behind.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        if kind == Kind::User && is_one_of(copies) {
            read_before = Some(ReadBefore::default());
            return ControlFlow::Continue(());
        }
        if own.is_some() {
            return ControlFlow::Continue(());
        }
        // Of a command only the answer is said.
        if matches!(kind, Kind::User | Kind::Assistant) && is_one_of(entry_ids) {
            own = Some(kind);
            return if copies.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        if kind.is_message() || kind == Kind::Custom {
            behind.extend(Entry::parse(line));
        }
        ControlFlow::Continue(())
    })?;
    behind.reverse();
    let work = match own {
        // No run was needed for it.
        Some(Kind::Assistant) | None => RunWork::default(),
        Some(_) => gather(&behind),
    };
    Ok((own.is_some() || read_before.is_some()).then_some(RunWork { read_before, ..work }))
}

fn gather(behind: &[Entry]) -> RunWork {
    let mut work = RunWork::default();
    let mut is_answered = false;
    for entry in behind {
        if matches!(&entry.body, Body::Custom { custom_type, .. } if custom_type == TURN_START) {
            break;
        }
        let Some(message) = entry.body.message() else { continue };
        match &**message {
            Message::User(_) if is_answered => break,
            // Steered into the run.
            Message::User(_) => {}
            // The gateway said it by itself, such as the answer of a command.
            Message::Assistant(_) if is_injected(message) => {}
            // Placeholder for an answer that never came.
            Message::Assistant(failed)
                if failed.stop_reason == StopReason::Error && failed.content.is_empty() =>
            {
                is_answered = true;
            }
            Message::Assistant(answer) => {
                work.model_calls += 1;
                is_answered = answer.tool_calls().next().is_none();
                let text = answer.text();
                work.silence = match text.trim() {
                    "" if is_answered => Some("empty"),
                    text if is_silent(text) => Some("silent"),
                    _ => None,
                };
                work.tools.extend(answer.tool_calls().map(|call| TraceTool {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    failed: None,
                    is_interrupted: None,
                }));
            }
            Message::ToolResult(result) => {
                let call = work.tools.iter_mut().rev().find(|tool| tool.id == result.tool_call_id);
                if let Some(call) = call {
                    call.failed = Some(result.is_error);
                    call.is_interrupted = is_interrupted(result).then_some(true);
                }
            }
        }
    }
    work
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::{AgentId, SessionId};
    use openclaw_sessions::transcript::MemoryLogs;
    use serde_json::{Value, json};

    use super::*;

    /// Reader of a transcript with these lines, each of which follows the one before.
    fn lines(lines: Vec<Value>) -> TranscriptReader {
        let logs = MemoryLogs::default();
        let transcripts = logs.transcripts();
        let transcript = transcripts.of_new(&AgentId::default(), &SessionId::new("s")).unwrap();
        let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"});
        let text: String = [header].into_iter().chain(lines).map(|line| format!("{line}\n")).collect();
        logs.put(&transcript, text);
        transcripts.reader(&transcript)
    }

    fn line(id: &str, message: &Value) -> Value {
        json!({"type": "message", "id": id, "timestamp": "2025-01-02T03:04:05.000Z", "message": message})
    }

    fn said(id: &str) -> Value {
        line(id, &json!({"role": "user", "content": "hi", "timestamp": 1}))
    }

    fn answer(id: &str, content: &Value) -> Value {
        line(
            id,
            &json!({"role": "assistant", "content": content, "api": "", "provider": "", "model": "", "usage": {},
                    "stopReason": "stop", "timestamp": 1}),
        )
    }

    #[test]
    fn a_run_is_what_stands_between_its_message_and_the_next_one_behind_its_answer() {
        let call = |id: &str| json!([{"type": "toolCall", "id": id, "name": "read", "arguments": {}}]);
        let result = |id: &str, failed: bool| json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [], "isError": failed, "timestamp": 1});
        let text = json!([{"type": "text", "text": "done"}]);
        let read = lines(vec![
            said("before"),
            answer("x", &text),
            said("own"),
            answer("a", &call("1")),
            line("b", &result("1", true)),
            said("steered"),
            answer("c", &call("2")),
            answer("d", &text),
            said("next"),
            answer("e", &call("3")),
        ]);
        let mut failed = answer("f", &json!([]));
        failed["message"]["stopReason"] = json!("error");
        let none = of(&lines(vec![said("own"), failed]), &["own".to_owned()], &[]).unwrap();
        assert_eq!(none, Some(RunWork::default()), "nobody has answered");
        let tool = |id: &str, failed: Option<bool>| TraceTool {
            id: id.to_owned(),
            name: "read".to_owned(),
            failed,
            is_interrupted: None,
        };
        let work = of(&read, &["other".to_owned(), "own".to_owned()], &[]).unwrap();
        let expected = RunWork {
            model_calls: 3,
            tools: vec![tool("1", Some(true)), tool("2", None)],
            ..RunWork::default()
        };
        assert_eq!(work, Some(expected));
        let cut = json!({"type": "custom", "id": "start", "timestamp": "2025-01-02T03:04:05.000Z",
            "customType": TURN_START});
        let stopped =
            lines(vec![said("own"), cut, said("next"), answer("c", &call("2")), answer("d", &text)]);
        assert_eq!(
            of(&stopped, &["own".to_owned()], &[]).unwrap(),
            Some(RunWork::default()),
            "another turn begins"
        );
        assert_eq!(of(&read, &["gone".to_owned()], &[]).unwrap(), None);
    }

    #[test]
    fn a_call_during_which_the_gateway_ended_is_told_as_one_that_may_have_happened() {
        let call = json!([{"type": "toolCall", "id": "1", "name": "exec", "arguments": {}}]);
        let interrupted = "[openclaw] The gateway was interrupted during this call; it may or may not have completed. Check \
                           before doing it again.";
        for (text, expect) in [(interrupted, Some(true)), ("exit code 1", None)] {
            let result = json!({"role": "toolResult", "toolCallId": "1", "toolName": "exec",
                "content": [{"type": "text", "text": text}], "isError": true, "timestamp": 1});
            let read = lines(vec![said("own"), answer("a", &call), line("b", &result)]);
            let work = of(&read, &["own".to_owned()], &[]).unwrap().unwrap();
            assert_eq!((work.tools[0].failed, work.tools[0].is_interrupted), (Some(true), expect), "{text}");
        }
    }

    #[test]
    fn an_answer_without_words_is_told() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let call = json!([{"type": "toolCall", "id": "1", "name": "read", "arguments": {}}]);
        let rows = [
            (vec![json!([])], Some("empty")),
            (vec![text(" \n")], Some("empty")),
            (vec![text("NO_REPLY")], Some("silent")),
            (vec![text("hi")], None),
            (vec![call.clone()], None),
            (vec![call, json!([])], Some("empty")),
        ];
        for (answers, expect) in rows {
            let told = answers.iter().map(|content| answer("a", content));
            let read = lines([said("own")].into_iter().chain(told).collect());
            let work = of(&read, &["own".to_owned()], &[]).unwrap().unwrap();
            assert_eq!(work.silence, expect, "{answers:?}");
        }
    }

    #[test]
    fn a_command_is_known_by_its_answer_and_a_copy_by_what_the_run_before_read() {
        let text = json!([{"type": "text", "text": "done"}]);
        let read = lines(vec![
            said("before"),
            said("own-copy"),
            answer("x", &text),
            said("own"),
            answer("a", &text),
        ]);
        let own = ["own".to_owned()];
        let copies = ["own-copy".to_owned(), "own-copy-2".to_owned()];
        let ran = RunWork { model_calls: 1, ..RunWork::default() };
        assert_eq!(of(&read, &own, &[]).unwrap(), Some(ran.clone()));
        let read_behind = |id: Option<&str>| Some(ReadBefore { behind: id.map(str::to_owned) });
        assert_eq!(
            of(&read, &own, &copies).unwrap(),
            Some(RunWork { read_before: read_behind(Some("before")), ..ran.clone() })
        );
        // The message's own run has not begun.
        let waits = Some(RunWork { read_before: read_behind(Some("before")), ..RunWork::default() });
        assert_eq!(of(&read, &["later".to_owned()], &copies).unwrap(), waits);
        // Copies of others say nothing of the reader, and neither does a transcript that begins behind its message.
        let others = lines(vec![
            said("first"),
            answer("x", &text),
            said("before"),
            answer("y", &text),
            said("z-copy-2"),
            answer("y", &text),
            said("own-copy-2"),
            said("own"),
            answer("a", &text),
        ]);
        let expect = RunWork { read_before: read_behind(Some("before")), ..ran.clone() };
        assert_eq!(of(&others, &own, &copies).unwrap(), Some(expect));
        let cut = lines(vec![answer("x", &text), said("own-copy"), said("own"), answer("a", &text)]);
        assert_eq!(of(&cut, &own, &copies).unwrap(), Some(RunWork { read_before: read_behind(None), ..ran }));
        let command = lines(vec![said("before"), answer("own", &text), said("next"), answer("a", &text)]);
        assert_eq!(of(&command, &own, &copies).unwrap(), Some(RunWork::default()));
    }
}
