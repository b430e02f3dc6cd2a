//! Decides which results are trimmed and which are cleared. Pure, and linear in the length of the
//! history.

use std::sync::Arc;

use openclaw_protocol::message::{Block, Message, ToolResultMessage};
use openclaw_protocol::text_length::{utf16_head, utf16_len, utf16_tail};

use super::settings::{PruneSettings, SoftTrim};
use crate::tokens::{CHARS_PER_TOKEN, Measure};

/// Content that is counted; an image counts for 8,000 characters.
const CHARS: Measure = Measure { image: 8_000, names: false };

/// The messages that are sent in place of others, by position. `window` is the size of the context window in tokens.
pub(super) fn trim(
    messages: &[Arc<Message>],
    settings: &PruneSettings,
    window: u64,
) -> Vec<(usize, Arc<Message>)> {
    let Some(range) = prunable(messages, settings.keep_last_assistants) else { return Vec::new() };
    #[expect(clippy::cast_precision_loss, reason = "a share of a window, not a count")]
    let share = |chars: usize| chars as f64 / (window as f64 * CHARS_PER_TOKEN as f64);
    let lengths: Vec<usize> = messages.iter().map(|message| CHARS.chars(message)).collect();
    let mut total: usize = lengths.iter().sum();
    if window == 0 || share(total) < settings.soft_trim_ratio {
        return Vec::new();
    }
    let mut candidates = Vec::new();
    for (at, length) in lengths.into_iter().enumerate().take(range.end).skip(range.start) {
        let Some(result) = messages.get(at).and_then(|message| candidate(message.as_ref(), settings)) else {
            continue;
        };
        let trimmed = soft_trimmed(result, settings.soft_trim);
        let now = trimmed.as_ref().map_or(length, |trimmed| CHARS.chars(trimmed));
        total = total - length + now;
        candidates.push(TrimCandidate { at, result, chars: now, sent: trimmed });
    }
    if let Some(placeholder) = &settings.placeholder
        && share(total) >= settings.hard_clear_ratio
        && candidates.iter().map(|candidate| candidate.chars).sum::<usize>() >= settings.min_prunable_chars
    {
        let cleared_chars = utf16_len(placeholder);
        for candidate in &mut candidates {
            if share(total) < settings.hard_clear_ratio {
                break;
            }
            candidate.sent = Some(with_text(candidate.result, placeholder.clone()));
            total = total.saturating_sub(candidate.chars) + cleared_chars;
        }
    }
    candidates.into_iter().filter_map(|candidate| Some((candidate.at, Arc::new(candidate.sent?)))).collect()
}

struct TrimCandidate<'a> {
    at: usize,
    result: &'a ToolResultMessage,
    /// Size of the text as it is sent so far.
    chars: usize,
    sent: Option<Message>,
}

/// Range in which results may be pruned: after the first user message and before the last answers.
/// Messages before that, such as the one with which the agent reads its own identity, are never
/// pruned.
fn prunable(messages: &[Arc<Message>], keep: usize) -> Option<std::ops::Range<usize>> {
    let start = messages.iter().position(|message| matches!(**message, Message::User(_)))?;
    let mut answers =
        messages.iter().enumerate().rev().filter(|(_, message)| matches!(***message, Message::Assistant(_)));
    let end = match keep.checked_sub(1) {
        None => messages.len(),
        Some(before) => answers.nth(before)?.0,
    };
    Some(start..end)
}

fn candidate<'a>(message: &'a Message, settings: &PruneSettings) -> Option<&'a ToolResultMessage> {
    let Message::ToolResult(result) = message else { return None };
    let has_image = result.content.iter().any(|block| matches!(block, Block::Image(_)));
    (!has_image && settings.may_prune(&result.tool_name)).then_some(result)
}

/// The beginning and the end of a long result, if that is shorter.
fn soft_trimmed(result: &ToolResultMessage, limits: SoftTrim) -> Option<Message> {
    let texts: Vec<&str> = result.content.iter().filter_map(text_of).collect();
    let length = texts.iter().map(|text| utf16_len(text)).sum::<usize>() + texts.len().saturating_sub(1);
    if length <= limits.max || limits.head + limits.tail >= length {
        return None;
    }
    let text = texts.join("\n");
    let (head, tail) = (utf16_head(&text, limits.head), utf16_tail(&text, limits.tail));
    let note = format!(
        "[Tool result trimmed: kept first {} chars and last {} chars of {length} chars.]",
        limits.head, limits.tail
    );
    Some(with_text(result, format!("{head}\n...\n{tail}\n\n{note}")))
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(&text.text),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

fn with_text(result: &ToolResultMessage, text: String) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: result.tool_call_id.clone(),
        tool_name: result.tool_name.clone(),
        content: vec![Block::text(text)],
        details: None,
        is_error: result.is_error,
        timestamp: result.timestamp,
        extra: result.extra.clone(),
    })
}

#[cfg(test)]
mod tests;
