//! Log record: an event on its way into the log.

use std::borrow::Cow;
use std::time::SystemTime;

use openclaw_protocol::printable;
use serde_json::{Map, Value, json};
use tracing::Level;

use super::redact::Redactor;

/// Replacement on the console for a line break in a message.
const CONTINUATION: &str = "\n    ";

/// An event, captured.
#[derive(Debug, Clone)]
pub(super) struct LogRecord {
    pub(super) at: SystemTime,
    pub(super) level: Level,
    pub(super) subsystem: String,
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

impl LogRecord {
    /// The same record without secrets.
    pub(super) fn masked(mut self, redactor: &Redactor) -> Self {
        self.message = redactor.mask(&self.message);
        for (name, value) in &mut self.fields {
            if let Value::String(text) = value {
                *text = redactor.mask_field(name, text);
            }
        }
        self
    }

    /// True if the record says the same as another.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        self.level == other.level
            && self.subsystem == other.subsystem
            && self.message == other.message
            && self.fields == other.fields
    }

    /// ISO 8601 in UTC with milliseconds.
    pub(super) fn time(&self) -> String {
        let at = jiff::Timestamp::try_from(self.at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }

    /// The line of the file log: the positional values and `_meta` that OpenClaw's log readers look for. JSON leaves some
    /// control characters as they are; people read this file too.
    pub(super) fn json_line(&self, hostname: &str) -> String {
        let name = json!({ "subsystem": self.subsystem }).to_string();
        let (level_id, level) = level_of(self.level);
        let mut line = Map::new();
        line.insert("0".to_owned(), name.clone().into());
        let mut position = 1;
        if !self.fields.is_empty() {
            line.insert(position.to_string(), Value::Object(self.fields.clone()));
            position += 1;
        }
        line.insert(position.to_string(), self.message.clone().into());
        let time = self.time();
        line.insert(
            "_meta".to_owned(),
            json!({
                "runtime": "rust", "hostname": hostname, "name": name, "parentNames": ["openclaw"], "date": time,
                "logLevelId": level_id, "logLevelName": level,
            }),
        );
        line.insert("time".to_owned(), time.into());
        printable::one_line(&Value::Object(line).to_string()).into_owned()
    }

    /// Message and fields as a person reads them. Further lines of the message are indented, so that none looks like a
    /// record of its own.
    pub(super) fn text(&self) -> String {
        let mut text = printable::escaped(&self.message).replace('\n', CONTINUATION);
        for (name, value) in &self.fields {
            let shown = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), printable::one_line);
            text.push_str(&format!(" {name}={shown}"));
        }
        text
    }
}

/// Id and name of a level, as OpenClaw numbers them.
fn level_of(level: Level) -> (u8, &'static str) {
    match level {
        Level::TRACE => (1, "TRACE"),
        Level::DEBUG => (2, "DEBUG"),
        Level::INFO => (3, "INFO"),
        Level::WARN => (4, "WARN"),
        Level::ERROR => (5, "ERROR"),
    }
}

/// The subsystem that a module belongs to: `gateway/ws` for what drives sockets, `channels/<platform>`
/// for the crate of a chat platform, else crate and module.
pub(super) fn subsystem(target: &str) -> String {
    const SOCKETS: &[&str] =
        &["openclaw_gateway::connection", "openclaw_gateway::handshake", "openclaw_gateway::socket"];
    if SOCKETS.iter().any(|module| target.starts_with(module)) {
        return "gateway/ws".to_owned();
    }
    let mut parts = target.split("::");
    let name = parts.next().unwrap_or_default();
    let name = name.strip_prefix("openclaw_").unwrap_or(name);
    if let Some(platform) = name.strip_prefix("channel_") {
        return format!("channels/{platform}");
    }
    match parts.next().filter(|module| !matches!(*module, "run" | "start" | "server")) {
        Some(module) => format!("{name}/{module}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn record(fields: &Value) -> LogRecord {
        LogRecord {
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_230_000_123),
            level: Level::WARN,
            subsystem: "gateway/ws".to_owned(),
            message: "connected".to_owned(),
            fields: fields.as_object().unwrap().clone(),
        }
    }

    /// Checks the keys that log readers look at (spec `operations.md` §15.3).
    #[test]
    fn the_line_has_the_keys_that_log_readers_look_for() {
        let line: Value = serde_json::from_str(&record(&json!({"conn": "c1"})).json_line("host")).unwrap();
        let name = r#"{"subsystem":"gateway/ws"}"#;
        let expect = json!({
            "0": name, "1": {"conn": "c1"}, "2": "connected",
            "_meta": {
                "runtime": "rust", "hostname": "host", "name": name, "parentNames": ["openclaw"],
                "date": "2026-11-21T03:00:00.123Z", "logLevelId": 4, "logLevelName": "WARN",
            },
            "time": "2026-11-21T03:00:00.123Z",
        });
        assert_eq!(line, expect);
        let plain: Value = serde_json::from_str(&record(&json!({})).json_line("host")).unwrap();
        assert_eq!(plain["1"], "connected");
    }

    /// Checks that names and reasons, which anyone who connects can choose, are harmless in the
    /// log.
    #[test]
    fn nothing_a_stranger_says_acts_on_the_screen_or_looks_like_a_line() {
        let mut record = record(&json!({"client": "a\u{1b}[2J\nb\u{202e}", "n": 1}));
        record.message = "refused\r\u{9b}2J\n2026-11-21 error forged".to_owned();
        let expect = "refused\\u000d\\u009b2J\n    2026-11-21 error forged client=a\\u001b[2J\\nb\\u202e n=1";
        assert_eq!(record.text(), expect);
        let line = record.json_line("host");
        assert!(!line.contains(printable::is_control), "{line:?}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["1"]["client"], &read["2"]), (&record.fields["client"], &json!(record.message)));
    }

    #[test]
    fn subsystems_are_named_after_crate_and_module() {
        let rows = [
            ("openclaw_gateway::connection::driver", "gateway/ws"),
            ("openclaw_gateway::socket::driver", "gateway/ws"),
            ("openclaw_gateway::run", "gateway"),
            ("openclaw_gateway", "gateway"),
            ("openclaw_dispatch::inbox::writer", "dispatch/inbox"),
            ("openclaw_channel_telegram::receive", "channels/telegram"),
            ("openclaw_channels::access", "channels/access"),
            ("hyper::proto", "hyper/proto"),
        ];
        for (target, expect) in rows {
            assert_eq!(subsystem(target), expect, "{target}");
        }
    }
}
