//! `agents_list`: the agents that work may be given to.

use std::sync::LazyLock;

use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{OPENCLAW, failed, host};
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(AgentsList));

const FACTS: ToolFacts = ToolFacts {
    groups: &[OPENCLAW],
    description: "List agent ids you can target with sessions_spawn (based on allowlists).",
    summary: "List the agents that may be given work",
    prompt_position: 18,
    emoji: "🧭",
    for_subagents: false,
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("agents_list")
};

struct AgentsList;

impl Tool for AgentsList {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> =
            LazyLock::new(|| json!({"type": "object", "properties": {}}).into());
        SCHEMA.clone()
    }

    fn run(&self, _: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let told = host(&context)?.agents().await.map_err(failed)?;
            Ok(ToolOutput::json(told))
        })
    }
}
