//! Result of a sub-agent.

use openclaw_agent::text::silent::{is_silent, spoken};
use openclaw_journal::api::{AbortReason, RunOutcome, RunRecord};
use openclaw_journal::child_run::{ChildOutcome, ChildStatus};
use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use openclaw_sessions::transcript::inject::is_injected;

use crate::parts::ChildParts;

/// Number of a child's messages in which its last words are looked for.
const LOOKED_AT: usize = 50;

/// Returns the outcome of a run, as it is told. `None`: unknown, because the gateway ended while it
/// ran; unless it is listed as ended.
pub(super) fn outcome(record: Option<&RunRecord>, has_ended: bool) -> ChildOutcome {
    let (status, error) = match record.map(|record| &record.outcome) {
        Some(RunOutcome::Ok { .. }) => (ChildStatus::Ok, None),
        Some(RunOutcome::Error { message, .. }) => (ChildStatus::Error, Some(message.clone())),
        Some(RunOutcome::Aborted { .. }) if is_stopped(record) => {
            (ChildStatus::Error, Some("stopped".to_owned()))
        }
        Some(RunOutcome::Aborted { .. }) => (ChildStatus::Timeout, None),
        None if has_ended => (ChildStatus::Unknown, None),
        None => (ChildStatus::Error, Some("gateway restarted".to_owned())),
    };
    ChildOutcome { status, error }
}

/// True if somebody stopped it: that person knows, and is not told of its end.
pub(super) fn is_stopped(record: Option<&RunRecord>) -> bool {
    let outcome = record.map(|record| &record.outcome);
    matches!(outcome, Some(RunOutcome::Aborted { reason, .. }) if reason != AbortReason::Timeout.as_str())
}

/// Last words of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChildReply {
    /// No words at all.
    Nothing,
    /// Token that nothing is to be told.
    Silence,
    Words(String),
}

impl ChildReply {
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Words(words) => words,
            Self::Nothing | Self::Silence => "",
        }
    }
}

/// Returns the words that a child's run has answered, or else those in its transcript.
pub(super) async fn said_by(parts: &ChildParts, key: &SessionKey, record: Option<&RunRecord>) -> ChildReply {
    if let Some(words) = record.and_then(|record| record.outcome.result()?.last_text()) {
        return ChildReply::Words(words.to_owned());
    }
    let messages = parts.session_messages.messages_of(key, LOOKED_AT).await;
    let texts =
        messages.iter().rev().filter(|message| !is_injected(message)).filter_map(|message| match message {
            Message::Assistant(said) => Some(said.text()),
            Message::User(_) | Message::ToolResult(_) => None,
        });
    let found = texts.map(|text| text.trim().to_owned()).find(|text| !text.is_empty());
    match found {
        Some(words) if is_silent(&words) => ChildReply::Silence,
        Some(words) => ChildReply::Words(spoken(&words).to_owned()),
        None => ChildReply::Nothing,
    }
}
