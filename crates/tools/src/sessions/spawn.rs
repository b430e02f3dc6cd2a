//! `sessions_spawn`: starts a sub-agent (spec `sessions.md` §8.4). The gateway does it: this file says what the model is offered.

use std::sync::LazyLock;

use openclaw_agent::host::{Cleanup, SpawnCall};
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{SESSIONS, failed, required};
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(SessionsSpawn)).not_for_subagents();

const FACTS: ToolFacts = ToolFacts {
    groups: SESSIONS,
    description: "Give a task to a sub-agent, which works on it in a session of its own, in the background. The answer comes at \
                  once; the result is told in this chat when the sub-agent has ended.",
    summary: "Start a sub-agent",
    prompt_position: u8::MAX,
    emoji: "🧑‍🔧",
    label_arguments: &["label", "task", "agentId"],
    repeatable: true,
    ..ToolFacts::named("sessions_spawn")
};

struct SessionsSpawn;

impl Tool for SessionsSpawn {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {
                    "task": {"type": "string"},
                    "label": {"type": "string"},
                    "agentId": {"type": "string"},
                    "model": {"type": "string"},
                    "thinking": {"type": "string"},
                    "runTimeoutSeconds": {"type": "number", "minimum": 0},
                    "timeoutSeconds": {"type": "number", "minimum": 0},
                    "cleanup": {"type": "string", "enum": ["delete", "keep"]},
                },
                "required": ["task"],
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            let task = args.word("task").ok_or_else(|| required("task"))?;
            let call = SpawnCall {
                call_id: &context.call_id,
                args: &args.0,
                task,
                label: args.word("label"),
                agent_id: args.word("agentId"),
                model: args.word("model"),
                thinking: args.word("thinking"),
                timeout_seconds: seconds(&args),
                cleanup: if args.word("cleanup") == Some("delete") { Cleanup::Delete } else { Cleanup::Keep },
                cancel: &context.cancel,
            };
            let subagents = context.host.subagents();
            let subagents =
                subagents.ok_or_else(|| ToolError::Failed("no sub-agent can be started here".to_owned()))?;
            let answer = tokio::select! { biased;
                () = context.cancel.cancelled() => return Err(ToolError::Aborted),
                answer = subagents.spawn(call) => answer,
            };
            answer.map(ToolOutput::json).map_err(failed)
        })
    }
}

/// The time limit, under its name or the older one; none where it is 0.
fn seconds(args: &Args) -> Option<u64> {
    let asked = args.number("runTimeoutSeconds").or_else(|| args.number("timeoutSeconds"))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1, saturates above"
    )]
    let whole = (asked >= 1.0).then_some(asked as u64);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_has_two_names() {
        let rows = [
            (json!({}), None),
            (json!({"runTimeoutSeconds": 0}), None),
            (json!({"runTimeoutSeconds": 2.9, "timeoutSeconds": 7}), Some(2)),
            (json!({"timeoutSeconds": 7}), Some(7)),
        ];
        for (args, expect) in rows {
            assert_eq!(seconds(&Args(args.clone())), expect, "{args}");
        }
    }
}
