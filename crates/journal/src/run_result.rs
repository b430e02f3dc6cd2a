//! Result of a run as clients get it and the journal keeps it: `{"payloads": […], "meta": {…}}`
//! (spec `agent-runtime.md` §1.1). Nobody else reads its JSON.

use openclaw_agent::{Outcome, ReplyPayload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Field that holds the answer to a heartbeat.
const HEARTBEAT: &str = "heartbeat";
/// Field of `meta` that holds the parts of the system prompt.
const REPORT: &str = "systemPromptReport";

/// Payloads and figures of a run. Results that older versions stored are read too: any field may be
/// missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunResult(Value);

impl RunResult {
    /// Result of a run of the agent.
    pub fn of(ended: &Outcome) -> Self {
        Self(ended.to_result())
    }

    /// Result of a command that the gateway answered without a run. Its `meta` is empty.
    pub fn of_command(text: Option<&str>) -> Self {
        let payloads: Vec<_> = text.into_iter().map(|text| json!({"text": text, "mediaUrl": null})).collect();
        Self(json!({"payloads": payloads, "meta": {}}))
    }

    /// Result of a run that was stopped before it had one.
    pub fn of_stopped() -> Self {
        Self(json!({"payloads": [], "meta": {"aborted": true}}))
    }

    /// True if a command was answered, rather than a run.
    pub fn is_of_command(&self) -> bool {
        let meta = self.0.get("meta").and_then(Value::as_object);
        meta.is_some_and(Map::is_empty) && self.texts().next().is_some()
    }

    /// Returns the payloads, with what a chat is sent of each.
    pub fn payloads(&self) -> Vec<ReplyPayload> {
        self.stored().map(read).collect()
    }

    /// The texts of the payloads, errors among them.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.stored().filter_map(|payload| payload.get("text")?.as_str())
    }

    /// Returns the last text that is neither blank nor an error.
    pub fn last_text(&self) -> Option<&str> {
        let said = self.stored().rev().filter(|payload| !is_error(payload));
        said.filter_map(|payload| payload.get("text")?.as_str()).map(str::trim).find(|text| !text.is_empty())
    }

    /// Milliseconds that the run took, as its process has measured it.
    pub fn duration_ms(&self) -> Option<i64> {
        self.0.pointer("/meta/durationMs")?.as_i64()
    }

    /// Returns the error text for people.
    pub fn error_message(&self) -> Option<&str> {
        self.0.pointer("/meta/error/message")?.as_str()
    }

    /// Returns the provider that made the last call.
    pub fn provider(&self) -> Option<&str> {
        self.0.pointer("/meta/agentMeta/provider")?.as_str()
    }

    /// Returns the model that made the last call, without its provider.
    pub fn model(&self) -> Option<&str> {
        self.0.pointer("/meta/agentMeta/model")?.as_str()
    }

    /// Adds the parts that the system prompt was made of. Only the caller of a run gets them.
    pub(crate) fn add_report(&mut self, report: Value) {
        if let Some(meta) = self.0.get_mut("meta").and_then(Value::as_object_mut) {
            meta.insert(REPORT.to_owned(), report);
        }
    }

    /// Returns the answer to a heartbeat; `None` for other runs.
    pub(crate) fn heartbeat<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.0.get(HEARTBEAT)?).ok()
    }

    /// Keeps the answer to a heartbeat.
    pub(crate) fn keep_heartbeat(&mut self, answer: &impl Serialize) {
        if let (Some(fields), Ok(answer)) = (self.0.as_object_mut(), serde_json::to_value(answer)) {
            fields.insert(HEARTBEAT.to_owned(), answer);
        }
    }

    /// Returns the JSON that clients get.
    pub fn into_json(self) -> Value {
        self.0
    }

    fn stored(&self) -> std::slice::Iter<'_, Value> {
        self.0.get("payloads").and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter()
    }
}

/// A result as it was stored, or as a test writes it.
impl From<Value> for RunResult {
    fn from(stored: Value) -> Self {
        Self(stored)
    }
}

fn is_error(stored: &Value) -> bool {
    stored.get("isError").and_then(Value::as_bool).unwrap_or_default()
}

fn read(stored: &Value) -> ReplyPayload {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let urls = stored.get("mediaUrls").and_then(Value::as_array);
    ReplyPayload {
        text: stored.get("text").and_then(text).unwrap_or_default(),
        media_url: stored.get("mediaUrl").and_then(text),
        media_urls: urls.into_iter().flatten().filter_map(text).collect(),
        is_error: is_error(stored),
        ..ReplyPayload::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_is_the_last_that_says_something_and_is_no_error() {
        let rows = [
            (json!({"payloads": [{"text": "a"}, {"text": " b "}]}), Some("b")),
            (json!({"payloads": [{"text": "a"}, {"text": "  "}, {"mediaUrl": "/x.png"}]}), Some("a")),
            (json!({"payloads": [{"text": "a"}, {"text": "failed", "isError": true}]}), Some("a")),
            (json!({"payloads": [{"text": "⚠️ boom", "isError": true}]}), None),
            (json!({"payloads": []}), None),
            (json!({"payloads": "none"}), None),
            (json!({}), None),
            (Value::Null, None),
        ];
        for (stored, expect) in rows {
            assert_eq!(RunResult::from(stored.clone()).last_text(), expect, "{stored}");
        }
    }

    #[test]
    fn a_command_is_known_by_its_empty_meta_and_its_text() {
        assert!(RunResult::of_command(Some("done")).is_of_command());
        assert!(!RunResult::of_command(None).is_of_command());
        for other in [
            json!({"payloads": [{"text": "a"}]}),
            json!({"payloads": [{"text": "a"}], "meta": {"durationMs": 1}}),
        ] {
            assert!(!RunResult::from(other.clone()).is_of_command(), "{other}");
        }
    }
}
