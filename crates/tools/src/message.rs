//! `message`: sends to chat platforms, and does there what else they can do (spec `tools.md` §7.1). The gateway does it: this file says
//! what the model is offered.

mod parameters;

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_agent::host::{FileReach, HostError, MessageCall};
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::Value;

use crate::absence::Absence;
use crate::path::Confinement;
use crate::row::ToolRow;
use crate::setup::{MessageSetup, Setup};

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(MessageTool(Arc::clone(setup))))
    .absent_if(|conditions| (!conditions.has_channel).then_some(Absence::NoChannel));

const DESCRIPTION: &str = "Send, delete, and manage messages via channel plugins.";

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:messaging", "group:openclaw"],
    description: DESCRIPTION,
    summary: "Send messages and channel actions",
    prompt_position: 16,
    emoji: "✉️",
    label_arguments: &["action"],
    repeatable: true,
    ..ToolFacts::named("message")
};

impl MessageSetup {
    fn description(&self) -> String {
        let supported = match &self.current {
            Some(current) => {
                format!(" Current channel ({}) supports: {}.", current.id, current.actions.join(", "))
            }
            None if self.actions.is_empty() => String::new(),
            None => format!(" Supports actions: {}.", self.actions.join(", ")),
        };
        format!("{DESCRIPTION}{supported}")
    }
}

struct MessageTool(Arc<Setup>);

impl Tool for MessageTool {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn description(&self) -> Cow<'static, str> {
        self.0.message.as_ref().map_or(Cow::Borrowed(DESCRIPTION), |setup| setup.description().into())
    }

    fn schema(&self) -> ToolSchema {
        parameters::schema(self.0.message.as_ref())
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let files = match &self.0.confinement {
                Confinement::Host => FileReach::Host { workspace: &context.workspace },
                Confinement::Within(root) => FileReach::Confined(root),
            };
            let call = MessageCall { call_id: &context.call_id, args: &args, files, cancel: &context.cancel };
            let messages = context.host.messages();
            let messages = messages.ok_or_else(|| {
                ToolError::Failed("no chat platform is connected to this gateway".to_owned())
            })?;
            let done = messages.act(call).await.map_err(|error| match error {
                HostError::Aborted => ToolError::Aborted,
                error => ToolError::Failed(error.to_string()),
            })?;
            Ok(ToolOutput::json(done))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::CurrentChannel;

    #[test]
    fn the_description_says_what_can_be_done_here() {
        let actions = vec!["broadcast", "react", "send"];
        let anywhere = MessageSetup { actions, ..MessageSetup::default() };
        let here =
            CurrentChannel { id: "telegram".to_owned(), actions: vec!["react", "send"], has_buttons: true };
        let rows = [
            (MessageSetup::default(), DESCRIPTION.to_owned()),
            (anywhere.clone(), format!("{DESCRIPTION} Supports actions: broadcast, react, send.")),
            (
                MessageSetup { current: Some(here), ..anywhere },
                format!("{DESCRIPTION} Current channel (telegram) supports: react, send."),
            ),
        ];
        for (setup, expect) in rows {
            assert_eq!(setup.description(), expect);
        }
    }
}
