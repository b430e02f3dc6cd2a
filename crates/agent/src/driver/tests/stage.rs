//! A stage for runs: scripted models, a transcript in memory, a few tools.

use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use openclaw_models::credentials::AgentFlag;
use openclaw_models::history::{self, HistoryRules, IdRule};
use openclaw_models::{
    FailureKind, KeptRequest, Model, ModelEvent, ModelFacts, ModelFailure, ModelRequest, ModelStream,
};
use openclaw_protocol::SessionId;
use openclaw_protocol::message::{
    AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use openclaw_sessions::transcript::{Body, Compaction, Entry, EntryId, StoredMessage, View};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::images::picture;
use crate::compaction::CompactionSettings;
use crate::error_surface::ErrorSurface;
use crate::event::{RunEnd, RunEvent, TextChange};
use crate::hooks::RunHooks;
use crate::host::Host;
use crate::pruning::Pruned;
use crate::reasoning_visibility::ReasoningVisibility;
use crate::redaction::Redactor;
use crate::reply::Outcome;
use crate::run::{Limits, RunParams};
use crate::run_model::RunModel;
use crate::sent_images::SentImages;
use crate::tool::{Catalogue, Effect, Tool, ToolContext, ToolError, ToolFacts, ToolFuture, ToolOutput};
use crate::toolbox::Toolbox;
use crate::transcript::{QueuedMessage, Steering, Transcript, TranscriptError, Written};

/// Scripted answer of a model to one call.
#[derive(Clone)]
pub(super) struct Reply {
    text: String,
    calls: Vec<ToolCall>,
    end: End,
}

#[derive(Clone)]
enum End {
    Normal,
    Fail(FailureKind, String),
    /// Waits for cancellation, then ends as it should.
    Hang,
    /// Waits for ever.
    Deaf,
    /// Ends without a last event.
    Cut,
    /// Fails after the beginning of a tool call; the unfinished call is not in the message.
    CutInCall,
}

impl Reply {
    fn new(text: &str, calls: Vec<ToolCall>, end: End) -> Self {
        Self { text: text.into(), calls, end }
    }
    pub(super) fn say(text: &str) -> Self {
        Self::new(text, vec![], End::Normal)
    }
    pub(super) fn calls(text: &str, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::new(text, calls.into_iter().collect(), End::Normal)
    }
    pub(super) fn fail(kind: FailureKind, message: &str) -> Self {
        Self::new("", vec![], End::Fail(kind, message.into()))
    }
    pub(super) fn hang(text: &str) -> Self {
        Self::new(text, vec![], End::Hang)
    }
    pub(super) fn deaf(text: &str) -> Self {
        Self::new(text, vec![], End::Deaf)
    }
    pub(super) fn cut(text: &str) -> Self {
        Self::new(text, vec![], End::Cut)
    }
    pub(super) fn cut_in_call() -> Self {
        Self::new("", vec![], End::CutInCall)
    }

    fn message(&self, shown: &str, stop_reason: StopReason) -> AssistantMessage {
        AssistantMessage {
            stop_reason,
            ..assistant(shown, if stop_reason == StopReason::Aborted { &[] } else { &self.calls })
        }
    }

    fn done(&self) -> ModelEvent {
        let (message, failure) = match &self.end {
            End::CutInCall => {
                let end = End::Fail(FailureKind::Transient, "terminated".into());
                return Self { end, ..self.clone() }.done();
            }
            End::Fail(kind, text) => {
                let failure =
                    ModelFailure { kind: *kind, status: None, retry_after: None, message: text.clone() };
                let message = AssistantMessage {
                    error_message: Some(text.clone()),
                    usage: Usage::default(),
                    ..self.message(&self.text, StopReason::Error)
                };
                (message, Some(failure))
            }
            _ if self.calls.is_empty() => (self.message(&self.text, StopReason::Stop), None),
            _ => (self.message(&self.text, StopReason::ToolUse), None),
        };
        ModelEvent::Done { message, failure }
    }
}

pub(super) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments, ..ToolCall::default() }
}

pub(super) fn assistant(text: &str, calls: &[ToolCall]) -> AssistantMessage {
    let mut content = if text.is_empty() { vec![] } else { vec![Block::text(text)] };
    content.extend(calls.iter().cloned().map(Block::ToolCall));
    let usage = Usage { input: 100, output: 7, total_tokens: 107, ..Usage::default() };
    AssistantMessage { content, usage, ..AssistantMessage::default() }
}

pub(super) fn result(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: "echo".into(),
        content: vec![Block::text(text)],
        ..ToolResultMessage::default()
    })
}

/// Cancels at the n-th thing that happens, whatever it is.
#[derive(Clone, Default)]
pub(super) struct Trip {
    pub(super) at: Option<usize>,
    pub(super) count: Arc<AtomicUsize>,
    pub(super) cancel: CancellationToken,
}

impl Trip {
    fn tick(&self) {
        if Some(self.count.fetch_add(1, Ordering::SeqCst)) == self.at {
            self.cancel.cancel();
        }
    }
}

/// Tokens the models' windows hold.
const WINDOW: u64 = 200_000;

type Answers = Arc<dyn Fn(&ModelRequest) -> Reply + Send + Sync>;

struct Scripted {
    id: String,
    window: u64,
    answers: Answers,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    trip: Trip,
}

impl Model for Scripted {
    fn facts(&self) -> ModelFacts<'_> {
        ModelFacts {
            provider: "fake",
            id: &self.id,
            api: "openai-completions",
            context_window: self.window,
            max_tokens: 32_000,
            reasons: false,
        }
    }

    fn stream(&self, mut request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let rules = HistoryRules::of(self.provider(), self.api(), self.id(), IdRule::Completions);
        request.messages = history::prepare(request.messages.to_vec(), &rules).into();
        let reply = (self.answers)(&request);
        self.requests.lock().unwrap().push(request);
        let cut = reply.text.char_indices().nth(5).map_or(reply.text.len(), |(at, _)| at);
        let (head, tail) = reply.text.split_at(cut);
        let mut events = VecDeque::from([ModelEvent::Start]);
        events.extend(
            [head, tail]
                .iter()
                .filter(|d| !d.is_empty())
                .map(|d| ModelEvent::TextDelta { block: 0, delta: (*d).to_owned() }),
        );
        if matches!(reply.end, End::CutInCall) {
            events.push_back(ModelEvent::ToolCallStart { block: 0, id: "c".into(), name: "echo".into() });
        }
        let trip = self.trip.clone();
        Box::pin(stream::unfold(
            (reply, events, String::new(), false),
            move |(reply, mut events, mut shown, ended)| {
                let (cancel, trip) = (cancel.clone(), trip.clone());
                async move {
                    trip.tick();
                    if ended {
                        return None;
                    }
                    let deaf = matches!(reply.end, End::Deaf);
                    if cancel.is_cancelled() && !deaf {
                        let message = reply.message(&shown, StopReason::Aborted);
                        return Some((
                            ModelEvent::Done { message, failure: None },
                            (reply, events, shown, true),
                        ));
                    }
                    if let Some(event) = events.pop_front() {
                        if let ModelEvent::TextDelta { delta, .. } = &event {
                            shown.push_str(delta);
                        }
                        return Some((event, (reply, events, shown, false)));
                    }
                    match reply.end {
                        End::Deaf => std::future::pending().await,
                        End::Cut => None,
                        End::Hang => {
                            cancel.cancelled().await;
                            let message = reply.message(&shown, StopReason::Aborted);
                            Some((ModelEvent::Done { message, failure: None }, (reply, events, shown, true)))
                        }
                        End::Normal | End::Fail(..) | End::CutInCall => {
                            Some((reply.done(), (reply, events, shown, true)))
                        }
                    }
                }
            },
        ))
    }
}

#[derive(Default)]
struct Memory {
    entries: Arc<Vec<Arc<Message>>>,
    view: View,
    written: usize,
    ids: Vec<Option<String>>,
    breaks_after: Option<usize>,
    trip: Trip,
    /// Behind the message that was said last, not steered in.
    own_from: usize,
    /// The length at which it was made durable.
    secured_at: Vec<usize>,
}

impl Transcript for Memory {
    fn own_from(&self) -> usize {
        self.own_from.min(self.entries.len())
    }

    fn context(&self) -> &Arc<Vec<Arc<Message>>> {
        &self.entries
    }

    fn append<'a>(
        &'a mut self,
        message: &'a Message,
        id: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<(), TranscriptError>> + Send + 'a>> {
        Box::pin(async move {
            if self.breaks_after.is_some_and(|n| self.entries.len() >= n) {
                let source = std::io::Error::other("disk full");
                return Err(TranscriptError { path: "/t.jsonl".into(), source });
            }
            self.remember(Arc::new(message.clone()));
            self.ids.push(id.map(str::to_owned));
            self.trip.tick();
            Ok(())
        })
    }

    fn secure(&mut self) -> Written<'_, ()> {
        self.secured_at.push(self.entries.len());
        Box::pin(async { Ok(()) })
    }

    fn view(&mut self) -> Written<'_, View> {
        let view = self.view.clone();
        Box::pin(async move { Ok(view) })
    }

    fn compact(&mut self, compaction: Compaction) -> Written<'_, ()> {
        Box::pin(async move {
            let View { kept, later, .. } = std::mem::take(&mut self.view);
            let is_before = |entry: &Arc<Entry>| entry.id.as_str() != compaction.first_kept_entry_id;
            let kept = kept.into_iter().chain(later).skip_while(is_before).collect();
            let at = openclaw_sessions::time::iso(openclaw_sessions::time::now_ms());
            let compaction = Some(entry("C".to_owned(), at, Body::Compaction(compaction)));
            self.view = View { compaction, kept, later: Vec::new() };
            self.entries = Arc::new(self.view.messages());
            self.trip.tick();
            Ok(())
        })
    }
}

impl Memory {
    fn remember(&mut self, message: Arc<Message>) {
        let id = format!("e{}", self.written);
        self.written += 1;
        let body = Body::Message(StoredMessage::Known(Arc::clone(&message)));
        self.view.later.push(entry(id, String::new(), body));
        Arc::make_mut(&mut self.entries).push(message);
    }
}

fn entry(id: String, timestamp: String, body: Body) -> Arc<Entry> {
    Arc::new(Entry { id: EntryId::new(id), parent_id: None, timestamp, body, extra: serde_json::Map::new() })
}

#[derive(Default)]
struct Queue {
    steered: Mutex<VecDeque<UserMessage>>,
    trip: Trip,
}

impl Steering for Queue {
    fn poll(&self) -> Option<QueuedMessage> {
        self.trip.tick();
        let message = self.steered.lock().unwrap().pop_front()?;
        let entry_id = Some(format!("entry-{}", message.content.to_text()));
        Some(QueuedMessage { message, entry_id })
    }
}

/// The stage's tools ask nothing.
struct NoHost;

impl Host for NoHost {}

struct StageTool {
    facts: ToolFacts,
    queue: Arc<Queue>,
    trip: Trip,
}

fn toolbox(queue: &Arc<Queue>, trip: &Trip) -> Toolbox {
    static NO_NAMES: Catalogue = Catalogue::empty();
    let tool = |name| -> Box<dyn Tool> {
        let repeatable = name == "once";
        let effect = if name == "echo" { Effect::Looks } else { Effect::Acts };
        let facts = ToolFacts { label_arguments: &["text"], repeatable, effect, ..ToolFacts::named(name) };
        Box::new(StageTool { facts, queue: Arc::clone(queue), trip: trip.clone() })
    };
    Toolbox::new(
        ["echo", "boom", "slow", "stuck", "steer", "flood", "camera", "once"].map(tool).into(),
        &NO_NAMES,
    )
}

impl Tool for StageTool {
    fn facts(&self) -> &ToolFacts {
        &self.facts
    }

    fn schema(&self) -> openclaw_models::ToolSchema {
        let schema = match self.facts.name {
            "echo" => {
                json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}})
            }
            _ => json!({"type": "object", "properties": {}}),
        };
        schema.into()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            self.trip.tick();
            match self.facts.name {
                "echo" => Ok(ToolOutput::text(args["text"].as_str().unwrap())),
                "once" => Ok(ToolOutput::text(format!("{} made again", context.call_id))),
                "boom" => Err(ToolError::Failed("disk full".into())),
                "slow" => {
                    context.cancel.cancelled().await;
                    Err(ToolError::Aborted)
                }
                "stuck" => std::future::pending().await,
                "camera" => Ok(ToolOutput { content: vec![picture(4000)], ..ToolOutput::default() }),
                "flood" => Ok(ToolOutput::text("x".repeat(100 << 20))),
                "steer" => {
                    let _ = context.updates.try_send(json!({"content": [{"type": "text", "text": "half"}]}));
                    self.queue
                        .steered
                        .lock()
                        .unwrap()
                        .push_back(UserMessage::text(args["say"].as_str().unwrap(), 2));
                    Ok(ToolOutput::text("steered"))
                }
                other => Err(ToolError::Unknown(other.into())),
            }
        })
    }
}

pub(super) struct Stage {
    models: Vec<Scripted>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    memory: Memory,
    queue: Arc<Queue>,
    trip: Trip,
    events: Vec<RunEvent>,
    deaf: bool,
    pub(super) deaths: u32,
    pub(super) limits: Limits,
    pub(super) compaction: CompactionSettings,
    pub(super) fixed_tokens: u64,
    pub(super) models_repeat: bool,
    pub(super) hooks: RunHooks,
    pub(super) images: SentImages,
}

impl Stage {
    pub(super) fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(scripted(script), Trip::default())
    }

    /// A model that answers by what it is shown.
    pub(super) fn answering(
        answers: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
        trip: Trip,
    ) -> Self {
        Self::with(Arc::new(answers), trip)
    }

    fn with(answers: Answers, trip: Trip) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let model = Scripted {
            id: "m0".into(),
            window: WINDOW,
            answers,
            requests: Arc::clone(&requests),
            trip: trip.clone(),
        };
        Self {
            models: vec![model],
            requests,
            memory: Memory { trip: trip.clone(), ..Memory::default() },
            queue: Arc::new(Queue { trip: trip.clone(), ..Queue::default() }),
            trip,
            events: Vec::new(),
            deaf: false,
            deaths: 0,
            limits: Limits { timeout: Some(Duration::from_secs(600)), ..Limits::default() },
            compaction: CompactionSettings::default(),
            fixed_tokens: 0,
            models_repeat: false,
            hooks: RunHooks::none(),
            images: SentImages::default(),
        }
    }

    pub(super) fn fallback(&mut self, script: impl IntoIterator<Item = Reply>) {
        let id = format!("m{}", self.models.len());
        self.models.push(Scripted {
            id,
            window: WINDOW,
            answers: scripted(script),
            requests: Arc::clone(&self.requests),
            trip: self.trip.clone(),
        });
    }

    pub(super) fn steer(&self, text: &str) {
        self.steer_with(UserMessage::text(text, 2));
    }
    pub(super) fn steer_with(&self, message: UserMessage) {
        self.queue.steered.lock().unwrap().push_back(message);
    }
    pub(super) fn cancel(&self) -> CancellationToken {
        self.trip.cancel.clone()
    }
    pub(super) fn break_transcript_after(&mut self, entries: usize) {
        self.memory.breaks_after = Some(entries);
    }
    pub(super) fn window(&mut self, tokens: u64) {
        self.models.iter_mut().for_each(|model| model.window = tokens);
    }
    pub(super) fn deaf_listener(&mut self) {
        self.deaf = true;
    }
    pub(super) fn set_transcript<M: Into<Arc<Message>>>(&mut self, messages: Vec<M>) {
        self.memory =
            Memory { breaks_after: self.memory.breaks_after, trip: self.trip.clone(), ..Memory::default() };
        messages.into_iter().for_each(|message| self.memory.remember(message.into()));
        let said = self.memory.entries.iter().rposition(|message| matches!(**message, Message::User(_)));
        self.memory.own_from = said.map_or(0, |at| at + 1);
    }

    pub(super) async fn run(&mut self, text: &str) -> Outcome {
        self.say(text);
        self.play(None).await
    }
    fn say(&mut self, text: &str) {
        self.memory.remember(Message::User(UserMessage::text(text, 1)).into());
        self.memory.own_from = self.memory.entries.len();
    }
    /// The run's own message stands before this one.
    pub(super) fn begins_behind(&mut self, at: usize) {
        self.memory.own_from = at;
    }
    pub(super) async fn resume(&mut self) -> Outcome {
        self.play(None).await
    }
    /// Runs and aborts at the first event whose line begins so.
    pub(super) async fn run_and_abort_on(&mut self, event: &str) -> Outcome {
        self.say("go");
        self.play(Some(event)).await
    }

    async fn play(&mut self, abort_on: Option<&str>) -> Outcome {
        let (events, mut received) = mpsc::channel(4);
        let models: Vec<RunModel<'_>> = self
            .models
            .iter()
            .map(|model| RunModel { repeats_itself: self.models_repeat, ..RunModel::new(model) })
            .collect();
        let tools = toolbox(&self.queue, &self.trip);
        let cancel = self.trip.cancel.clone();
        if self.deaf {
            received.close();
        }
        let params = RunParams {
            passed_over: &[],
            agent: AgentFlag::default(),
            error_surface: ErrorSurface::default(),
            session_id: SessionId::new("s1"),
            models: &models,
            system_prompt: &"system".into(),
            tools: &tools,
            host: Arc::new(NoHost),
            redactor: &Redactor::default(),
            hooks: self.hooks.clone(),
            transcript: &mut self.memory,
            deaths: self.deaths,
            kept: KeptRequest::default(),
            steering: self.queue.as_ref(),
            reasoning: ReasoningVisibility::Off,
            limits: self.limits,
            compaction: self.compaction,
            fixed_tokens: self.fixed_tokens,
            pruning: None,
            pruned: &mut Pruned::default(),
            images: &mut self.images,
            history_limit: None,
            cancel: cancel.clone(),
            workspace: PathBuf::from("/ws"),
            events,
        };
        let listen = async {
            let mut seen = Vec::new();
            while let Some(event) = received.recv().await {
                if abort_on.is_some_and(|start| line(&event).starts_with(start)) {
                    cancel.cancel();
                }
                seen.push(event);
            }
            seen
        };
        let (outcome, seen) = tokio::join!(crate::run(params), listen);
        self.events = seen;
        outcome
    }

    /// The number of messages there were each time what the model said was made durable.
    pub(super) fn secured_at(&self) -> &[usize] {
        &self.memory.secured_at
    }

    pub(super) fn messages(&self) -> Vec<Arc<Message>> {
        self.memory.entries.to_vec()
    }
    pub(super) fn entry_ids(&self) -> Vec<Option<String>> {
        self.memory.ids.clone()
    }
    pub(super) fn transcript(&self) -> Vec<String> {
        outline(&self.messages())
    }
    pub(super) fn requests(&self) -> Vec<Vec<String>> {
        self.sent().iter().map(|request| outline(&request.messages)).collect()
    }
    pub(super) fn sent(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
    pub(super) fn raw_events(&self) -> &[RunEvent] {
        &self.events
    }
    pub(super) fn events(&self) -> Vec<String> {
        // The number of requests is in `requests`.
        let told =
            |event: &&RunEvent| !matches!(event, RunEvent::Asking | RunEvent::Steered | RunEvent::TextEnds);
        self.events.iter().filter(told).map(line).collect()
    }
}

fn scripted(script: impl IntoIterator<Item = Reply>) -> Answers {
    let script: Mutex<VecDeque<Reply>> = Mutex::new(script.into_iter().collect());
    Arc::new(move |_: &ModelRequest| script.lock().unwrap().pop_front().expect("the script goes on"))
}

/// Formats an event as one line.
fn line(event: &RunEvent) -> String {
    match event {
        RunEvent::Started { .. } => "start".into(),
        RunEvent::Asking => "asking".into(),
        RunEvent::Steered => "steered".into(),
        RunEvent::Retry(notice) => format!("retry {}", notice.text()),
        RunEvent::TextEnds => "text ends".into(),
        RunEvent::Assistant(TextChange::Begins(text)) => format!("assistant {text}"),
        RunEvent::Assistant(TextChange::Grows(delta)) => format!("assistant +{delta}"),
        RunEvent::Assistant(TextChange::Corrected(text)) => format!("assistant ={text}"),
        RunEvent::Quotes(quote) => format!("quotes {:?}", quote.reply_to),
        RunEvent::Attaches(file) => format!("attaches {}", file.reference),
        RunEvent::Thinking(change) => format!("thinking {change:?}"),
        RunEvent::Thought(text) => format!("thought {text}"),
        RunEvent::ToolStart { name, call_id, .. } => format!("tool start {name} {call_id}"),
        RunEvent::ToolUpdate { name, call_id, partial } => format!("tool update {name} {call_id} {partial}"),
        RunEvent::ToolResult { name, call_id, meta, is_error, result } => {
            let meta = meta.as_ref().map(|meta| format!("[{meta}] ")).unwrap_or_default();
            format!(
                "tool result {name} {call_id} {is_error} {meta}{}",
                result["content"][0]["text"].as_str().unwrap_or_default()
            )
        }
        RunEvent::CompactionStart => "compaction".into(),
        RunEvent::CompactionEnd { will_retry } => format!("compaction end {will_retry}"),
        RunEvent::Ended { end, .. } => match end {
            RunEnd::Completed => "end".into(),
            RunEnd::Aborted => "aborted".into(),
            RunEnd::TimedOut => "timed out".into(),
            RunEnd::Failed(text) => format!("error {text}"),
        },
    }
}

/// Formats each message as one line: `~` marks an aborted answer, `!` an error.
pub(super) fn outline(messages: &[Arc<Message>]) -> Vec<String> {
    let text = |blocks: &[Block]| {
        blocks
            .iter()
            .filter_map(|b| match b {
                Block::Text(t) => Some(t.text.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    messages
        .iter()
        .map(|message| match &**message {
            Message::User(user) => format!("U {}", user.content.to_text()),
            Message::Assistant(a) => {
                let calls: String = a.tool_calls().map(|call| format!("({})", call.id)).collect();
                let mark = match a.stop_reason {
                    StopReason::Aborted => "~".to_owned(),
                    StopReason::Error => format!("!{}", a.error_message.clone().unwrap_or_default()),
                    _ => String::new(),
                };
                let parts = [
                    mark + if a.stop_reason == StopReason::Error && !a.content.is_empty() { " " } else { "" }
                        + &a.text(),
                    calls,
                ];
                let joined = if parts[1].is_empty() { parts[0].clone() } else { parts.join(" ") };
                format!("A {joined}")
            }
            Message::ToolResult(r) => format!("R{} {}", if r.is_error { "!" } else { "" }, text(&r.content)),
        })
        .collect()
}
