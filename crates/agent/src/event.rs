//! Events that a run emits while it works (spec `gateway-protocol.md` §7.3). The caller numbers and
//! routes the events.

use serde_json::Value;

use crate::reply::ReplyTo;
pub use crate::reply::RunEnd;
pub use crate::retry_notice::{NextTry, RetryNotice};

/// Event of a run without its envelope: the caller adds `runId`, `seq`, `ts` and `sessionKey`.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// `lifecycle {phase:"start", startedAt}`: once a run, before anything else.
    Started {
        /// Unix milliseconds.
        started_at: i64,
    },
    /// The request is built and the model is asked. Clients do not hear it.
    Asking,
    /// `lifecycle {phase:"retry", …}` or `{phase:"fallback", …}`: a model call failed and the run goes on. Behind a wait the
    /// same model is asked again, or another one is asked.
    Retry(Box<RetryNotice>),
    /// A message was steered in: what is said from here on answers it. Clients do not hear it.
    Steered,
    /// `assistant {text, delta}`: the cleaned text of the current assistant message grew.
    Assistant(TextChange),
    /// A text of the current assistant message is at its end: thoughts, a tool's call or another text follow in it. Clients do not hear it.
    TextEnds,
    /// Tells the message that the following text quotes, if a reply tag in the text says so.
    /// Clients do not hear it.
    Quotes(Quote),
    /// A file that the answer brings, before the text that it came with. Clients do not hear it.
    Attaches(Attachment),
    /// The model's thinking grew; emitted only where thinking is shown live. Clients do not hear
    /// it.
    Thinking(TextChange),
    /// All that the model thought before a message, in the words for people; only where it is a message of its own. Clients do
    /// not hear it.
    Thought(String),
    /// `tool {phase:"start", name, toolCallId, args}`
    ToolStart {
        /// The tool's name.
        name: String,
        /// The call's id.
        call_id: String,
        /// The arguments.
        args: Value,
    },
    /// `tool {phase:"update", name, toolCallId, partialResult}`
    ToolUpdate {
        /// The tool's name.
        name: String,
        /// The call's id.
        call_id: String,
        /// Partial result so far.
        partial: Value,
    },
    /// `tool {phase:"result", name, toolCallId, meta?, isError, result}`
    ToolResult {
        /// The tool's name.
        name: String,
        /// The call's id.
        call_id: String,
        /// Short label for people, such as the file's path.
        meta: Option<String>,
        /// True if the tool call failed.
        is_error: bool,
        /// `{content, details?}`, texts cut to 8000 characters, image data removed.
        result: Value,
    },
    /// `compaction {phase:"start"}`
    CompactionStart,
    /// `compaction {phase:"end", willRetry}`
    CompactionEnd {
        /// True if the model is called again after the compaction.
        will_retry: bool,
    },
    /// `lifecycle {phase:"end", startedAt, endedAt, aborted?}` or, with `error`, `{phase:"error", error, …}`: the last
    /// event, exactly once a run.
    Ended {
        /// Unix milliseconds.
        started_at: i64,
        /// Unix milliseconds.
        ended_at: i64,
        /// Outcome of the run.
        end: RunEnd,
    },
}

/// A reply tag in an answer that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// Message that is quoted.
    pub reply_to: ReplyTo,
    /// True if an earlier part of the message was already emitted.
    pub is_under_way: bool,
    /// Bytes of the change that comes next which stand before the tag.
    pub after: usize,
}

/// A file in an answer that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Path or address of the file.
    pub reference: String,
    /// True if an earlier part of the message was already emitted.
    pub is_under_way: bool,
    /// Bytes of the change that comes next which stand before it.
    pub after: usize,
}

/// Change of the text of the current assistant message. Told as a change, so that a long text is
/// not copied for each word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// The text of a message begins with this.
    Begins(String),
    /// Text that is appended to the text so far.
    Grows(String),
    /// Text that replaces everything emitted before; none of it counts as new.
    Corrected(String),
}
