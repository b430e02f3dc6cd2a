//! The model: it answers everything that was said since its last answer. By the last digit of the
//! messages' numbers it calls a tool first, also with words before the call that belong to the
//! message they name, or answers by the `message` tool, and then says nothing more or the same once
//! more. Its answers follow from the conversation alone, so that it says the same when it is asked
//! again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::model_server::{Captured, ModelServer, Reply, ScriptedCall, Step};

/// The tool that sends to platforms.
pub(super) const MESSAGE: &str = "message";
/// Pause between two pieces of an answer that is written slowly.
const PACE: Duration = Duration::from_millis(8);

/// Counts of requests to the model so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModelCounts {
    pub(super) all: usize,
    pub(super) after_tool: usize,
}

/// Starts it. When it delegates, it starts so many sub-agents.
pub(super) async fn start(children: usize) -> (ModelServer, watch::Receiver<ModelCounts>) {
    let (told, asked) = watch::channel(ModelCounts::default());
    let told = Arc::new(told);
    let model = ModelServer::answering(move |request| {
        let is_after_tool = request.ends_with_tool_result();
        told.send_modify(|asked| {
            asked.all += 1;
            // Also where something was said behind the tool.
            let has_result = since_answer(request).iter().any(|message| message["role"] == "tool");
            asked.after_tool += usize::from(has_result);
        });
        answer(request, is_after_tool, children)
    });
    (model.await.forgetful(), asked)
}

fn answer(request: &Captured, is_after_tool: bool, children: usize) -> Reply {
    if let Some(reply) = of_child(request) {
        return reply;
    }
    let TurnWords { open, foretold, sent, has_delegated } = TurnWords::of(request);
    let ends = |digits: &[char]| open.iter().any(|run| run.ends_with(digits));
    let id = format!("call-{}", request.messages().len());
    if open.is_empty()
        && let Some(sent) = sent
    {
        // The model may repeat what a tool has sent, behind it; that is not sent again.
        let says_again = is_after_tool && request.messages().len().is_multiple_of(2);
        return Reply::text(if says_again { &sent } else { "NO_REPLY" });
    }
    if ends(&['7', '9']) && is_for_tool(&open, &foretold) {
        let text = format!("answer to {} is here", open.join(" "));
        return Reply::tool(&id, MESSAGE, &json!({"action": "send", "message": text}));
    }
    let call = if ends(&['1', '4']) && !is_after_tool {
        Some(
            Reply::tool(&id, "read", &json!({"path": "openclaw-test-no-such-file"}))
                .after(Step::Delay(4 * PACE)),
        )
    } else if ends(&['3', '8']) && !has_delegated {
        // A child's task must not read like a question of people.
        let task = format!("dig a hole for {}", open.join("+"));
        Some(Reply::tools(
            (0..children)
                .map(|n| ScriptedCall::new(&format!("{id}-{n}"), "sessions_spawn", &json!({"task": task}))),
        ))
    } else {
        None
    };
    if let Some(call) = call {
        let wordy = open.iter().filter(|run| run.ends_with(['3', '4']) && !foretold.contains(run));
        let wordy: Vec<&str> = wordy.map(String::as_str).collect();
        if wordy.is_empty() {
            return call;
        }
        let words = format!("first words for {} come here", wordy.join(" "));
        return call.after(Step::Delay(PACE)).after(Step::Text(words));
    }
    let named = if open.is_empty() { "nobody".to_owned() } else { open.join(" ") };
    let pieces = ["answer ", "to ", &named, " is here"];
    if ends(&['2', '5']) {
        // Slow enough for what is said meanwhile to come behind the answer in the same run.
        return Reply::paced(pieces, 3 * PACE);
    }
    if ends(&['1', '4']) { Reply::paced(pieces, PACE) } else { Reply::deltas(pieces) }
}

/// True if the tool answers all of these. Clients have no conversation on a platform, and what is
/// said in the same breath as what the tool sends counts as said by it: it is not used where some
/// words have gone before it.
fn is_for_tool(open: &[String], foretold: &[String]) -> bool {
    open.iter().all(|run| run.starts_with("run-") && !foretold.contains(run))
}

/// Words since the model's last answer.
#[derive(Debug, Default)]
struct TurnWords {
    /// The messages that have no answer yet.
    open: Vec<String>,
    /// Runs that had words before a tool call.
    foretold: Vec<String>,
    /// Text that a tool sent last.
    sent: Option<String>,
    has_delegated: bool,
}

impl TurnWords {
    fn of(request: &Captured) -> Self {
        let mut turn = Self::default();
        for message in since_answer(request).into_iter().rev() {
            let content = message["content"].to_string();
            if message["role"] == "user" {
                turn.open.extend(asked(&content));
                continue;
            }
            turn.foretold.extend(foretold(&content));
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let function = &call["function"];
                let arguments = function["arguments"].as_str().unwrap_or_default();
                turn.has_delegated |= function["name"] == "sessions_spawn";
                if function["name"] == MESSAGE {
                    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                    let text = arguments["message"].as_str().unwrap_or_default().to_owned();
                    let told = answered(&text);
                    turn.open.retain(|run| !told.contains(run));
                    turn.sent = Some(text);
                }
            }
        }
        turn
    }
}

/// Answer of a sub-agent; `None` if the request is not from one. Every third sub-agent has nothing
/// to tell.
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

/// The messages since the model's last answer, the newest first. Reports of sub-agents stand there
/// as if the model had said them, and answer nobody.
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

/// The numbers for which there are words before a tool call.
pub(super) fn foretold(text: &str) -> Vec<String> {
    let lists = between(text, "first words for ", " come here");
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
        let joined = "first words for run-4 come here\n\nanswer to run-4 run-5 is here";
        assert_eq!(
            (foretold(joined).join(" "), answered(joined).join(" ")),
            ("run-4".into(), "run-4 run-5".into())
        );
    }
}
