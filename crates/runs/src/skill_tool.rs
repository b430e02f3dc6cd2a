//! A tool that a skill's command calls, without a model (spec `agent-runtime.md` §6.7). It is offered by the same policy, and run
//! by the same code, as when a model calls it.

use openclaw_runtime::verbosity::verbose;
use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_agent::{DirectCall, ToolError};
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::ToolWish;
use openclaw_journal::request::MAIN_LANE;
use openclaw_models::Models;
use openclaw_protocol::message::ToolCall;
use openclaw_runtime::setup::LiveSettings;
use openclaw_tools::ImageSetup;
use serde_json::json;
use tokio::sync::mpsc;

use super::lent::LanePlace;
use super::prepare::RunOrigin;
use super::session::RunSession;
use crate::calling_run::CallerChannel;
use crate::calling_run::CallingRun;
use crate::control::RunControl;
use crate::direct_calls::DirectCalls;
use crate::message_tool::message_turn;
use crate::not_begun::NotBegun;
use openclaw_commands::CommandContext;

/// Answer to a call during which the gateway went down: it is unknown how far the call came.
pub(super) const INTERRUPTED: &str =
    "\u{274c} The gateway stopped while this was under way. Call it again if it did not finish.";

/// Parts for calling the tools of skill commands.
pub(crate) struct ToolCalls {
    settings: LiveSettings,
    models: Models,
    direct: Arc<DirectCalls>,
}

impl ToolCalls {
    pub(crate) fn new(settings: LiveSettings, models: Models, direct: Arc<DirectCalls>) -> Self {
        Self { settings, models, direct }
    }

    /// Calls the tool and returns its result as the answer.
    pub(super) async fn call_tool(
        &self,
        row: &InboxRow,
        context: &CommandContext<'_>,
        session: &RunSession,
        wish: &ToolWish,
        control: &RunControl,
        events: &mpsc::Sender<RunEvent>,
    ) -> Result<String, NotBegun> {
        let settings = self.settings.now();
        let equipment = self.direct.equipment();
        let _ = control.verbose.set(verbose(None, &session.entry, &settings));
        let skills = equipment.skills_of(session, &settings).await;
        let (model, _) = context.current(&context.choices().await).await;
        equipment.learn_keys(&skills);
        let shield = equipment.shield(&settings, Vec::new())?;
        let model = (model.provider.as_str(), model.model.as_str());
        let turn = message_turn(row);
        let agent = &session.agent;
        let images = self.models.image_choice(&settings.models, &agent.id, &agent.agent_dir).await;
        // Nothing is said to a model that could see.
        let image = images.map(|_| ImageSetup { model_sees: false });
        let from = RunOrigin { request: Some(&row.payload), image, ..RunOrigin::default() };
        let sandbox = equipment.sandbox(session, &settings, &skills).await?;
        let tools = equipment.tools(session, &settings, model, (&shield, &skills, sandbox.as_ref()), from);
        let arguments = json!({"command": wish.input, "commandName": wish.command, "skillName": wish.skill});
        let call = ToolCall {
            id: format!("skill-{}", row.run_id),
            name: wish.tool.clone(),
            arguments,
            ..ToolCall::default()
        };
        let cancel = control.cancel.child_token();
        let direct = DirectCall {
            tools: &tools,
            redactor: &shield.redactor,
            hooks: &self.direct.hooks_of(&settings, session, row.payload.conversation()),
            host: &self.direct.host_of(CallingRun {
                turn,
                agent: session.agent.clone(),
                rights: session.rights.clone(),
                origin: row.payload.source.origin().cloned().map(Box::new),
                by_person: row.payload.is_chat(),
                lineage: row.payload.lineage,
                place: Some(Arc::new(LanePlace::new(MAIN_LANE, None))),
                caller: CallerChannel::default(),
            }),
            workspace: &session.agent.workspace,
            cancel: &cancel,
            events,
        };
        let mut calling = Box::pin(direct.make(&call, || self.direct.now_ms()));
        let made = match row.payload.run_time() {
            Some(limit) => tokio::select! { biased;
                made = &mut calling => made,
                () = tokio::time::sleep(limit) => {
                    cancel.cancel();
                    calling.await
                }
            },
            None => calling.await,
        };
        Ok(told(&wish.tool, made))
    }
}

fn told(tool: &str, made: Result<Option<String>, ToolError>) -> String {
    match made {
        Ok(Some(text)) => text,
        Ok(None) => "\u{2705} Done.".to_owned(),
        Err(ToolError::Unknown(_)) => format!("\u{274c} Tool not available: {tool}"),
        Err(error) => format!("\u{274c} {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_says_is_the_answer() {
        let failed = |text: &str| Err(ToolError::Failed(text.to_owned()));
        let rows = [
            (Ok(Some("said".to_owned())), "said"),
            (Ok(None), "\u{2705} Done."),
            (failed("why"), "\u{274c} why"),
            (Err(ToolError::Aborted), "\u{274c} Aborted"),
            (Err(ToolError::Unknown("fly".to_owned())), "\u{274c} Tool not available: fly"),
        ];
        for (made, expect) in rows {
            assert_eq!(told("fly", made), expect);
        }
    }
}
