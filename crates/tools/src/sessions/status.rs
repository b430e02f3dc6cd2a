//! `session_status`: how a session stands, and which model it goes on with.

use std::sync::LazyLock;

use openclaw_agent::host::StatusWish;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{SESSIONS, failed, host};
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(SessionStatus));

const FACTS: ToolFacts = ToolFacts {
    groups: SESSIONS,
    description: "Show a /status-equivalent session status card (usage + time + cost when available). Use for model-use \
                  questions (📊 session_status). Optional: set per-session model override (model=default resets overrides).",
    summary: "Status card: usage, time, model",
    prompt_position: 22,
    emoji: "📊",
    label_arguments: &["sessionKey", "model"],
    for_subagents: false,
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("session_status")
};

struct SessionStatus;

impl Tool for SessionStatus {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {"sessionKey": {"type": "string"}, "model": {"type": "string"}},
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            let wish = StatusWish {
                // Some models know it by this name.
                session: args.word("sessionKey").or_else(|| args.word("sessionId")).map(str::to_owned),
                model: args.text("model").map(|model| model.trim().to_owned()),
            };
            let told = host(&context)?.status(&wish).await.map_err(failed)?;
            Ok(ToolOutput { details: Some(told.details), ..ToolOutput::text(told.text) })
        })
    }
}
