//! Requests that the server received.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

/// Request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The client's end of the connection: the same one means that the connection was used again.
    pub peer: SocketAddr,
    /// The version of HTTP it came in, such as `HTTP/1.1`.
    pub version: String,
    /// `POST`, usually.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The JSON body; null when it was none.
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Captured {
    /// The text of the last message a user wrote; tool results are no user's words. Empty when there is none.
    pub fn last_user_text(&self) -> String {
        let written = self.messages().iter().rev().find_map(|message| {
            let is_user = message.get("role").and_then(Value::as_str) == Some("user");
            let content = || message.get("content").or_else(|| message.get("parts"));
            is_user.then(|| text_of(content()?)).flatten()
        });
        written.unwrap_or_default()
    }

    /// True if the last thing in the conversation is the result of a tool.
    pub fn ends_with_tool_result(&self) -> bool {
        self.messages().last().is_some_and(|message| {
            let kind = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            kind(message, "role").as_deref() == Some("tool")
                || kind(message, "type").as_deref() == Some("function_call_output")
                || message.get("content").and_then(Value::as_array).is_some_and(|blocks| {
                    blocks.iter().any(|block| {
                        kind(block, "type").as_deref() == Some("tool_result")
                            || block.get("toolResult").is_some()
                    })
                })
                || message
                    .get("parts")
                    .and_then(Value::as_array)
                    .is_some_and(|parts| parts.iter().any(|part| part.get("functionResponse").is_some()))
        })
    }

    /// The names of the tools on offer.
    pub fn tool_names(&self) -> Vec<String> {
        let lists = ["/tools/0/functionDeclarations", "/toolConfig/tools", "/tools"];
        let tools = lists.iter().find_map(|place| self.body.pointer(place)?.as_array());
        let name = |tool: &Value| {
            let places = ["/name", "/function/name", "/toolSpec/name"];
            places.iter().find_map(|place| tool.pointer(place)?.as_str().map(str::to_owned))
        };
        tools.into_iter().flatten().filter_map(name).collect()
    }

    /// A header, by name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The conversation: `messages`, `input` of the Responses protocol, or Google's `contents`.
    pub fn messages(&self) -> &[Value] {
        let lists = ["messages", "input", "contents"];
        let list = lists.iter().find_map(|name| self.body.get(name));
        list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The text of a message's content; nothing when it holds no text, as when it holds tool results alone.
fn text_of(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let texts: Vec<&str> = content
        .as_array()?
        .iter()
        // Google's and Bedrock's parts say by their fields alone what they are.
        .filter(|part| matches!(part.get("type").and_then(Value::as_str), Some("text" | "input_text") | None))
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
