//! What goes to chat platforms: `message_sending`, `message_sent`.

use std::sync::Arc;

use openclaw_agent::hooks::HookPoint;
use openclaw_agent::hooks::payload::{HookContext, MessageSent};
use openclaw_channels::Address;
use openclaw_sessions::SessionKey;
use serde_json::json;

use super::context;
use crate::outbox::TellSent;
use crate::runner::Runner;

impl Runner {
    /// The words of an answer after the hooks had them; `None` where one keeps it back.
    pub(crate) async fn hooked_words(
        &self,
        id: &str,
        address: &Address,
        session_key: Option<&SessionKey>,
        words: String,
    ) -> Option<String> {
        let Some(bus) = self.hooks_now().filter(|bus| bus.asks(HookPoint::MessageSending)) else {
            return Some(words);
        };
        let place = place(address, session_key);
        let metadata = context([
            ("deliveryId", Some(json!(id))),
            ("channel", Some(json!(address.channel))),
            ("accountId", Some(json!(address.account))),
            ("threadId", address.thread.as_ref().map(|thread| json!(thread))),
        ]);
        let gate = bus.message_sending(&address.target, words, &metadata, &place).await;
        if gate.cancelled {
            tracing::info!(delivery = id, "a hook keeps a message back");
            return None;
        }
        Some(gate.content)
    }

    /// Tells hooks what became of deliveries, and a session what of its words nobody has read. Does not keep the runner: that has the
    /// outboxes.
    pub(crate) fn tell_sent(self: &Arc<Self>) -> TellSent {
        let runner = Arc::downgrade(self);
        Arc::new(move |address, session_key, words, outcome| {
            let Some(runner) = runner.upgrade() else { return };
            if let (Err(reason), Some(key)) = (outcome, session_key) {
                let Address { channel, target, .. } = address;
                let line = format!("What was said to {channel} {target} was not delivered: {reason}");
                runner.deps.system_events.enqueue(key, &line, None, runner.shared.clock.now_ms());
            }
            let Some(bus) = runner.hooks_now() else { return };
            let payload = MessageSent {
                to: &address.target,
                content: words,
                success: outcome.is_ok(),
                error: outcome.err(),
            };
            bus.tell(&payload, &place(address, session_key));
        })
    }
}

fn place(address: &Address, session_key: Option<&SessionKey>) -> HookContext {
    HookContext {
        channel_id: Some(address.channel.clone()),
        account_id: Some(address.account.clone()),
        conversation_id: Some(address.target.clone()),
        session_key: session_key.cloned(),
        ..HookContext::default()
    }
}
