//! The model: it answers everything that was said since its last answer, some of it after a tool call.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::model_server::{Captured, ModelServer, Reply, ScriptedCall};

/// Between two pieces of an answer that is written slowly.
const PACE: Duration = Duration::from_millis(8);

/// What the model was asked so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) all: usize,
    pub(super) after_tool: usize,
}

/// Starts it. Where it delegates, it starts so many sub-agents.
pub(super) async fn start(children: usize) -> (ModelServer, watch::Receiver<Asked>) {
    let (told, asked) = watch::channel(Asked::default());
    let told = Arc::new(told);
    let model = ModelServer::answering(move |request| {
        let is_after_tool = request.ends_with_tool_result();
        told.send_modify(|asked| {
            asked.all += 1;
            asked.after_tool += usize::from(is_after_tool);
        });
        answer(request, is_after_tool, children)
    });
    (model.await.forgetful(), asked)
}

fn answer(request: &Captured, is_after_tool: bool, children: usize) -> Reply {
    if let Some(reply) = of_child(request) {
        return reply;
    }
    let runs = unanswered(request);
    let ends = |digits: &[char]| runs.iter().any(|run| run.ends_with(digits));
    if ends(&['1', '4', '7']) && !is_after_tool {
        let id = format!("call-{}", request.messages().len());
        return Reply::tool(&id, "read", &json!({"path": "openclaw-test-no-such-file"}));
    }
    // What is told of children may come in between: they are started once.
    let has_delegated = since_answer(request).iter().any(|message| message["role"] == "tool");
    if ends(&['3', '8']) && !has_delegated {
        // A child's task must not read like a question of people.
        let task = format!("dig a hole for {}", runs.join("+"));
        return Reply::tools((0..children).map(|n| {
            let id = format!("call-{}-{n}", request.messages().len());
            ScriptedCall::new(&id, "sessions_spawn", &json!({"task": task}))
        }));
    }
    let named = if runs.is_empty() { "nobody".to_owned() } else { runs.join(" ") };
    let pieces = ["answer ", "to ", &named, " is here"];
    if ends(&['2', '5', '7']) { Reply::paced(pieces, PACE) } else { Reply::deltas(pieces) }
}

/// What a sub-agent answers; nothing where none asks. One in three has nothing to tell.
fn of_child(request: &Captured) -> Option<Reply> {
    let is_child = request.messages().first()?.to_string().contains("# Subagent Context")
        || request.last_user_text().contains("Sub-agent announce step.");
    let is_silent = request.body.to_string().contains("3+") || request.messages().len().is_multiple_of(3);
    let is_step = request.last_user_text().contains("Sub-agent announce step.");
    is_child.then(|| match (is_step, is_silent) {
        (true, true) => Reply::text("ANNOUNCE_SKIP"),
        (true, false) => Reply::text("Result: the hole is dug"),
        (false, _) => Reply::paced(["the ", "hole ", "is ", "dug"], PACE),
    })
}

/// The numbers of the messages said since the model's last answer.
fn unanswered(request: &Captured) -> Vec<String> {
    let said = since_answer(request).into_iter().rev().filter(|message| message["role"] == "user");
    said.flat_map(|message| asked(&message["content"].to_string())).collect()
}

/// The messages since the model's last answer, the newest first. What is told of sub-agents stands there as if the model had said it, and
/// answers nobody.
fn since_answer(request: &Captured) -> Vec<&Value> {
    let is_answer = |message: &&Value| {
        message["role"] == "assistant"
            && message.get("tool_calls").and_then(Value::as_array).is_none_or(Vec::is_empty)
            && !message["content"].to_string().contains("Status: ")
    };
    request.messages().iter().rev().take_while(|message| !is_answer(message)).collect()
}

/// The numbers that a text of people asks to be answered.
pub(super) fn asked(text: &str) -> Vec<String> {
    between(text, "please answer ", " now")
}

/// The numbers that an answer answers.
pub(super) fn answered(text: &str) -> Vec<String> {
    let lists = between(text, "answer to ", " is here");
    lists.iter().flat_map(|list| list.split(' ').map(str::to_owned)).collect()
}

fn between(text: &str, before: &str, after: &str) -> Vec<String> {
    let rest = text.split(before).skip(1);
    rest.filter_map(|rest| rest.split_once(after)).map(|(found, _)| found.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_questions_and_answers() {
        let collected = "[Queued]\nplease answer run-1 now\n---\nplease answer run-12 now";
        assert_eq!(asked(collected), ["run-1", "run-12"]);
        assert_eq!(answered("answer to run-1 run-12 is here"), ["run-1", "run-12"]);
        assert_eq!(answered("answer to run-1"), Vec::<String>::new());
    }
}
