//! Runs and messages: `before_agent_start`, `agent_end`, `message_received`.

use std::sync::Arc;

use openclaw_agent::hooks::merge::StartChanges;
use openclaw_agent::hooks::payload::{AgentEnd, BeforeAgentStart, HookContext, MessageReceived};
use openclaw_agent::hooks::{HookBus, HookPoint};
use openclaw_agent::{Outcome, RunEnd};
use openclaw_config::ResolvedAgent;
use openclaw_protocol::message::Message;
use openclaw_sessions::SessionKey;
use serde_json::json;

use super::context;
use crate::api::ChatMessage;
use crate::request::WEBCHAT;
use crate::runner::Runner;

/// A message that came, for those who are told of it.
pub(crate) struct Received {
    bus: HookBus,
    session_key: SessionKey,
    run_id: String,
    sender: Option<String>,
    text: String,
}

impl Received {
    /// Tells of it.
    pub(crate) fn tell(self, at: i64) {
        let metadata = context([
            ("provider", Some(json!(WEBCHAT))),
            ("surface", Some(json!(WEBCHAT))),
            ("originatingChannel", Some(json!(WEBCHAT))),
            ("messageId", Some(json!(self.run_id))),
            ("senderName", self.sender.as_deref().map(|sender| json!(sender))),
            ("sessionKey", Some(json!(self.session_key))),
        ]);
        let payload = MessageReceived {
            from: self.sender.as_deref().unwrap_or(WEBCHAT),
            content: &self.text,
            timestamp: at,
            metadata,
        };
        let context = HookContext {
            channel_id: Some(WEBCHAT.to_owned()),
            conversation_id: Some(self.session_key.to_string()),
            ..HookContext::default()
        };
        self.bus.tell(&payload, &context);
    }
}

impl Runner {
    /// What is to be told of a message once it is taken; `None` where nobody asks for it.
    pub(crate) fn received(&self, message: &ChatMessage) -> Option<Received> {
        let bus = self.hooks_now().filter(|bus| bus.asks(HookPoint::MessageReceived))?;
        Some(Received {
            bus,
            session_key: message.session_key.clone(),
            run_id: message.run_id.to_string(),
            sender: message.sender.clone(),
            text: message.text.clone(),
        })
    }
}

/// Where a run happens.
pub(crate) fn context_of(agent: &ResolvedAgent, key: &SessionKey) -> HookContext {
    HookContext {
        agent_id: Some(agent.id.to_string()),
        session_key: Some(key.clone()),
        workspace_dir: Some(agent.workspace.display().to_string()),
        message_provider: Some(WEBCHAT.to_owned()),
        ..HookContext::default()
    }
}

/// What is to be changed of a run that begins.
pub(crate) async fn changes(
    bus: &HookBus,
    context: &HookContext,
    prompt: &str,
    messages: &[Arc<Message>],
) -> StartChanges {
    bus.before_agent_start(&BeforeAgentStart { prompt, messages }, context).await
}

/// Tells that a run has ended.
pub(crate) fn ended(bus: &HookBus, context: &HookContext, outcome: &Outcome, messages: &[Arc<Message>]) {
    let error = outcome.meta.error.as_ref().map(|error| error.message.as_str());
    let payload = AgentEnd {
        messages,
        success: outcome.end == RunEnd::Completed,
        error,
        duration_ms: outcome.meta.duration_ms,
    };
    bus.tell(&payload, context);
}
