//! User texts as people typed them: without what was put around them for the model (spec `messages.md` §1.5,
//! `gateway-protocol.md` §6.3, KB-17).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Names that begin an envelope, besides those with a date in them.
const CHANNELS: [&str; 13] = [
    "WebChat", "WhatsApp", "Telegram", "Signal", "Slack", "Discord", "Google Chat", "iMessage", "Teams", "Matrix",
    "Zalo", "Zalo Personal", "BlueBubbles",
];

static DATE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}Z|\d{4}-\d{2}-\d{2} \d{2}:\d{2}").ok());
static MESSAGE_ID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s*\[message_id:\s*[^\]]+\]\s*$").ok());

/// Strips the texts of a stored message if it is a user's; other messages stay as they are.
pub(super) fn strip_message(message: &mut Value) {
    if message.get("role").and_then(Value::as_str) != Some("user") {
        return;
    }
    match message.get_mut("content") {
        Some(Value::String(text)) => *text = shown(text),
        Some(Value::Array(blocks)) => {
            for block in blocks.iter_mut().filter(|block| block.get("type").is_some_and(|kind| kind == "text")) {
                if let Some(Value::String(text)) = block.get_mut("text") {
                    *text = shown(text);
                }
            }
        }
        _ => {}
    }
}

/// What the person typed.
pub(super) fn shown(text: &str) -> String {
    let body = without_envelope(without_system_block(text));
    if !body.contains("[message_id:") {
        return body.to_owned();
    }
    let is_id = |line: &str| MESSAGE_ID.as_ref().is_some_and(|pattern| pattern.is_match(line));
    body.split('\n').filter(|line| !is_id(line)).collect::<Vec<_>>().join("\n")
}

/// Leading `System: […] …` lines go when an envelope follows: only the gateway writes that.
fn without_system_block(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with("System: [") {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    let body = rest.trim_start_matches(['\n', '\r']);
    if rest.len() < text.len() && envelope(body).is_some() { body } else { text }
}

fn without_envelope(text: &str) -> &str {
    envelope(text).unwrap_or(text)
}

/// What follows a leading `[…]` that is an envelope's.
fn envelope(text: &str) -> Option<&str> {
    let (head, body) = text.strip_prefix('[')?.split_once(']')?;
    if head.contains('\n') {
        return None;
    }
    let dated = DATE.as_ref().is_some_and(|date| date.is_match(head));
    let named = || CHANNELS.iter().any(|name| head.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    (dated || named()).then(|| body.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_the_gateway_put_around_a_text_is_removed() {
        let rows = [
            ("hi there", "hi there"),
            ("[Sat 2026-11-21 02:42 UTC] hi there\n[message_id: run-1]", "hi there"),
            ("[note] hi", "[note] hi"),
            ("[WhatsApp +49 123 2026-02-09 10:11] hello", "hello"),
            ("[Telegram Ada] hello", "hello"),
            ("[Telegrams] hello", "[Telegrams] hello"),
            ("[2026-02-09T10:11Z] x", "x"),
            ("System: [2026-02-09 10:11:12] Node connected\n\n[Mon 2026-02-09 10:11 UTC] hi", "hi"),
            ("System: [a] one\nSystem: [b] two\n[Mon 2026-02-09 10:11 UTC] hi\n[message_id: 5]", "hi"),
            ("System: [x] typed by a person", "System: [x] typed by a person"),
            ("System: [x] typed\nand more", "System: [x] typed\nand more"),
            ("a\n  [message_id: 1]  \nb", "a\nb"),
            ("a [message_id: 1] b", "a [message_id: 1] b"),
            ("[Mon 2026-02-09 10:11 UTC] [Mon 2026-02-09 10:11 UTC] twice", "[Mon 2026-02-09 10:11 UTC] twice"),
            ("", ""),
        ];
        for (text, expect) in rows {
            assert_eq!(shown(text), expect, "{text:?}");
        }
    }

    #[test]
    fn only_user_messages_are_touched() {
        let wrapped = "[Mon 2026-02-09 10:11 UTC] hi";
        let rows = [
            (json!({"role": "user", "content": wrapped}), json!({"role": "user", "content": "hi"})),
            (
                json!({"role": "user", "content": [{"type": "text", "text": wrapped}, {"type": "image", "data": "x"}]}),
                json!({"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "x"}]}),
            ),
            (json!({"role": "assistant", "content": wrapped}), json!({"role": "assistant", "content": wrapped})),
            (json!("odd"), json!("odd")),
        ];
        for (mut message, expect) in rows {
            strip_message(&mut message);
            assert_eq!(message, expect);
        }
    }
}
