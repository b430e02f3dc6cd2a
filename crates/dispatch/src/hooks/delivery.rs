//! What goes to chat platforms: `message_sending`, `message_sent`.

use std::sync::Arc;

use openclaw_agent::hooks::HookPoint;
use openclaw_agent::hooks::payload::{HookContext, MessageSent};
use openclaw_sessions::SessionKey;
use serde_json::json;

use super::context;
use crate::outbox::{Address, Delivery, DeliveryPayload, TellSent};
use crate::runner::Runner;

impl Runner {
    /// A delivery after the hooks had it; `None` where one keeps it back.
    pub(crate) async fn hooked_delivery<P: DeliveryPayload>(
        &self,
        delivery: Delivery<P>,
    ) -> Option<Delivery<P>> {
        let Some(bus) = self.hooks_now().filter(|bus| bus.asks(HookPoint::MessageSending)) else {
            return Some(delivery);
        };
        let Some(words) = delivery.payload.words().map(str::to_owned) else { return Some(delivery) };
        let place = place(&delivery.address, delivery.session_key.as_ref());
        let metadata = context([
            ("deliveryId", Some(json!(delivery.id))),
            ("channel", Some(json!(delivery.address.channel))),
            ("accountId", Some(json!(delivery.address.account))),
            ("threadId", delivery.address.thread.as_ref().map(|thread| json!(thread))),
        ]);
        let gate = bus.message_sending(&delivery.address.target, words.clone(), &metadata, &place).await;
        if gate.cancelled {
            tracing::info!(delivery = delivery.id, "a hook keeps a message back");
            return None;
        }
        if gate.content == words {
            return Some(delivery);
        }
        let Delivery { id, address, session_key, payload, expires_at } = delivery;
        Some(Delivery { id, address, session_key, payload: payload.with_words(gate.content), expires_at })
    }

    /// Tells hooks what became of deliveries. Does not keep the runner: that has the outboxes.
    pub(crate) fn tell_sent(self: &Arc<Self>) -> TellSent {
        let runner = Arc::downgrade(self);
        Arc::new(move |address, session_key, words, outcome| {
            let Some(bus) = runner.upgrade().and_then(|runner| runner.hooks_now()) else { return };
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
