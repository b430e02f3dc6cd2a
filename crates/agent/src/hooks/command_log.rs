//! `command-logger`: the line of a command (spec `agent-runtime.md` §8.3).

use openclaw_sessions::time::iso;
use serde_json::json;

use super::event::Event;

/// The file below the directory of logs.
pub const FILE: &str = "commands.log";

/// The line of an event, with its end.
pub fn line(event: &Event) -> String {
    let or_unknown = |text: Option<&str>| text.unwrap_or("unknown").to_owned();
    let line = json!({
        "timestamp": iso(event.timestamp),
        "action": event.kind.action(),
        "sessionKey": event.session_key,
        "senderId": or_unknown(event.text("senderId")),
        "source": or_unknown(event.text("commandSource")),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::event::{CommandAction, EventKind};
    use super::*;

    #[test]
    fn a_line_says_who_gave_which_command_where() {
        let event = |context: serde_json::Value| Event {
            kind: EventKind::Command(CommandAction::Stop),
            session_key: "agent:main:main".into(),
            context: context.as_object().cloned().unwrap(),
            timestamp: 0,
            messages: Vec::new(),
        };
        assert_eq!(
            line(&event(json!({"senderId": "me", "commandSource": "webchat"}))),
            "{\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"action\":\"stop\",\"sessionKey\":\"agent:main:main\",\"senderId\":\"me\",\"source\":\"webchat\"}\n"
        );
        assert!(
            line(&event(json!({"senderId": ""})))
                .ends_with("\"senderId\":\"unknown\",\"source\":\"unknown\"}\n")
        );
    }
}
