//! `sessions_send`: says something to another session.

use std::sync::LazyLock;

use openclaw_agent::host::{SendCall, SendWish};
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Tool, ToolContext, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{SESSIONS, failed, host, required};
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(SessionsSend));

/// Default time to wait for an answer, in seconds.
const PATIENCE: u64 = 30;

const FACTS: ToolFacts = ToolFacts {
    groups: SESSIONS,
    description: "Send a message into another session. Use sessionKey or label to identify the target.",
    summary: "Send a message to another session",
    prompt_position: 21,
    emoji: "📨",
    label_arguments: &["label", "sessionKey", "agentId"],
    for_subagents: false,
    repeatable: true,
    ..ToolFacts::named("sessions_send")
};

struct SessionsSend;

impl Tool for SessionsSend {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "required": ["message"],
                "properties": {
                    "sessionKey": {"type": "string"},
                    "label": {"type": "string", "minLength": 1, "maxLength": 64},
                    "agentId": {"type": "string", "minLength": 1, "maxLength": 64},
                    "message": {"type": "string"},
                    "timeoutSeconds": {"type": "number", "minimum": 0},
                },
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            let wish = wish(&args).ok_or_else(|| required("message"))?;
            let call = SendCall { call_id: &context.call_id, args: &args.0, cancel: &context.cancel };
            let told = host(&context)?.send(&wish, call).await.map_err(failed)?;
            Ok(ToolOutput::json(told))
        })
    }
}

/// Returns `None` without a message.
fn wish(args: &Args) -> Option<SendWish> {
    let word = |name| args.word(name).map(str::to_owned);
    let timeout_seconds = match args.number("timeoutSeconds") {
        Some(_) => args.count("timeoutSeconds").map_or(0, |seconds| seconds as u64),
        None => PATIENCE,
    };
    Some(SendWish {
        session: word("sessionKey"),
        label: word("label"),
        agent: word("agentId"),
        message: args.text("message").filter(|text| !text.trim().is_empty())?.to_owned(),
        timeout_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_is_needed_and_half_a_second_is_no_wait() {
        let rows = [
            (json!({}), None),
            (json!({"message": " \n"}), None),
            (json!({"message": 5}), None),
            (json!({"message": "hi"}), Some(30)),
            (json!({"message": "hi", "timeoutSeconds": 0}), Some(0)),
            (json!({"message": "hi", "timeoutSeconds": 0.5}), Some(0)),
            (json!({"message": "hi", "timeoutSeconds": -3}), Some(0)),
            (json!({"message": "hi", "timeoutSeconds": "7"}), Some(7)),
            (json!({"message": "hi", "timeoutSeconds": "soon"}), Some(30)),
            (json!({"message": "hi", "timeoutSeconds": null}), Some(30)),
        ];
        for (args, expect) in rows {
            let read = wish(&Args(args.clone())).map(|wish| wish.timeout_seconds);
            assert_eq!(read, expect, "{args}");
        }
        let wish = wish(&Args(json!({"message": " hi ", "label": " x ", "sessionKey": "", "agentId": null})));
        let expect = SendWish {
            label: Some("x".to_owned()),
            message: " hi ".to_owned(),
            timeout_seconds: PATIENCE,
            ..SendWish::default()
        };
        assert_eq!(wish, Some(expect));
    }
}
