//! The tool calls that failed in what is summarised, so that they are not made again (spec `agent-runtime.md` §10.6). Pure.

use std::collections::HashSet;
use std::sync::Arc;

use openclaw_protocol::message::{Block, Message, ToolResultMessage};
use openclaw_protocol::text_length::{utf16_head, utf16_len};
use serde_json::Value;

/// Failures that are listed.
const MOST: usize = 8;
/// Characters of one.
const MAX_CHARS: usize = 240;

/// Returns the section of failed tools for a summary; empty if none failed.
pub(super) fn section<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> String {
    let mut seen = HashSet::new();
    let failed = messages.filter_map(|message| match &**message {
        Message::ToolResult(result) if result.is_error => Some(result),
        Message::ToolResult(_) | Message::User(_) | Message::Assistant(_) => None,
    });
    let lines: Vec<String> = failed.filter(|result| seen.insert(&result.tool_call_id)).map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(MOST);
    let rest = (more > 0).then(|| format!("- ...and {more} more"));
    let shown: Vec<String> = lines.into_iter().take(MOST).chain(rest).collect();
    format!("\n\n## Tool Failures\n{}", shown.join("\n"))
}

/// `- exec (status=failed exitCode=1): ENOENT: missing file`
fn line(result: &ToolResultMessage) -> String {
    let detail = |name: &str| {
        let value = result.details.as_ref()?.get(name)?;
        let value = match value {
            Value::String(text) if !text.is_empty() => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(format!("{name}={value}"))
    };
    let facts: Vec<String> = [detail("status"), detail("exitCode")].into_iter().flatten().collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(" ")) };
    let name = if result.tool_name.is_empty() { "tool" } else { &result.tool_name };
    let said = match shortened(&text(result)) {
        said if !said.is_empty() => said,
        _ if facts.is_empty() => "failed (no output)".to_owned(),
        _ => "failed".to_owned(),
    };
    format!("- {name}{facts}: {said}")
}

fn text(result: &ToolResultMessage) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    texts.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    const MARK: &str = "...";
    if utf16_len(text) <= MAX_CHARS {
        return text.to_owned();
    }
    format!("{}{MARK}", utf16_head(text, MAX_CHARS - MARK.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(call: &str, text: &str, details: Option<Value>) -> Arc<Message> {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.to_owned(),
            tool_name: "exec".to_owned(),
            content: vec![Block::text(text)],
            details,
            is_error: true,
            ..ToolResultMessage::default()
        }))
    }

    fn check(messages: &[Arc<Message>], lines: &[&str]) {
        assert_eq!(section(messages.iter()), format!("\n\n## Tool Failures\n{}", lines.join("\n")));
    }

    /// The vectors of spec `agent-runtime.md` §10.6.
    #[test]
    fn the_vectors_of_the_spec() {
        let details = Some(json!({"status": "failed", "exitCode": 1}));
        check(
            &[failed("a", "ENOENT:\n  missing file ", details)],
            &["- exec (status=failed exitCode=1): ENOENT: missing file"],
        );
        check(&[failed("a", "", Some(json!({"exitCode": 2})))], &["- exec (exitCode=2): failed"]);
        check(&[failed("a", " ", None)], &["- exec: failed (no output)"]);
        let nine: Vec<_> = (0..9).map(|n| failed(&n.to_string(), "x", None)).collect();
        let lines: Vec<&str> = std::iter::repeat_n("- exec: x", 8).chain(["- ...and 1 more"]).collect();
        check(&nine, &lines);
        check(&[failed("a", "one", None), failed("a", "again", None)], &["- exec: one"]);
        let cut = format!("- exec: {}...", "y".repeat(237));
        check(&[failed("a", &"y".repeat(241), None)], &[&cut]);
        let fits = format!("- exec: {}", "y".repeat(240));
        check(&[failed("a", &"y".repeat(240), None)], &[&fits]);
    }

    #[test]
    fn what_succeeded_is_not_told() {
        let fine = Arc::new(Message::ToolResult(ToolResultMessage::default()));
        assert_eq!(section([fine].iter()), "");
    }
}
