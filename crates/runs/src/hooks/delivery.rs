//! Hooks for messages to chat platforms: `message_sending`, `message_sent`.

use std::sync::Arc;

use openclaw_agent::hooks::HookPoint;
use openclaw_agent::hooks::payload::{HookContext, MessageSent};
use openclaw_channels::{Address, Part};
use openclaw_delivery::outbox::{Became, TellSent};
use openclaw_journal::clock::Clock;
use openclaw_runtime::system_events::SystemEvents;
use openclaw_sessions::SessionKey;
use serde_json::json;

use super::{Hooks, context};

impl Hooks {
    /// Returns the words of an answer after the hooks had them; `None` if a hook keeps it back.
    pub async fn hooked_words(
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
}

/// Returns the callback that tells hooks the outcome of deliveries, and a session which of its
/// words nobody has read. It does not keep the hooks alive.
pub fn tell_sent(hooks: &Arc<Hooks>, system_events: Arc<SystemEvents>, clock: Clock) -> TellSent {
    let hooks = Arc::downgrade(hooks);
    Arc::new(move |address, session_key, part, became| {
        let Some(hooks) = hooks.upgrade() else { return };
        if let (Some(line), Some(key)) = (unread(address, part, became), session_key) {
            system_events.enqueue(key, &line, None, clock.now_ms());
        }
        let error = match became {
            Became::Sent => None,
            Became::Failed(reason) => Some(reason),
            // The fate of the words is told when it is known.
            Became::WithoutFile(_) => return,
        };
        let (Some(words), Some(bus)) = (part.words(), hooks.hooks_now()) else { return };
        let payload = MessageSent { to: &address.target, content: words, success: error.is_none(), error };
        bus.tell(&payload, &place(address, session_key));
    })
}

/// Returns the notice that tells a session what its reader does not see; `None` if everything was
/// sent.
fn unread(address: &Address, part: &Part, became: Became<'_>) -> Option<String> {
    let Address { channel, target, .. } = address;
    Some(match (became, part.file_name(), part.words()) {
        (Became::Sent, ..) => return None,
        (Became::WithoutFile(why), _, None) => {
            format!(
                "A file for {channel} {target} was not delivered, and its reader reads this in its place: {why}"
            )
        }
        (Became::WithoutFile(why), ..) => {
            format!("To {channel} {target} only the words were sent, with a note of this: {why}")
        }
        (Became::Failed(reason), None, _) => {
            format!("What was said to {channel} {target} was not delivered: {reason}")
        }
        (Became::Failed(reason), Some(file), None) => {
            format!("The file {file} for {channel} {target} was not delivered: {reason}")
        }
        (Became::Failed(reason), Some(file), Some(_)) => {
            format!("What was said to {channel} {target} was not delivered, nor the file {file}: {reason}")
        }
    })
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
