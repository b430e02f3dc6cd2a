//! Words of the assistant that no model produced (spec `sessions.md` §4.3).

use openclaw_protocol::message::{AssistantMessage, Block, Message};

/// `provider` of such words.
pub const INJECTED_PROVIDER: &str = "openclaw";
/// `model` of what `chat.inject` and commands say.
pub const INJECTED_MODEL: &str = "gateway-injected";
/// `model` of what was delivered by a tool or a cron job and is mirrored into the session it concerns.
pub const MIRROR_MODEL: &str = "delivery-mirror";

/// Message of a command or of `chat.inject`, with a label in front when it has one.
pub fn injected(text: &str, label: Option<&str>, now: i64) -> Message {
    let label = label.map(str::trim).filter(|label| !label.is_empty());
    let text = label.map_or_else(|| text.to_owned(), |label| format!("[{label}]\n\n{text}"));
    said(INJECTED_MODEL, text, now)
}

/// Copy of a delivered message: its text, or else the file names of its media. Nothing when it was
/// neither.
pub fn mirrored(text: &str, media: &[String], now: i64) -> Option<Message> {
    let text = match text.trim() {
        "" if media.is_empty() => return None,
        "" => media_text(media),
        text => text.to_owned(),
    };
    Some(said(MIRROR_MODEL, text, now))
}

/// True if a message was injected and is not a model's.
pub fn is_injected(message: &Message) -> bool {
    let made = |said: &AssistantMessage| {
        said.provider == INJECTED_PROVIDER && matches!(said.model.as_str(), INJECTED_MODEL | MIRROR_MODEL)
    };
    matches!(message, Message::Assistant(said) if made(said))
}

fn media_text(media: &[String]) -> String {
    let name = |url: &String| {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        path.rsplit(['/', '\\']).next().unwrap_or_default().trim().to_owned()
    };
    let names: Vec<String> = media.iter().map(name).filter(|name| !name.is_empty()).collect();
    if names.is_empty() { "media".to_owned() } else { names.join(", ") }
}

fn said(model: &str, text: String, now: i64) -> Message {
    Message::Assistant(AssistantMessage {
        content: vec![Block::text(text)],
        api: "openai-responses".to_owned(),
        provider: INJECTED_PROVIDER.to_owned(),
        model: model.to_owned(),
        timestamp: now,
        ..AssistantMessage::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_no_model_produced_say_so() {
        let expect = |model: &str, text: &str| {
            json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "openai-responses",
                "provider": "openclaw", "model": model, "stopReason": "stop", "timestamp": 7,
                "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}})
        };
        let rows = [
            (Some(injected("hi", None, 7)), expect("gateway-injected", "hi")),
            (Some(injected("hi", Some(" Note "), 7)), expect("gateway-injected", "[Note]\n\nhi")),
            (Some(injected("hi", Some(" "), 7)), expect("gateway-injected", "hi")),
            (mirrored(" sent ", &["x".into()], 7), expect("delivery-mirror", "sent")),
            (
                mirrored(" ", &["/tmp/a.png".into(), "https://h/b.mp3?x=/y".into()], 7),
                expect("delivery-mirror", "a.png, b.mp3"),
            ),
            (mirrored("", &["https://h/".into()], 7), expect("delivery-mirror", "media")),
        ];
        for (message, expect) in rows {
            let message = message.unwrap();
            assert_eq!(serde_json::to_value(&message).unwrap(), expect);
            assert!(is_injected(&message));
        }
        assert_eq!(mirrored(" ", &[], 7), None);
        assert!(!is_injected(&Message::Assistant(AssistantMessage::default())));
    }
}
