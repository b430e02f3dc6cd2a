//! Transcripts as clients see them: `chat.history`, previews, titles (spec `sessions.md` §4.9,
//! KB-17). Everything here reads from the end of the file and follows the branch of its last entry.
//! Blocking.

mod shown;

use std::io;
use std::ops::ControlFlow;

use openclaw_protocol::message::{Provenance, ProvenanceKind};
use openclaw_protocol::params::sessions::{PreviewItem, PreviewRole};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::display;
use crate::history::shown::HistoryTail;
use crate::mend::mend;
use crate::time;
use crate::transcript::index::Kind;
use crate::transcript::{Part, TranscriptReader};

/// The largest `limit` of `chat.history`.
pub const MAX_LIMIT: usize = 1000;
/// Bytes of JSON a history may have.
pub const MAX_BYTES: usize = 6 * 1024 * 1024;
/// Bytes of the largest message that is shown. The last message is shown in any case; a larger one
/// fits in no frame, and clients would get no history at all.
const MOST_OF_ONE: usize = 24 * 1024 * 1024;

#[derive(Deserialize)]
struct MessageLine<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct CompactionLine {
    #[serde(default)]
    id: String,
    #[serde(default)]
    timestamp: String,
}

/// The last `limit` messages of the branch as stored, oldest first: user texts without what was added for the model, each
/// compaction as a marker, no turn of the gateway's own, at most [`MAX_BYTES`] altogether. A missing transcript is an empty history.
pub fn read(transcript: &TranscriptReader, limit: usize) -> io::Result<Vec<Box<RawValue>>> {
    let mut shown = HistoryTail::new(limit.clamp(1, MAX_LIMIT), MAX_BYTES);
    let walked = transcript.visit(Part::Branch, &mut |kind, _, line| {
        match kind {
            Kind::Compaction => shown.extend(|| compaction_marker(line).map(sized)),
            Kind::User if is_gateways(line) => shown.leave_turn(),
            kind if kind.is_message() && line.len() > MOST_OF_ONE => {
                shown.extend(|| left_out(kind, line.len()).map(sized));
            }
            kind if kind.is_message() => {
                shown.extend(|| message(kind, line).map(sized));
                if kind == Kind::User {
                    shown.settle_turn();
                }
            }
            _ => {}
        }
        shown.flow()
    });
    match walked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    }
    Ok(shown.oldest_first())
}

fn sized(item: Box<RawValue>) -> (usize, Box<RawValue>) {
    // With the comma behind it.
    (item.get().len() + 1, item)
}

/// True for the words with which the gateway opened a turn of its own, such as the one that saves memory.
fn is_gateways(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ProvenanceLine {
        message: ProvenanceMessage,
    }
    #[derive(Deserialize)]
    struct ProvenanceMessage {
        provenance: Option<Provenance>,
    }
    let provenance =
        serde_json::from_slice(line).ok().and_then(|line: ProvenanceLine| line.message.provenance);
    provenance.is_some_and(|provenance| provenance.kind == ProvenanceKind::InternalSystem)
}

fn message(kind: Kind, line: &[u8]) -> Option<Box<RawValue>> {
    let mended;
    let line: MessageLine<'_> = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(_) => {
            mended = mend(line);
            serde_json::from_str(&mended).ok()?
        }
    };
    if kind != Kind::User {
        return Some(line.message.to_owned());
    }
    let Ok(mut value) = serde_json::from_str::<Value>(line.message.get()) else { return None };
    if display::strip_user_message(&mut value) {
        serde_json::value::to_raw_value(&value).ok()
    } else {
        Some(line.message.to_owned())
    }
}

/// The marker that stands in the place of a message that is too large.
fn left_out(kind: Kind, bytes: usize) -> Option<Box<RawValue>> {
    let role = match kind {
        Kind::User => "user",
        Kind::Assistant => "assistant",
        _ => "system",
    };
    let text = format!("[A message of {} MiB is too large to be shown.]", bytes.div_ceil(1024 * 1024));
    let marker = serde_json::json!({
        "role": role,
        "content": [{"type": "text", "text": text}],
        "__openclaw": {"kind": "omitted", "bytes": bytes},
    });
    serde_json::value::to_raw_value(&marker).ok()
}

fn compaction_marker(line: &[u8]) -> Option<Box<RawValue>> {
    let line: CompactionLine = serde_json::from_slice(line).ok()?;
    let marker = serde_json::json!({
        "role": "system",
        "content": [{"type": "text", "text": "Compaction"}],
        "timestamp": time::parse_iso(&line.timestamp).unwrap_or(0),
        "__openclaw": {"kind": "compaction", "id": line.id},
    });
    serde_json::value::to_raw_value(&marker).ok()
}

/// Entries looked at for a preview; tool chatter in between does not make it endless.
const PREVIEW_ENTRIES: usize = 400;
/// Bytes at the end of the file looked at for a preview (spec `sessions.md` §4.9).
const PREVIEW_REACH: u64 = 1024 * 1024;

/// The last `limit` things said, each cut to `max_chars`. No more than the end of the file is read for it.
pub fn preview(
    transcript: &TranscriptReader,
    limit: usize,
    max_chars: usize,
) -> io::Result<Vec<PreviewItem>> {
    let mut shown = HistoryTail::new(limit.max(1), usize::MAX);
    let mut seen = 0;
    transcript.visit(Part::End { bytes: PREVIEW_REACH }, &mut |kind, _, line| {
        seen += 1;
        if kind == Kind::User && is_gateways(line) {
            shown.leave_turn();
        } else if kind.is_message() {
            shown.extend(|| preview_item(line, max_chars).map(|item| (0, item)));
            if kind == Kind::User {
                shown.settle_turn();
            }
        }
        if seen < PREVIEW_ENTRIES { shown.flow() } else { ControlFlow::Break(()) }
    })?;
    Ok(shown.oldest_first())
}

fn preview_item(line: &[u8], max_chars: usize) -> Option<PreviewItem> {
    let value: Value = serde_json::from_slice(line).or_else(|_| serde_json::from_str(&mend(line))).ok()?;
    let message = value.get("message")?;
    let calls = display::tool_names(message);
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => PreviewRole::User,
        Some("toolResult" | "tool") => PreviewRole::Tool,
        Some("assistant") if !calls.is_empty() && display::message_text(message).trim().is_empty() => {
            PreviewRole::Tool
        }
        Some("assistant") => PreviewRole::Assistant,
        Some("system") => PreviewRole::System,
        Some(_) | None => PreviewRole::Other,
    };
    let mut text = display::message_text(message).trim().to_owned();
    if role == PreviewRole::User {
        text = display::strip_user_text(&text).trim().to_owned();
    }
    if text.is_empty() && !calls.is_empty() {
        text = display::calls_line(&calls);
    }
    (!text.is_empty()).then(|| PreviewItem { role, text: display::cut(&text, max_chars, "...") })
}

/// Entries and bytes looked at for the first user message.
const TITLE_ENTRIES: usize = 10;
const TITLE_BYTES: u64 = 64 * 1024;

/// The text of the first user message, stripped of what was added for the model. The message that
/// starts a session does not count.
pub fn first_user_text(transcript: &TranscriptReader) -> io::Result<Option<String>> {
    let mut found = None;
    let beginning = Part::Beginning { lines: TITLE_ENTRIES, bytes: TITLE_BYTES };
    transcript.visit(beginning, &mut |kind, _, line| {
        if kind != Kind::User || is_gateways(line) {
            return ControlFlow::Continue(());
        }
        found = preview_item(line, usize::MAX)
            .map(|item| item.text)
            .filter(|text| text != display::RESET_COMMAND);
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

/// Entries looked at for the last thing said.
const LAST_ENTRIES: usize = 20;
/// Bytes at the end of the file looked at for it: more than OpenClaw's 16 KiB, so that one long tool result hides nothing.
const LAST_REACH: u64 = 256 * 1024;

/// The last text of the agent or the user, cut to `max_chars`.
pub fn last_text(transcript: &TranscriptReader, max_chars: usize) -> io::Result<Option<String>> {
    let mut shown = HistoryTail::new(1, usize::MAX);
    let mut seen = 0;
    transcript.visit(Part::End { bytes: LAST_REACH }, &mut |kind, _, line| {
        seen += 1;
        if kind == Kind::User && is_gateways(line) {
            shown.leave_turn();
        } else if matches!(kind, Kind::User | Kind::Assistant) {
            let said = |item: &PreviewItem| matches!(item.role, PreviewRole::User | PreviewRole::Assistant);
            shown.extend(|| Some((0, preview_item(line, max_chars).filter(said)?.text)));
            if kind == Kind::User {
                shown.settle_turn();
            }
        }
        if seen < LAST_ENTRIES { shown.flow() } else { ControlFlow::Break(()) }
    })?;
    Ok(shown.oldest_first().pop())
}

#[cfg(test)]
mod tests;
