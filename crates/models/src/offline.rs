//! The model when there is no model: provider `offline`, model `offline/guide`.
//!
//! A small deterministic responder that goes through the real loop, real streaming and real tools, says plainly that it is
//! not a language model, and tells how to connect one.

mod command;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::message::{
    AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage, Usage,
};
use tokio_util::sync::CancellationToken;

use self::command::{GuideCall, GuideCommand, USAGES};
use crate::history::{self, HistoryRules, IdRule};
use crate::reference::ModelRef;
use crate::request::ModelRequest;
use crate::result_text::texts;
use crate::retry::ABORTED;
use crate::stream::{Model, ModelEvent, ModelFacts, ModelStream};
use openclaw_config::clock::now_ms;
use openclaw_config::profile::Instance;

/// The guide's provider id.
pub const PROVIDER: &str = "offline";
/// The guide's model id.
pub const MODEL: &str = "guide";
/// The guide's name for people.
pub const NAME: &str = "Offline guide";
/// The guide's protocol.
pub const API: &str = "offline";

/// Returns true if a model is the offline guide, which is always available.
pub(crate) fn is_guide(model: &ModelRef) -> bool {
    model.provider.as_str() == PROVIDER
}

/// Characters of a tool's output that the guide repeats.
const SHOWN_CHARS: usize = 2_000;
/// Words in one delta.
const WORDS_PER_DELTA: usize = 4;
/// A pace a person sees as streaming.
const PACE: Duration = Duration::from_millis(12);

/// The offline guide.
#[derive(Debug, Clone)]
pub struct OfflineGuide {
    window: u64,
    instance: Instance,
    pace: Duration,
}

impl OfflineGuide {
    /// The guide as people of an instance meet it.
    pub fn new(window: u64, instance: Instance) -> Self {
        Self { window, instance, pace: PACE }
    }

    /// A guide that streams as fast as it is read, for tests and benches.
    pub fn unpaced(window: u64) -> Self {
        Self { window, instance: Instance::default(), pace: Duration::ZERO }
    }
}

impl Model for OfflineGuide {
    fn facts(&self) -> ModelFacts<'_> {
        ModelFacts {
            provider: PROVIDER,
            id: MODEL,
            api: API,
            context_window: self.window,
            max_tokens: self.window,
            reasons: false,
        }
    }

    fn stream(&self, mut request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let rules = HistoryRules::of(PROVIDER, API, MODEL, IdRule::Completions);
        request.messages = history::prepare(request.messages.to_vec(), &rules).into();
        let events = respond(&request, &self.instance, now_ms());
        let speech = Speech { events, pace: self.pace, cancel, said: AssistantMessage::default() };
        Box::pin(futures_util::stream::unfold(speech, Speech::next))
    }
}

/// An answer being spoken.
struct Speech {
    events: VecDeque<ModelEvent>,
    pace: Duration,
    cancel: CancellationToken,
    said: AssistantMessage,
}

impl Speech {
    async fn next(mut self) -> Option<(ModelEvent, Self)> {
        let event = self.events.pop_front()?;
        let paced = matches!(event, ModelEvent::TextDelta { .. }) && !self.pace.is_zero();
        let cancelled = if paced {
            tokio::select! { biased;
                () = self.cancel.cancelled() => true,
                () = tokio::time::sleep(self.pace) => false,
            }
        } else {
            self.cancel.is_cancelled()
        };
        if cancelled {
            let message = self.aborted();
            self.events.clear();
            return Some((ModelEvent::Done { message, failure: None }, self));
        }
        if let ModelEvent::TextDelta { delta, .. } = &event {
            match self.said.content.last_mut() {
                Some(Block::Text(text)) => text.text.push_str(delta),
                _ => self.said.content.push(Block::text(delta.clone())),
            }
        }
        Some((event, self))
    }

    fn aborted(&mut self) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Aborted,
            error_message: Some(ABORTED.to_owned()),
            timestamp: now_ms(),
            ..envelope(std::mem::take(&mut self.said.content))
        }
    }
}

/// The whole answer to a request, as events.
fn respond(request: &ModelRequest, instance: &Instance, now: i64) -> VecDeque<ModelEvent> {
    let mut events = VecDeque::from([ModelEvent::Start]);
    let (content, stop) = match answer(request, instance) {
        OfflineReply::Text(text) => {
            events.extend(deltas(&text).map(|delta| ModelEvent::TextDelta { block: 0, delta }));
            (vec![Block::text(text)], StopReason::Stop)
        }
        OfflineReply::Call(call) => {
            events.push_back(ModelEvent::ToolCallStart {
                block: 0,
                id: call.id.clone(),
                name: call.name.clone(),
            });
            (vec![Block::ToolCall(call)], StopReason::ToolUse)
        }
    };
    let usage = estimate(request, &content);
    let message = AssistantMessage { stop_reason: stop, usage, timestamp: now, ..envelope(content) };
    events.push_back(ModelEvent::Done { message, failure: None });
    events
}

enum OfflineReply {
    Text(String),
    Call(ToolCall),
}

fn answer(request: &ModelRequest, instance: &Instance) -> OfflineReply {
    let offered: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    match request.messages.last().map(Arc::as_ref) {
        Some(Message::ToolResult(result)) => OfflineReply::Text(report(result)),
        Some(Message::User(user)) => match GuideCommand::parse(&user.content.to_text()) {
            GuideCommand::Help => OfflineReply::Text(guide(&offered, instance)),
            GuideCommand::Heartbeat => OfflineReply::Text("HEARTBEAT_OK".to_owned()),
            GuideCommand::Incomplete(usage) => {
                OfflineReply::Text(format!("Something is missing. The command goes: `{usage}`"))
            }
            GuideCommand::Tool(wanted) => call(&wanted, &offered, request.messages.len()),
        },
        Some(Message::Assistant(_)) | None => OfflineReply::Text(guide(&offered, instance)),
    }
}

fn call(wanted: &GuideCall, offered: &[&str], turn: usize) -> OfflineReply {
    match wanted.to_call(offered) {
        Some((name, arguments)) => OfflineReply::Call(ToolCall {
            id: format!("call_offline_{turn}"),
            name: name.to_owned(),
            arguments,
            ..ToolCall::default()
        }),
        None => OfflineReply::Text(format!(
            "The tool `{}` is not available here, so I can't do that.",
            wanted.tool_name()
        )),
    }
}

fn report(result: &ToolResultMessage) -> String {
    let text = texts(result);
    let text = text.trim_end();
    let opening = match (result.is_error, text.is_empty()) {
        (true, _) => format!("The tool `{}` failed:", result.tool_name),
        (false, true) => return format!("The tool `{}` is done; it said nothing.", result.tool_name),
        (false, false) => format!("The tool `{}` answered:", result.tool_name),
    };
    let (shown, rest) = match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => (text.get(..at).unwrap_or(text), text.chars().count() - SHOWN_CHARS),
        None => (text, 0),
    };
    let fence = fence_for(shown);
    let more = if rest > 0 { format!("\n({rest} more characters are not shown.)") } else { String::new() };
    format!("{opening}\n\n{fence}\n{shown}\n{fence}{more}")
}

/// A code fence longer than any inside.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn guide(offered: &[&str], instance: &Instance) -> String {
    let usable = USAGES.iter().filter(|(name, _)| match *name {
        "run" | "list" => offered.contains(&"exec") || (*name == "list" && offered.contains(&"ls")),
        "sessions" => offered.contains(&"sessions_list"),
        "search memory" => offered.contains(&"memory_search"),
        other => offered.contains(&other),
    });
    let commands: Vec<String> = usable.map(|(_, usage)| format!("- `{usage}`")).collect();
    let can = if commands.is_empty() {
        "No tools are available here, so this is all I can say.".to_owned()
    } else {
        format!("What I can do is run the agent's real tools on plain commands:\n\n{}", commands.join("\n"))
    };
    format!(
        "I am the offline guide, not a language model: no model is connected yet, so I can't understand free text.\n\n{can}\n\n{}",
        instance.in_text(CONNECT)
    )
}

/// Instructions for connecting a model.
const CONNECT: &str = include_str!("offline/connect.md").trim_ascii_end();

/// A few words at a time; joined they are the text.
fn deltas(text: &str) -> impl Iterator<Item = String> + '_ {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let chunks: Vec<String> = words.chunks(WORDS_PER_DELTA).map(<[&str]>::concat).collect();
    chunks.into_iter()
}

fn envelope(content: Vec<Block>) -> AssistantMessage {
    AssistantMessage {
        content,
        api: API.to_owned(),
        provider: PROVIDER.to_owned(),
        model: MODEL.to_owned(),
        ..AssistantMessage::default()
    }
}

/// Four characters to a token, as everywhere in the product where nobody counts better. It costs nothing.
fn estimate(request: &ModelRequest, answer: &[Block]) -> Usage {
    let tokens = |chars: usize| u64::try_from(chars.div_ceil(4)).unwrap_or(u64::MAX);
    let said = |blocks: &[Block]| -> usize {
        blocks
            .iter()
            .map(|block| match block {
                Block::Text(text) => text.text.len(),
                Block::ToolCall(call) => call.name.len() + call.arguments.to_string().len(),
                Block::Thinking(_) | Block::Image(_) | Block::Other(_) => 0,
            })
            .sum()
    };
    let heard: usize = request
        .messages
        .iter()
        .map(|message| match &**message {
            Message::User(user) => user.content.to_text().len(),
            Message::Assistant(assistant) => said(&assistant.content),
            Message::ToolResult(result) => said(&result.content),
        })
        .sum();
    let (input, output) = (tokens(request.system.len() + heard), tokens(said(answer)));
    Usage { input, output, total_tokens: input + output, ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use openclaw_protocol::message::UserMessage;
    use serde_json::json;

    use super::*;
    use crate::request::ToolSpec;

    fn request(messages: Vec<Message>) -> ModelRequest {
        let tool = |name: &str| ToolSpec {
            name: name.to_owned().into(),
            description: "".into(),
            parameters: json!({"type": "object"}).into(),
        };
        let tools = ["read", "write", "edit", "exec"].map(tool).to_vec();
        ModelRequest {
            messages: messages.into_iter().map(Into::into).collect::<Vec<_>>().into(),
            tools: tools.into(),
            ..ModelRequest::default()
        }
    }

    fn user(text: &str) -> Message {
        Message::User(UserMessage::text(text, 1))
    }

    async fn run(messages: Vec<Message>) -> Vec<ModelEvent> {
        OfflineGuide::unpaced(1).stream(request(messages), CancellationToken::new()).collect().await
    }

    fn done(events: &[ModelEvent]) -> AssistantMessage {
        match events.last() {
            Some(ModelEvent::Done { message, failure: None }) => message.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn free_text_is_answered_with_the_guide_in_several_deltas() {
        let events = run(vec![user("how are you?")]).await;
        let message = done(&events);
        let streamed: String = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::TextDelta { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(message.text(), streamed);
        assert!(events.len() > 10);
        for part in [
            "not a language model",
            "read <file>",
            "ANTHROPIC_API_KEY",
            "restart the gateway",
            "models auth paste-token",
            "ollama",
        ] {
            assert!(message.text().contains(part), "{part}");
        }
        assert!(!message.text().contains("search memory"), "only what is on offer is explained");
        // Parts of the file that are not named stay as they are.
        let set = message.text().split("models.providers.ollama '").nth(1).unwrap().to_owned();
        let value: serde_json::Value = serde_json::from_str(set.split('\'').next().unwrap()).unwrap();
        assert_eq!(value["models"][0]["id"], "llama3.2");
        assert!(message.text().contains("`openclaw models set ollama/llama3.2`"));
        assert_eq!(message.stop_reason, StopReason::Stop);
    }

    #[tokio::test]
    async fn the_guide_means_the_instance_that_answers() {
        let vars = [("HOME", "/nowhere"), ("OPENCLAW_PROFILE", "job"), ("OPENCLAW_STATE_DIR", "/x")];
        let instance = Instance::of(&openclaw_config::Environment::new(vars, "/"));
        let guide = OfflineGuide { instance, ..OfflineGuide::unpaced(1) };
        let events: Vec<_> =
            guide.stream(request(vec![user("hello")]), CancellationToken::new()).collect().await;
        let text = done(&events).text();
        assert_eq!(text.matches("`openclaw --profile job ").count(), 3, "{text}");
        assert!(!text.contains("`openclaw models") && !text.contains("~/.openclaw"), "{text}");
        assert!(text.contains("`/x/.env`"), "{text}");
    }

    #[tokio::test]
    async fn a_command_becomes_a_tool_call_and_its_result_is_reported() {
        let first = done(&run(vec![user("read NOTES.md")]).await);
        let calls: Vec<_> =
            first.tool_calls().map(|call| (call.name.clone(), call.arguments.clone())).collect();
        assert_eq!(calls, [("read".to_owned(), json!({"path": "NOTES.md"}))]);
        assert_eq!(first.stop_reason, StopReason::ToolUse);
        let result = ToolResultMessage {
            tool_call_id: "call_offline_1".to_owned(),
            tool_name: "read".to_owned(),
            content: vec![Block::text("some ``` text")],
            ..ToolResultMessage::default()
        };
        let second = done(
            &run(vec![user("read NOTES.md"), Message::Assistant(first), Message::ToolResult(result)]).await,
        );
        assert_eq!(second.text(), "The tool `read` answered:\n\n````\nsome ``` text\n````");
    }

    #[tokio::test]
    async fn failures_long_results_and_missing_tools_are_said_plainly() {
        let result = |text: &str, is_error| {
            Message::ToolResult(ToolResultMessage {
                tool_name: "exec".to_owned(),
                content: vec![Block::text(text)],
                is_error,
                ..ToolResultMessage::default()
            })
        };
        let called = || {
            let call = ToolCall { name: "exec".to_owned(), arguments: json!({}), ..ToolCall::default() };
            Message::Assistant(envelope(vec![Block::ToolCall(call)]))
        };
        let failed = done(&run(vec![user("run x"), called(), result("boom", true)]).await);
        assert_eq!(failed.text(), "The tool `exec` failed:\n\n```\nboom\n```");
        let long = done(&run(vec![user("run x"), called(), result(&"ü".repeat(2_007), false)]).await);
        assert!(long.text().ends_with("(7 more characters are not shown.)"));
        let quiet = done(&run(vec![user("run x"), called(), result("", false)]).await);
        assert_eq!(quiet.text(), "The tool `exec` is done; it said nothing.");
        let none = done(&run(vec![user("sessions")]).await);
        assert_eq!(none.text(), "The tool `sessions_list` is not available here, so I can't do that.");
    }

    #[tokio::test]
    async fn cancelling_ends_the_answer_with_what_was_said() {
        let cancel = CancellationToken::new();
        let mut stream = OfflineGuide::unpaced(1).stream(request(vec![user("hi")]), cancel.clone());
        assert_eq!(stream.next().await, Some(ModelEvent::Start));
        assert!(matches!(stream.next().await, Some(ModelEvent::TextDelta { .. })));
        cancel.cancel();
        let Some(ModelEvent::Done { message, failure: None }) = stream.next().await else { panic!() };
        assert_eq!(
            (message.stop_reason, message.text().as_str()),
            (StopReason::Aborted, "I am the offline ")
        );
        assert_eq!(stream.next().await, None);
    }
}
