//! Answers of hook handlers: one JSON object on standard output, or nothing.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Bytes of an answer; a tool's result may hold pictures. More ends the handler.
pub const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Messages of one handler, and characters of each; more are cut off.
const MAX_MESSAGES: usize = 16;
const MAX_MESSAGE_CHARS: usize = 16_000;
/// Workspace files of one handler; more are cut off.
const MAX_FILES: usize = 64;

/// Error in a handler's answer. Logged; it counts as no answer.
#[derive(Debug, thiserror::Error)]
#[error("did not answer with the JSON object that is expected: {0}")]
pub struct BadAnswer(String);

/// Reads an answer. An empty output, blanks and `null` mean no answer.
///
/// # Errors
/// [`BadAnswer`].
pub fn read<T: DeserializeOwned + Default>(printed: &[u8]) -> Result<T, BadAnswer> {
    let text = std::str::from_utf8(printed).map_err(|_| BadAnswer("it is not UTF-8".to_owned()))?.trim();
    match text {
        "" | "null" => Ok(T::default()),
        _ if !text.starts_with('{') => Err(BadAnswer("it does not begin with {".to_owned())),
        _ => serde_json::from_str(text).map_err(|error| BadAnswer(error.to_string())),
    }
}

/// Answer to an event.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventAnswer {
    /// All that is to be said; it begins with what was there.
    pub messages: Vec<String>,
    /// Changed context of the event.
    pub context: ChangedContext,
}

/// Part of an event's context that an answer may change.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ChangedContext {
    /// Files for `agent:bootstrap`, in place of the given ones.
    pub bootstrap_files: Option<Vec<BootstrapAnswer>>,
}

/// A workspace file of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BootstrapAnswer {
    /// File name, such as `SOUL.md`.
    pub name: String,
    /// Path of the file, real or apparent.
    pub path: String,
    /// Text of the file.
    pub content: Option<String>,
    /// True if the file does not exist.
    pub missing: bool,
}

impl EventAnswer {
    /// Within bounds.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.messages.truncate(MAX_MESSAGES);
        for message in &mut self.messages {
            if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
                message.truncate(end);
            }
        }
        if let Some(files) = &mut self.context.bootstrap_files {
            files.truncate(MAX_FILES);
        }
        self
    }
}

/// Answer at `before_agent_start`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StartAnswer {
    /// Text that replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Put before what is said to the agent.
    pub prepend_context: Option<String>,
}

/// Answer at `before_tool_call`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolCallAnswer {
    /// Laid over the arguments.
    pub params: Option<Map<String, Value>>,
    /// True if the call is refused.
    pub block: Option<bool>,
    /// Reason for the refusal, as told to the model.
    pub block_reason: Option<String>,
}

/// Answer at `message_sending`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SendingAnswer {
    /// Text that replaces the message's text.
    pub content: Option<String>,
    /// True if the message is not sent.
    pub cancel: Option<bool>,
}

/// Answer at `tool_result_persist`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistAnswer {
    /// Message that replaces the result.
    pub message: Option<Value>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_an_answer_and_garbage_is_none() {
        for nothing in ["", " \n", "null", "{}", "{\"other\": 1}"] {
            assert_eq!(
                read::<ToolCallAnswer>(nothing.as_bytes()).unwrap(),
                ToolCallAnswer::default(),
                "{nothing}"
            );
        }
        for bad in ["ok", "[]", "{", "{\"block\": \"yes\"}", "{} {}", "5", "{\"params\": []}"] {
            assert!(read::<ToolCallAnswer>(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(read::<ToolCallAnswer>(&[0xff]).is_err());
        let deep = format!("{{\"params\": {}1{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
        assert!(read::<ToolCallAnswer>(deep.as_bytes()).is_err(), "nesting is bounded");
    }

    #[test]
    fn an_answer_stays_within_bounds() {
        let long = EventAnswer {
            messages: vec!["ä".repeat(MAX_MESSAGE_CHARS + 1); MAX_MESSAGES + 1],
            context: ChangedContext {
                bootstrap_files: Some(vec![BootstrapAnswer::default(); MAX_FILES + 1]),
            },
        };
        let bounded = long.bounded();
        assert_eq!(bounded.messages.len(), MAX_MESSAGES);
        assert!(bounded.messages.iter().all(|text| text.chars().count() == MAX_MESSAGE_CHARS));
        assert_eq!(bounded.context.bootstrap_files.unwrap().len(), MAX_FILES);
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(printed in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<EventAnswer>(&printed);
            let _ = read::<PersistAnswer>(&printed);
        }
    }
}
