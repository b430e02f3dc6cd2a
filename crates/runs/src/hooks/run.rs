//! Runs and messages: `before_agent_start`, `agent_end`, `message_received`.

use std::sync::Arc;

use openclaw_agent::hooks::merge::StartChanges;
use openclaw_agent::hooks::payload::{AgentEnd, BeforeAgentStart, HookContext, MessageReceived};
use openclaw_agent::hooks::{HookBus, HookPoint};
use openclaw_agent::{Outcome, RunEnd};
use openclaw_channels::{Address, Sender};
use openclaw_config::ResolvedAgent;
use openclaw_journal::api::ChatMessage;
use openclaw_journal::request::WEBCHAT;
use openclaw_protocol::message::Message;
use openclaw_sessions::SessionKey;
use serde_json::json;

use super::{Hooks, context};

/// A message that arrived, for the hooks that are told of it.
pub struct Received {
    bus: HookBus,
    session_key: SessionKey,
    /// Channel, account and conversation, if it came over a platform.
    place: Option<Address>,
    message_id: String,
    sender_id: Option<String>,
    sender: Option<String>,
    text: String,
}

impl Received {
    /// Tells of it.
    pub fn tell(self, at: i64) {
        let place = self.place.as_ref();
        let channel = place.map_or(WEBCHAT, |place| &place.channel);
        let metadata = context([
            ("provider", Some(json!(channel))),
            ("surface", Some(json!(channel))),
            ("originatingChannel", Some(json!(channel))),
            ("originatingTo", place.map(|place| json!(place.target))),
            ("threadId", place.and_then(|place| place.thread.as_ref()).map(|thread| json!(thread))),
            ("messageId", Some(json!(self.message_id))),
            ("senderId", self.sender_id.as_deref().map(|sender| json!(sender))),
            ("senderName", self.sender.as_deref().map(|sender| json!(sender))),
            ("sessionKey", Some(json!(self.session_key))),
        ]);
        let from = self.sender_id.as_deref().or(self.sender.as_deref()).unwrap_or(channel);
        let payload = MessageReceived { from, content: &self.text, timestamp: at, metadata };
        let context = HookContext {
            channel_id: Some(channel.to_owned()),
            account_id: place.map(|place| place.account.clone()),
            conversation_id: Some(
                place.map_or_else(|| self.session_key.to_string(), |place| place.target.clone()),
            ),
            ..HookContext::default()
        };
        self.bus.tell(&payload, &context);
    }
}

impl Hooks {
    /// Returns what hooks are told of a message once it is taken; `None` if no hook asks for it.
    pub fn received(&self, message: &ChatMessage) -> Option<Received> {
        let bus = self.hooks_now().filter(|bus| bus.asks(HookPoint::MessageReceived))?;
        Some(Received {
            bus,
            session_key: message.session_key.clone(),
            place: None,
            message_id: message.run_id.to_string(),
            sender_id: None,
            sender: message.sender.clone(),
            text: message.text.clone(),
        })
    }

    /// Returns what hooks are told of a message from a platform; `None` if no hook asks for it.
    pub fn received_from(
        &self,
        key: &SessionKey,
        (address, sender): (&Address, &Sender),
        message_id: &str,
        text: &str,
    ) -> Option<Received> {
        let bus = self.hooks_now().filter(|bus| bus.asks(HookPoint::MessageReceived))?;
        Some(Received {
            bus,
            session_key: key.clone(),
            place: Some(address.clone()),
            message_id: message_id.to_owned(),
            sender_id: Some(sender.id.clone()),
            sender: sender.name.clone(),
            text: text.to_owned(),
        })
    }
}

/// Hook context of a run; `at` is the conversation of a chat platform that its answer goes to.
pub fn context_of(agent: &ResolvedAgent, key: &SessionKey, at: Option<&Address>) -> HookContext {
    HookContext {
        agent_id: Some(agent.id.to_string()),
        session_key: Some(key.clone()),
        workspace_dir: Some(agent.workspace.display().to_string()),
        message_provider: Some(at.map_or(WEBCHAT, |at| &at.channel).to_owned()),
        ..HookContext::default()
    }
}

/// Asks hooks which changes they make to a run that begins.
pub async fn changes(
    bus: &HookBus,
    context: &HookContext,
    prompt: &str,
    messages: &[Arc<Message>],
) -> StartChanges {
    bus.before_agent_start(&BeforeAgentStart { prompt, messages }, context).await
}

/// Tells that a run has ended.
pub fn ended(bus: &HookBus, context: &HookContext, outcome: &Outcome, messages: &[Arc<Message>]) {
    let error = outcome.meta.error.as_ref().map(|error| error.message.as_str());
    let payload = AgentEnd {
        messages,
        success: outcome.end == RunEnd::Completed,
        error,
        duration_ms: outcome.meta.duration_ms,
    };
    bus.tell(&payload, context);
}
