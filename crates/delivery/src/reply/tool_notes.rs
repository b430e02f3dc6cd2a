//! Messages about tools at work, shown with `/verbose` (spec `streaming.md` §7): one message when a
//! call begins, and with `full` another one with its result.

use std::collections::HashMap;

use openclaw_agent::ReplyPayload;
use openclaw_agent::tool::Catalogue;
use serde_json::Value;

/// The calls of one run.
#[derive(Debug)]
pub struct ToolNotes {
    catalogue: &'static Catalogue,
    /// True if results are shown.
    with_results: bool,
    /// Calls under way: how they are shown, by their ids.
    open: HashMap<String, String>,
}

impl ToolNotes {
    /// Creates the notes of a run with tools of this catalogue.
    pub fn new(catalogue: &'static Catalogue, with_results: bool) -> Self {
        Self { catalogue, with_results, open: HashMap::new() }
    }

    /// Notes the beginning of a call; returns the message about it.
    pub fn started(&mut self, name: &str, call_id: &str, args: &Value) -> ReplyPayload {
        let headline = self.catalogue.headline(name, args);
        self.open.insert(call_id.to_owned(), headline.clone());
        note(headline)
    }

    /// Notes the end of a call; returns the message about it. Its texts come cut to what may be
    /// shown.
    pub fn ended(&mut self, name: &str, call_id: &str, result: &Value) -> Option<ReplyPayload> {
        let headline = self.open.remove(call_id);
        if !self.with_results {
            return None;
        }
        let content = result.get("content").and_then(Value::as_array);
        let texts = content.into_iter().flatten().filter_map(|block| block.get("text")?.as_str());
        let output = texts.collect::<Vec<_>>().join("\n");
        let output = output.trim_matches('\n').trim_end();
        if output.trim().is_empty() {
            return None;
        }
        let headline = headline.unwrap_or_else(|| self.catalogue.headline(name, &Value::Null));
        let fence = fence(output);
        Some(note(format!("{headline}\n{fence}txt\n{output}\n{fence}")))
    }
}

fn note(text: String) -> ReplyPayload {
    ReplyPayload { text, ..ReplyPayload::default() }
}

/// Returns a fence that nothing in the text ends.
fn fence(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

#[cfg(test)]
mod tests {
    use openclaw_tools::CATALOGUE;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_told_when_it_begins_and_its_result_in_full() {
        let mut notes = ToolNotes::new(&CATALOGUE, true);
        let told =
            |name: &str, id: &str, args: Value, notes: &mut ToolNotes| notes.started(name, id, &args).text;
        assert_eq!(told("exec", "1", json!({"command": "ls  -la"}), &mut notes), "🛠️ Exec: `ls -la`");
        assert_eq!(told("bash", "2", json!({"command": "echo `id`"}), &mut notes), "🛠️ Exec: echo `id`");
        assert_eq!(told("read", "3", json!({"path": "a/b.txt"}), &mut notes), "📖 Read: `a/b.txt`");
        let args = json!({"command": "top", "pty": true, "elevated": true});
        assert_eq!(told("exec", "5", args, &mut notes), "🛠️ Exec: elevated · pty · `top`");
        let args = json!({"command": "top", "pty": true, "elevated": false});
        assert_eq!(told("exec", "6", args, &mut notes), "🛠️ Exec: pty · `top`");
        assert_eq!(told("my_tool", "4", json!({}), &mut notes), "🧩 My Tool");
        let result = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let ended = |id: &str, text: &str, notes: &mut ToolNotes| {
            notes.ended("exec", id, &result(text)).map(|payload| payload.text)
        };
        assert_eq!(ended("1", "a\nb\n", &mut notes).as_deref(), Some("🛠️ Exec: `ls -la`\n```txt\na\nb\n```"));
        assert_eq!(
            ended("2", "see ```x```", &mut notes).as_deref(),
            Some("🛠️ Exec: echo `id`\n````txt\nsee ```x```\n````")
        );
        assert_eq!(ended("3", " \n", &mut notes), None);
        let mut brief = ToolNotes::new(&CATALOGUE, false);
        brief.started("exec", "1", &json!({}));
        assert_eq!(ended("1", "a", &mut brief), None);
    }
}
