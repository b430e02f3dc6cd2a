//! `sessions_list`: which sessions there are.

use std::sync::LazyLock;

use openclaw_agent::host::ListWish;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use super::{SESSIONS, failed, host};
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(SessionsList));

const FACTS: ToolFacts = ToolFacts {
    groups: SESSIONS,
    description: "List sessions with optional filters and last messages.",
    summary: "List sessions, filtered, with their last messages",
    prompt_position: 19,
    emoji: "🗂️",
    label_arguments: &["kinds", "limit", "activeMinutes", "messageLimit"],
    for_subagents: false,
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("sessions_list")
};

struct SessionsList;

impl Tool for SessionsList {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {
                    "kinds": {"type": "array", "items": {"type": "string"}},
                    "limit": {"type": "number", "minimum": 1},
                    "activeMinutes": {"type": "number", "minimum": 1},
                    "messageLimit": {"type": "number", "minimum": 0},
                },
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let wish = wish(&Args(args));
            let told = host(&context)?.list(&wish).await.map_err(failed)?;
            Ok(ToolOutput::json(told))
        })
    }
}

/// A number below the least that is possible counts as that.
fn wish(args: &Args) -> ListWish {
    let at_least_one = |name| args.number(name).map(|_| args.count(name).unwrap_or(1));
    ListWish {
        kinds: args.texts("kinds"),
        limit: at_least_one("limit"),
        active_minutes: at_least_one("activeMinutes").map(|minutes| minutes as u64),
        message_limit: args.count("messageLimit").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_wish_is_none() {
        let all = ListWish::default();
        let rows = [
            (json!({}), all.clone()),
            (Value::Null, all.clone()),
            (
                json!({"kinds": {"main": true}, "limit": "many", "activeMinutes": null, "messageLimit": true}),
                all.clone(),
            ),
            (json!({"kinds": "main"}), ListWish { kinds: vec!["main".to_owned()], ..all.clone() }),
            (
                json!({"kinds": ["main", 5, "x"], "limit": 2.9, "activeMinutes": 1, "messageLimit": 3}),
                ListWish {
                    kinds: vec!["main".to_owned(), "x".to_owned()],
                    limit: Some(2),
                    active_minutes: Some(1),
                    message_limit: 3,
                },
            ),
            (
                json!({"limit": 0, "activeMinutes": -5}),
                ListWish { limit: Some(1), active_minutes: Some(1), ..all },
            ),
        ];
        for (args, expect) in rows {
            assert_eq!(wish(&Args(args.clone())), expect, "{args}");
        }
    }
}
