//! Entries of a branch that a model sees (spec `sessions.md` §4.5). Deciding and converting are
//! pure; reading is `file`'s.

use std::sync::Arc;

use openclaw_protocol::message::cap::shown_in_part;
use openclaw_protocol::message::{Message, UserContent, UserMessage};
use serde_json::Value;

use super::format::{Body, BranchSummary, Entry, StoredMessage};
use super::index::Kind;

/// The context of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// Messages, oldest first; summaries and extension messages as user messages.
    pub messages: Vec<Arc<Message>>,
    /// The last thinking level on the branch; absent is `off`.
    pub thinking_level: Option<String>,
    /// The last provider and model on the branch.
    pub model: Option<(String, String)>,
}

/// The entries a context is made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct View {
    /// The last compaction of the branch.
    pub compaction: Option<Arc<Entry>>,
    /// Entries that the compaction kept, root first.
    pub kept: Vec<Arc<Entry>>,
    /// All that came after it, or all there is.
    pub later: Vec<Arc<Entry>>,
}

impl View {
    /// Messages to show to a model.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let compaction = self.compaction.as_deref();
        let up_to = compaction.and_then(|entry| match &entry.body {
            Body::Compaction(compaction) => compaction.results_up_to(),
            _ => None,
        });
        let kept = self.kept.iter().filter_map(|entry| message_of(entry)).map(|kept| in_part(kept, up_to));
        let later = self.later.iter().filter_map(|entry| message_of(entry));
        compaction.and_then(message_of).into_iter().chain(kept).chain(later).collect()
    }
}

/// A message as it is shown where tool results are shown in part.
pub fn in_part(mut message: Arc<Message>, up_to: Option<usize>) -> Arc<Message> {
    if let Some(cap) = up_to.map(shown_in_part)
        && matches!(&*message, Message::ToolResult(result) if !cap.fits(result))
        && let Message::ToolResult(result) = Arc::make_mut(&mut message)
    {
        cap.apply(result);
    }
    message
}

/// Step of a branch, as far as planning needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct BranchStep<'a> {
    /// Id of the entry.
    pub id: &'a str,
    /// Kind of the entry.
    pub kind: Kind,
    /// First entry that stays whole, for a compaction.
    pub first_kept: Option<&'a str>,
}

/// Entries of a branch that are used, as positions on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextPlan {
    /// The compaction whose summary comes first.
    pub summary: Option<usize>,
    /// First position that the compaction kept, or the beginning of the branch.
    pub from: usize,
    /// The entry that sets the thinking level.
    pub thinking: Option<usize>,
    /// The entry that sets the model.
    pub model: Option<usize>,
}

/// Decides what of a branch (root first) is shown: the last compaction's summary, what it kept, what came after it.
pub fn plan(branch: &[BranchStep<'_>]) -> ContextPlan {
    let last = |fits: fn(Kind) -> bool| branch.iter().rposition(|step| fits(step.kind));
    let summary = last(|kind| kind == Kind::Compaction);
    let from = match summary {
        None => 0,
        Some(at) => {
            let kept = branch.get(at).and_then(|step| step.first_kept);
            let before = branch.get(..at).unwrap_or_default();
            // Of two entries with one id the nearer: it is found without reading all that is before.
            kept.and_then(|kept| before.iter().rposition(|step| step.id == kept)).unwrap_or(at)
        }
    };
    ContextPlan {
        summary,
        from,
        thinking: last(|kind| kind == Kind::ThinkingLevelChange),
        model: last(|kind| matches!(kind, Kind::ModelChange | Kind::Assistant)),
    }
}

impl ContextPlan {
    /// Positions of the view's entries on a branch of this length: those that were kept, and those
    /// that came later. Settings and other summaries are among them.
    pub fn places(&self, length: usize) -> [std::ops::Range<usize>; 2] {
        match self.summary {
            Some(at) => [self.from..at, at + 1..length],
            None => [0..0, self.from..length],
        }
    }
}

/// True if entries of a kind are shown to a model.
pub fn is_shown(kind: Kind) -> bool {
    kind.is_message() || matches!(kind, Kind::BranchSummary | Kind::CustomMessage)
}

/// True if the known end of a branch contains everything that its context is made of, however long
/// the branch is.
pub fn is_enough(end: &[BranchStep<'_>]) -> bool {
    let plan = plan(end);
    let kept = |at: usize| {
        let kept = end.get(at).and_then(|step| step.first_kept);
        kept.is_none_or(|kept| end.iter().take(at).any(|step| step.id == kept))
    };
    plan.summary.is_some_and(kept) && plan.thinking.is_some() && plan.model.is_some()
}

/// The message that an entry becomes for a model.
pub fn message_of(entry: &Entry) -> Option<Arc<Message>> {
    let at = || crate::time::parse_iso(&entry.timestamp).unwrap_or(0);
    let made = match &entry.body {
        Body::Message(StoredMessage::Known(message)) => return Some(Arc::clone(message)),
        Body::Message(StoredMessage::Other(value)) => foreign_message(value, at()),
        Body::Compaction(compaction) => Some(user(compaction_text(&compaction.summary), at())),
        Body::BranchSummary(summary) => branch_text(summary).map(|text| user(text, at())),
        Body::CustomMessage(custom) => Some(Message::User(UserMessage {
            content: custom.content.clone(),
            timestamp: at(),
            ..UserMessage::default()
        })),
        Body::ModelChange { .. }
        | Body::ThinkingLevelChange { .. }
        | Body::Custom { .. }
        | Body::Label { .. }
        | Body::SessionInfo { .. }
        | Body::Other(_) => None,
    };
    made.map(Arc::new)
}

/// The text a compaction's summary is given to the model as.
pub fn compaction_text(summary: &str) -> String {
    format!(
        "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{summary}\n</summary>"
    )
}

fn branch_text(branch: &BranchSummary) -> Option<String> {
    if branch.summary.trim().is_empty() {
        return None;
    }
    Some(branch_summary_text(&branch.summary))
}

/// The text a branch's summary is given to the model as.
pub fn branch_summary_text(summary: &str) -> String {
    format!(
        "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{summary}</summary>"
    )
}

fn user(text: String, timestamp: i64) -> Message {
    Message::User(UserMessage::text(text, timestamp))
}

/// Roles only other programs write: extension messages and commands a person ran in a terminal UI.
fn foreign_message(value: &Value, entry_time: i64) -> Option<Message> {
    let at = value.get("timestamp").and_then(Value::as_i64).unwrap_or(entry_time);
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("role") {
        "custom" | "hookMessage" => {
            let content =
                value.get("content").cloned().and_then(|content| serde_json::from_value(content).ok());
            let content: UserContent = content?;
            Some(Message::User(UserMessage { content, timestamp: at, ..UserMessage::default() }))
        }
        "bashExecution" => {
            if value.get("excludeFromContext").and_then(Value::as_bool) == Some(true) {
                return None;
            }
            let output = match text("output") {
                "" => "(no output)".to_owned(),
                output => format!("```\n{output}\n```"),
            };
            let ended = match value.get("exitCode").and_then(Value::as_i64) {
                _ if value.get("cancelled").and_then(Value::as_bool) == Some(true) => {
                    "\n\n(command cancelled)".to_owned()
                }
                Some(code) if code != 0 => format!("\n\nCommand exited with code {code}"),
                Some(_) | None => String::new(),
            };
            Some(user(format!("Ran `{}`\n{output}{ended}", text("command")), at))
        }
        "compactionSummary" => Some(user(compaction_text(text("summary")), at)),
        "branchSummary" => {
            let summary = text("summary");
            (!summary.trim().is_empty()).then(|| user(branch_summary_text(summary), at))
        }
        "user" | "assistant" | "toolResult" => without_odd_fields(value),
        _ => None,
    }
}

/// A message with a field of a type it should not have, without that field: what was said counts.
fn without_odd_fields(value: &Value) -> Option<Message> {
    let mut fields = value.as_object()?.clone();
    let odd: Vec<String> = fields
        .iter()
        .filter(|(name, value)| {
            let mut alone = serde_json::Map::new();
            let role = fields.get("role").cloned().unwrap_or_default();
            alone.insert("role".to_owned(), role);
            alone.insert("content".to_owned(), Value::Array(Vec::new()));
            alone.insert("toolCallId".to_owned(), "".into());
            alone.insert((*name).clone(), (*value).clone());
            serde_json::from_value::<Message>(Value::Object(alone)).is_err()
        })
        .map(|(name, _)| name.clone())
        .collect();
    for name in odd {
        // An assistant's plain text becomes a text block.
        match fields.shift_remove(&name) {
            Some(Value::String(text)) if name == "content" => {
                fields.insert(name, serde_json::json!([{"type": "text", "text": text}]));
            }
            Some(_) | None => {}
        }
    }
    serde_json::from_value(Value::Object(fields)).ok()
}

/// The provider and model an entry sets.
pub fn model_of(entry: &Entry) -> Option<(String, String)> {
    match &entry.body {
        Body::ModelChange { provider, model_id } => Some((provider.clone(), model_id.clone())),
        body => match body.message().map(Arc::as_ref) {
            Some(Message::Assistant(message)) => Some((message.provider.clone(), message.model.clone())),
            _ => None,
        },
    }
}

/// All text of user content, for titles and previews.
pub fn text_of(content: &UserContent) -> String {
    content.to_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u1`: user, `a1`: assistant, `C:<kept>`: compaction, `m`, `t`: settings, `x`: custom.
    fn check(branch: &[&str], expect: &[&str]) {
        let steps: Vec<BranchStep<'_>> = branch
            .iter()
            .map(|id| {
                let kind = match id.chars().next().unwrap() {
                    'u' => Kind::User,
                    'a' => Kind::Assistant,
                    'C' => Kind::Compaction,
                    'm' => Kind::ModelChange,
                    't' => Kind::ThinkingLevelChange,
                    'b' => Kind::BranchSummary,
                    _ => Kind::Custom,
                };
                BranchStep { id, kind, first_kept: id.split_once(':').map(|(_, kept)| kept) }
            })
            .collect();
        let plan = plan(&steps);
        let mut got: Vec<&str> = plan.summary.iter().map(|at| branch[*at]).collect();
        let places = plan.places(branch.len()).into_iter().flatten();
        got.extend(places.filter(|at| is_shown(steps[*at].kind)).map(|at| branch[at]));
        assert_eq!(got, expect, "{branch:?}");
    }

    /// Vectors of `sessions.md` §4.5.
    #[test]
    fn the_last_compaction_cuts_the_branch() {
        check(&["u1", "a1", "u2", "a2", "C:u2", "u3", "a3"], &["C:u2", "u2", "a2", "u3", "a3"]);
        check(&["u1", "a1", "C1:u1", "u2", "a2", "C2:u2", "u3"], &["C2:u2", "u2", "a2", "u3"]);
        check(&["u1", "a1", "C1:a1", "u2", "C2:a1", "u3"], &["C2:a1", "a1", "u2", "u3"]);
        check(&["u1", "a1", "u9"], &["u1", "a1", "u9"]);
        check(&["m", "t", "x"], &[]);
        check(&["u1", "C:nowhere", "u2"], &["C:nowhere", "u2"]);
        check(&["u1", "C", "b1", "u2"], &["C", "b1", "u2"]);
        check(&[], &[]);
    }

    #[test]
    fn settings_come_from_their_last_entry() {
        let kinds = [Kind::ModelChange, Kind::ThinkingLevelChange, Kind::User, Kind::Assistant, Kind::User];
        let steps: Vec<BranchStep<'_>> =
            kinds.iter().map(|kind| BranchStep { id: "", kind: *kind, first_kept: None }).collect();
        let plan = plan(&steps);
        assert_eq!((plan.thinking, plan.model), (Some(1), Some(3)));
    }

    #[test]
    fn entries_become_messages() {
        let line = |body: &str| {
            let text =
                format!(r#"{{"id":"a","parentId":null,"timestamp":"1970-01-01T00:00:00.007Z",{body}}}"#);
            message_of(&Entry::parse(text.as_bytes()).unwrap())
        };
        let user = |text: &str, at| Some(Arc::new(Message::User(UserMessage::text(text, at))));
        assert_eq!(
            line(r#""type":"compaction","summary":"S","firstKeptEntryId":"x","tokensBefore":1"#),
            user(
                "The conversation history before this point was compacted into the following summary:\n\n<summary>\nS\n</summary>",
                7
            )
        );
        assert_eq!(
            line(r#""type":"branch_summary","summary":"S\n","fromId":"root""#),
            user(
                "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nS\n</summary>",
                7
            )
        );
        assert_eq!(line(r#""type":"branch_summary","summary":" ","fromId":"root""#), None);
        let custom = line(r#""type":"custom_message","customType":"x","content":"hi","display":false"#);
        assert!(
            matches!(custom.as_deref(), Some(Message::User(m)) if m.content == UserContent::Text("hi".into()) && m.timestamp == 7)
        );
        assert_eq!(line(r#""type":"custom","customType":"x""#), None);
        assert_eq!(line(r#""type":"novel""#), None);
        let ran = [
            ("", "Ran `ls`\n```\nx\n```"),
            (r#","exitCode":0"#, "Ran `ls`\n```\nx\n```"),
            (r#","exitCode":2"#, "Ran `ls`\n```\nx\n```\n\nCommand exited with code 2"),
            (r#","exitCode":2,"cancelled":true"#, "Ran `ls`\n```\nx\n```\n\n(command cancelled)"),
            (r#","output":"""#, "Ran `ls`\n(no output)"),
        ];
        for (how, expect) in ran {
            let body = format!(
                r#""type":"message","message":{{"role":"bashExecution","command":"ls","output":"x","timestamp":9{how}}}"#
            );
            assert_eq!(line(&body), user(expect, 9), "{how}");
        }
        let left_out =
            r#""type":"message","message":{"role":"bashExecution","command":"ls","excludeFromContext":true}"#;
        assert_eq!(line(left_out), None);
    }
}
