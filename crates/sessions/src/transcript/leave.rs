//! Leaving a turn behind that was not worth keeping, such as a heartbeat's acknowledgement: the
//! branch goes on from before it. The left turn stays in the file, on a branch of its own; nothing is
//! rewritten.

use std::sync::Arc;

use openclaw_protocol::message::{Message, StopReason};
use serde_json::json;

use super::format::{Body, Entry, EntryId, MODEL_SNAPSHOT, StoredMessage};
use crate::time::now_ms;

/// `customType` of the entry of ours with which the branch goes on: `{timestamp, entryId}`, the message's entry. OpenClaw passes
/// over it.
pub const TURN_LEFT: &str = "openclaw.turn-left";

/// Entry that stands in place of a turn that was left.
pub(super) fn marker(left: &EntryId) -> Body {
    let data = Some(json!({"timestamp": now_ms(), "entryId": left.as_str()}));
    Body::Custom { custom_type: TURN_LEFT.to_owned(), data }
}

/// True if these entries, up to the end of the branch, are one message and one plain answer to it:
/// no tool was called, nobody said anything else, nothing was summarised.
pub(super) fn is_plain_turn<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> bool {
    let mut said = 0;
    let mut answered = 0;
    for entry in entries {
        match &entry.body {
            Body::Message(StoredMessage::Known(message)) => match message.as_ref() {
                Message::User(_) if answered == 0 => said += 1,
                Message::Assistant(answer)
                    if answer.stop_reason == StopReason::Stop && answer.tool_calls().next().is_none() =>
                {
                    answered += 1;
                }
                Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => return false,
            },
            _ if is_setting(entry) => {}
            _ => return false,
        }
    }
    said == 1 && answered == 1
}

/// True if the next turn notes an entry like this anew when it is missing.
pub(super) fn is_setting(entry: &Entry) -> bool {
    match &entry.body {
        Body::ModelChange { .. } | Body::ThinkingLevelChange { .. } => true,
        Body::Custom { custom_type, .. } => custom_type == MODEL_SNAPSHOT || custom_type == TURN_LEFT,
        Body::Message(_)
        | Body::Compaction(_)
        | Body::BranchSummary(_)
        | Body::CustomMessage(_)
        | Body::Label { .. }
        | Body::SessionInfo { .. }
        | Body::Other(_) => false,
    }
}

/// True if this is a person's message of this time.
pub(super) fn is_said_at(entry: &Entry, said_at: i64) -> bool {
    matches!(entry.body.message().map(Arc::as_ref), Some(Message::User(user)) if user.timestamp == said_at)
}
