//! Scripted answers of a model.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Answer made of steps in order. Without steps it is an empty answer that ends well.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) head: AnswerHead,
    pub(super) steps: Vec<Step>,
    pub(super) usage: ScriptedUsage,
    pub(super) stop: Option<ModelStop>,
}

/// Beginning of an answer.
#[derive(Debug, Clone)]
pub(super) enum AnswerHead {
    /// Status 200 and a stream, or a document where the request wants none.
    Stream,
    /// Status 200 and a document, whatever the request wants.
    Document,
    /// A status with a body of its own.
    Plain { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// The request is read and nothing ever comes back.
    Never,
}

/// Step of an answer.
#[derive(Debug, Clone)]
pub enum Step {
    /// A piece of text.
    Text(String),
    /// A piece of reasoning.
    Thinking(String),
    /// The proof that ends a block of reasoning.
    Signature(String),
    /// Whole tool calls. Several run side by side: their arguments are sent in turns where the protocol allows it.
    ToolCalls(Vec<ScriptedCall>),
    /// The beginning of a tool call, its arguments half sent.
    HalfToolCall(ScriptedCall),
    /// Time passes.
    Delay(Duration),
    /// Waits until the test opens the gate.
    Wait(Gate),
    /// Bytes that are put into the body as they are.
    Raw(Vec<u8>),
    /// The connection is cut.
    Cut,
    /// The connection stays open and nothing more comes.
    Hang,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedCall {
    /// The model's id of it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as text, so that they may be broken.
    pub arguments: String,
}

/// Stop reason that the model reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelStop {
    /// The answer is complete.
    End,
    /// The answer hit the output limit.
    Length,
    /// The model wants tools run.
    Tools,
    /// The model refuses to answer.
    Refusal,
}

/// Tokens the model says it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptedUsage {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Completion tokens.
    pub output: u64,
    /// Prompt tokens from the cache.
    pub cache_read: u64,
    /// Prompt tokens into the cache; only Anthropic says so.
    pub cache_write: u64,
}

impl Default for ScriptedUsage {
    /// Usage that the recorded reference stub reported.
    fn default() -> Self {
        Self { input: 100, output: 7, cache_read: 0, cache_write: 0 }
    }
}

/// A point at which an answer waits for the test.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets everyone through, now and later.
    pub fn open(&self) {
        self.0.close();
    }

    pub(crate) async fn pass(&self) {
        // The error is the open gate: no permits are ever added.
        let _ = self.0.acquire().await;
    }
}

impl ScriptedCall {
    /// A call with arguments that are JSON.
    pub fn new(id: &str, name: &str, arguments: &Value) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_string() }
    }
}

impl Reply {
    /// A streamed answer of these steps.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            head: AnswerHead::Stream,
            steps: steps.into_iter().collect(),
            usage: ScriptedUsage::default(),
            stop: None,
        }
    }

    /// Creates an answer of one piece of text.
    pub fn text(text: &str) -> Self {
        Self::deltas([text])
    }

    /// Text in these pieces.
    pub fn deltas<'t>(deltas: impl IntoIterator<Item = &'t str>) -> Self {
        Self::steps(deltas.into_iter().map(|delta| Step::Text(delta.to_owned())))
    }

    /// Text in these pieces, with a pause after each.
    pub fn paced<'t>(deltas: impl IntoIterator<Item = &'t str>, pause: Duration) -> Self {
        Self::steps(deltas.into_iter().flat_map(|delta| [Step::Text(delta.to_owned()), Step::Delay(pause)]))
    }

    /// Creates an answer of one tool call.
    pub fn tool(id: &str, name: &str, arguments: &Value) -> Self {
        Self::tools([ScriptedCall::new(id, name, arguments)])
    }

    /// Tool calls side by side.
    pub fn tools(calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        Self::steps([Step::ToolCalls(calls.into_iter().collect())])
    }

    /// An error answer with a JSON body.
    pub fn error(status: u16, body: &Value) -> Self {
        Self::plain(status, "application/json", body.to_string())
    }

    /// An error as Anthropic words it.
    pub fn anthropic_error(status: u16, kind: &str, message: &str) -> Self {
        Self::error(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
    }

    /// An error as OpenAI words it.
    pub fn openai_error(status: u16, kind: &str, message: &str) -> Self {
        Self::error(
            status,
            &json!({"error": {"message": message, "type": kind, "param": null, "code": null}}),
        )
    }

    /// Any status, content type and body.
    pub fn plain(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { head: AnswerHead::Plain { status, headers, body: body.into() }, ..Self::steps([]) }
    }

    /// A web page where an answer was expected.
    pub fn html(status: u16, title: &str) -> Self {
        let page = format!("<!DOCTYPE html>\n<html><head><title>{title}</title></head><body>x</body></html>");
        Self::plain(status, "text/html", page)
    }

    /// Creates an answer that never comes.
    pub fn never() -> Self {
        Self { head: AnswerHead::Never, ..Self::steps([]) }
    }

    /// Adds a header to an answer made of a status and a body.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let AnswerHead::Plain { headers, .. } = &mut self.head {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Puts a step first.
    #[must_use]
    pub fn after(mut self, step: Step) -> Self {
        self.steps.insert(0, step);
        self
    }

    /// Reports these tokens.
    #[must_use]
    pub fn usage(mut self, usage: ScriptedUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Reports this reason to stop instead of the one that fits the steps.
    #[must_use]
    pub fn stopping(mut self, stop: ModelStop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Answers with a whole document even when a stream was asked for.
    #[must_use]
    pub fn unstreamed(mut self) -> Self {
        self.head = AnswerHead::Document;
        self
    }

    /// Stop reason of this answer.
    pub(super) fn stop_reason(&self) -> ModelStop {
        let calls = self.steps.iter().any(|step| matches!(step, Step::ToolCalls(_) | Step::HalfToolCall(_)));
        self.stop.unwrap_or(if calls { ModelStop::Tools } else { ModelStop::End })
    }
}
