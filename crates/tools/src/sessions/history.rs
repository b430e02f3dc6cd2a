//! `sessions_history`: what was said in a session.

use std::sync::LazyLock;

use openclaw_agent::host::HistoryWish;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{SESSIONS, failed, host, required};
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(SessionsHistory));

const FACTS: ToolFacts = ToolFacts {
    groups: SESSIONS,
    description: "Fetch message history for a session.",
    summary: "Read another session's history",
    prompt_position: 20,
    emoji: "🧾",
    label_arguments: &["sessionKey"],
    for_subagents: false,
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("sessions_history")
};

struct SessionsHistory;

impl Tool for SessionsHistory {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "required": ["sessionKey"],
                "properties": {
                    "sessionKey": {"type": "string"},
                    "limit": {"type": "number", "minimum": 1},
                    "includeTools": {"type": "boolean"},
                },
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            let wish = HistoryWish {
                session: args.word("sessionKey").ok_or_else(|| required("sessionKey"))?.to_owned(),
                limit: args.number("limit").map(|_| args.count("limit").unwrap_or(1)),
                with_tools: args.flag("includeTools"),
            };
            let told = host(&context)?.history(&wish).await.map_err(failed)?;
            Ok(ToolOutput::json(told))
        })
    }
}
