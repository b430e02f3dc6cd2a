//! What clients see of a transcript: `chat.history`, previews, titles (spec `sessions.md` §4.9, KB-17). Everything here
//! reads from the end of the file and follows the branch of its last entry. Blocking.

use std::io;
use std::ops::ControlFlow;

use openclaw_protocol::params::sessions::{PreviewItem, PreviewRole};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::display;
use crate::mend::mend;
use crate::time;
use crate::transcript::index::Kind;
use crate::transcript::{Part, TranscriptReader};

/// The largest `limit` of `chat.history`.
pub const MAX_LIMIT: usize = 1000;
/// Bytes of JSON a history may have.
pub const MAX_BYTES: usize = 6 * 1024 * 1024;

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
/// compaction as a marker, at most [`MAX_BYTES`] altogether. A missing transcript is an empty history.
pub fn read(transcript: &dyn TranscriptReader, limit: usize) -> io::Result<Vec<Box<RawValue>>> {
    let limit = limit.clamp(1, MAX_LIMIT);
    let mut items = Vec::new();
    let mut bytes = 2;
    let walked = transcript.visit(Part::Branch, &mut |kind, _, line| {
        let item = match kind {
            Kind::Compaction => compaction_marker(line),
            kind if kind.is_message() => message(kind, line),
            _ => None,
        };
        if let Some(item) = item {
            // Walking from the newest: what no longer fits would be dropped from the front anyway.
            bytes += item.get().len() + usize::from(!items.is_empty());
            if bytes > MAX_BYTES && !items.is_empty() {
                return ControlFlow::Break(());
            }
            items.push(item);
        }
        if items.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match walked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    }
    items.reverse();
    Ok(items)
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
    transcript: &dyn TranscriptReader,
    limit: usize,
    max_chars: usize,
) -> io::Result<Vec<PreviewItem>> {
    let mut items = Vec::new();
    let mut seen = 0;
    transcript.visit(Part::End { bytes: PREVIEW_REACH }, &mut |kind, _, line| {
        seen += 1;
        if kind.is_message() {
            items.extend(preview_item(line, max_chars));
        }
        if items.len() < limit && seen < PREVIEW_ENTRIES {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    items.reverse();
    Ok(items)
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

/// The text of the first user message, stripped of what was added for the model. That a session was started is no text.
pub fn first_user_text(transcript: &dyn TranscriptReader) -> io::Result<Option<String>> {
    let mut found = None;
    let beginning = Part::Beginning { lines: TITLE_ENTRIES, bytes: TITLE_BYTES };
    transcript.visit(beginning, &mut |kind, _, line| {
        if kind != Kind::User {
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
pub fn last_text(transcript: &dyn TranscriptReader, max_chars: usize) -> io::Result<Option<String>> {
    let mut found = None;
    let mut seen = 0;
    transcript.visit(Part::End { bytes: LAST_REACH }, &mut |kind, _, line| {
        seen += 1;
        if matches!(kind, Kind::User | Kind::Assistant) {
            let said = |item: &PreviewItem| matches!(item.role, PreviewRole::User | PreviewRole::Assistant);
            found = preview_item(line, max_chars).filter(said).map(|item| item.text);
        }
        if found.is_none() && seen < LAST_ENTRIES {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
