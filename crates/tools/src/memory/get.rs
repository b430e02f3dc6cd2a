//! `memory_get`: reads lines of a memory file.

use std::sync::LazyLock;

use openclaw_agent::host::MemoryLines;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{MEMORY, absence, failed, host};
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(MemoryGet)).absent_if(absence);

const FACTS: ToolFacts = ToolFacts {
    groups: MEMORY,
    description: "Read lines of MEMORY.md, memory/*.md or another indexed file. Use it after memory_search, for the lines that \
                  are needed alone.",
    summary: "Read lines of MEMORY.md or a memory/*.md file",
    emoji: "📓",
    label_arguments: &["path"],
    for_subagents: false,
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("memory_get")
};

struct MemoryGet;

impl Tool for MemoryGet {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {"type": "string"},
                    "from": {"type": "number"},
                    "lines": {"type": "number"},
                },
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            let wish = MemoryLines {
                path: args.required("path")?.to_owned(),
                from: args.number("from").map(whole),
                lines: args.number("lines").map(whole),
            };
            let read = host(&context)?.lines(wish).await.map_err(failed)?;
            Ok(ToolOutput::json(read))
        })
    }
}

/// A number without its fraction.
fn whole(number: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and fractions are cut")]
    let whole = number as i64;
    whole
}
