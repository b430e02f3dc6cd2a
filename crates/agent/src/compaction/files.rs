//! The files a summarised conversation has read and changed (spec `agent-runtime.md` §10.3). Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_protocol::message::{Message, ToolCall};
use openclaw_sessions::transcript::format::Compaction;
use serde_json::{Map, Value, json};

/// Files a list names.
const MOST: usize = 200;
/// Line prefixes with which an `apply_patch` names the files it touches.
const PATCHED: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// Paths as the tools were given them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TouchedFiles {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

impl TouchedFiles {
    /// Collects the files of these messages, and of the previous compaction, unless a hook made
    /// that.
    pub(super) fn of<'a>(
        messages: impl Iterator<Item = &'a Arc<Message>>,
        previous: Option<&Compaction>,
    ) -> Self {
        let mut files = Self::default();
        let details =
            previous.filter(|made| made.from_hook != Some(true)).and_then(|made| made.details.as_ref());
        if let Some(details) = details {
            files.read.extend(named(details, "readFiles"));
            files.modified.extend(named(details, "modifiedFiles"));
        }
        for message in messages {
            if let Message::Assistant(answer) = &**message {
                answer.tool_calls().for_each(|call| files.note(call));
            }
        }
        files
    }

    fn note(&mut self, call: &ToolCall) {
        let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str);
        let path = argument("path").or_else(|| argument("file_path")).map(str::to_owned);
        match call.name.as_str() {
            "read" => self.read.extend(path),
            "write" | "edit" => self.modified.extend(path),
            "apply_patch" => {
                let lines = argument("input").into_iter().flat_map(str::lines);
                let paths =
                    lines.filter_map(|line| PATCHED.iter().find_map(|start| line.strip_prefix(start)));
                self.modified.extend(paths.map(|path| path.trim().to_owned()));
            }
            _ => {}
        }
    }

    fn read_only(&self) -> impl Iterator<Item = &String> {
        self.read.difference(&self.modified).take(MOST)
    }

    /// Returns the file lists that are added to the summary.
    pub(super) fn lists(&self) -> String {
        let list = |name: &str, paths: Vec<&str>| match paths.as_slice() {
            [] => String::new(),
            paths => format!("\n\n<{name}>\n{}\n</{name}>", paths.join("\n")),
        };
        let read = list("read-files", self.read_only().map(String::as_str).collect());
        let modified = list("modified-files", self.modified.iter().take(MOST).map(String::as_str).collect());
        read + &modified
    }

    /// `details` of the entry.
    pub(super) fn details(&self) -> Map<String, Value> {
        let details = json!({
            "readFiles": self.read_only().collect::<Vec<_>>(),
            "modifiedFiles": self.modified.iter().take(MOST).collect::<Vec<_>>(),
        });
        match details {
            Value::Object(details) => details,
            _ => Map::new(),
        }
    }
}

fn named(details: &Value, list: &str) -> Vec<String> {
    let paths = details.get(list).and_then(Value::as_array).into_iter().flatten();
    paths.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, Block};

    use super::*;

    fn calls(calls: &[(&str, Value)]) -> Arc<Message> {
        let block = |(name, arguments): &(&str, Value)| {
            Block::ToolCall(ToolCall {
                name: (*name).to_owned(),
                arguments: arguments.clone(),
                ..ToolCall::default()
            })
        };
        let content = calls.iter().map(block).collect();
        Arc::new(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }))
    }

    #[test]
    fn what_was_read_and_changed_is_listed_once() {
        let patch = "*** Begin Patch\n*** Update File: d.rs\n*** Move to: e.rs\n@@\n-x\n*** Add File: f.rs\n*** End Patch";
        let messages = [calls(&[
            ("read", json!({"path": "b"})),
            ("read", json!({"file_path": "a"})),
            ("read", json!({"path": "c"})),
            ("edit", json!({"path": "c"})),
            ("write", json!({"path": "old"})),
            ("apply_patch", json!({"input": patch})),
            ("exec", json!({"path": "no"})),
            ("read", json!({})),
        ])];
        let details = Some(json!({"readFiles": ["old", "older"], "modifiedFiles": ["z"]}));
        let previous = Compaction { details, ..blank() };
        let files = TouchedFiles::of(messages.iter(), Some(&previous));
        let expect = "\n\n<read-files>\na\nb\nolder\n</read-files>\n\n<modified-files>\nc\nd.rs\ne.rs\nf.rs\nold\nz\n</modified-files>";
        assert_eq!(files.lists(), expect);
        assert_eq!(
            Value::Object(files.details()),
            json!({"readFiles": ["a", "b", "older"], "modifiedFiles": ["c", "d.rs", "e.rs", "f.rs", "old", "z"]})
        );
        let by_hook = Compaction { from_hook: Some(true), ..previous };
        assert_eq!(TouchedFiles::of([].iter(), Some(&by_hook)), TouchedFiles::default());
        assert_eq!(TouchedFiles::default().lists(), "");
    }

    #[test]
    fn a_list_has_an_end() {
        let many: Vec<_> = (0..MOST + 5).map(|n| ("read", json!({"path": format!("{n:04}")}))).collect();
        let files = TouchedFiles::of([calls(&many)].iter(), None);
        assert_eq!(files.lists().lines().count(), MOST + 4);
    }

    fn blank() -> Compaction {
        serde_json::from_value(json!({"summary": ""})).unwrap()
    }
}
