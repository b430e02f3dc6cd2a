//! What a run tells the world while it works (spec `gateway-protocol.md` §7.3). The caller numbers and routes the events.

use serde_json::Value;

use crate::reply::ReplyTo;

/// One event of a run, without envelope: `runId`, `seq`, `ts` and `sessionKey` are the caller's.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// `lifecycle {phase:"start", startedAt}`: once a run, before anything else.
    Started {
        /// Unix milliseconds.
        started_at: i64,
    },
    /// Nothing that clients hear: the request is made, and the model is asked.
    Asking,
    /// A message was steered in: what is said from here on answers it. Clients do not hear it.
    Steered,
    /// `assistant {text, delta}`: the cleaned text of the current assistant message grew.
    Assistant(TextChange),
    /// A text of the current assistant message is at its end: thoughts, a tool's call or another text follow in it. Clients do not hear it.
    TextEnds,
    /// What the text that comes next quotes, where a reply tag in it says so. Clients do not hear it.
    Quotes(Quote),
    /// A file that the answer brings, before the text that it came with. Clients do not hear it.
    Attaches(Attachment),
    /// What the model thinks grew; only where it is shown while it is thought. Clients do not hear it.
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
        /// What there is so far.
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
        /// Whether it failed.
        is_error: bool,
        /// `{content, details?}`, texts cut to 8000 characters, image data removed.
        result: Value,
    },
    /// `compaction {phase:"start"}`
    CompactionStart,
    /// `compaction {phase:"end", willRetry}`
    CompactionEnd {
        /// Whether the model is called again.
        will_retry: bool,
    },
    /// `lifecycle {phase:"end", startedAt, endedAt, aborted?}` or, with `error`, `{phase:"error", error, …}`: the last
    /// event, exactly once a run.
    Ended {
        /// Unix milliseconds.
        started_at: i64,
        /// Unix milliseconds.
        ended_at: i64,
        /// How it ended.
        end: RunEnd,
    },
}

/// A reply tag in an answer that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// What is quoted.
    pub reply_to: ReplyTo,
    /// Whether some of the message was told before.
    pub is_under_way: bool,
    /// Bytes of the change that comes next which stand before the tag.
    pub after: usize,
}

/// A file in an answer that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its path or address.
    pub reference: String,
    /// Whether some of the message was told before.
    pub is_under_way: bool,
    /// Bytes of the change that comes next which stand before it.
    pub after: usize,
}

/// What became of the text of the current assistant message. Told as a change, so that a long text is not copied for each word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// The text of a message begins with this.
    Begins(String),
    /// This follows the text so far.
    Grows(String),
    /// This is the text, in place of what was told; none of it counts as new.
    Corrected(String),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The model was done.
    Completed,
    /// Someone stopped it.
    Aborted,
    /// It ran out of time.
    TimedOut,
    /// It failed; the text is for people.
    Failed(String),
}

impl RunEnd {
    /// Whether it was stopped, by someone or by the clock.
    pub fn was_stopped(&self) -> bool {
        match self {
            Self::Aborted | Self::TimedOut => true,
            Self::Completed | Self::Failed(_) => false,
        }
    }
}
