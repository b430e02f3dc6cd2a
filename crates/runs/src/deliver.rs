//! Messages to a chat platform that are no answer to a message of it.

use std::sync::Arc;

use openclaw_agent::ReplyPayload;
use openclaw_channels::{Address, ConversationKind, Platforms};
use openclaw_delivery::outbox::{Enqueued, Outbox};
use openclaw_delivery::reply::threading::Quoted;
use openclaw_journal::api::{DispatchError, RunOutcome};
use openclaw_journal::delivery::Delivery;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::entry::{DeliveryContext, delivery};

use super::replies::{AnswerSettings, ChatAnswers};
use crate::hooks::Hooks;
use crate::prefixes::Prefixes;
use crate::rows::SessionRows;
use crate::said::Destination;
use crate::send_rules::SendRules;
use openclaw_runtime::messages::DeliverError;
use openclaw_runtime::setup::LiveSettings;

/// Message that the gateway sends to a conversation by itself.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// The run it comes from: its messages are known by it, and are sent once.
    pub run_id: RunId,
    /// The run's session.
    pub session_key: SessionKey,
    /// Conversation that it is sent to.
    pub address: Address,
    /// Payloads, in order.
    pub payloads: Vec<ReplyPayload>,
    /// True if it only says that all is well: sent as it is, although it is a token.
    pub is_acknowledgement: bool,
    /// Outcome of the run.
    pub outcome: RunOutcome,
}

/// Parts for making and sending messages of sessions.
pub struct Deliveries {
    answers: Arc<ChatAnswers>,
    prefixes: Arc<Prefixes>,
    send_rules: Arc<SendRules>,
    hooks: Arc<Hooks>,
    outbox: Outbox,
}

impl Deliveries {
    pub(crate) fn new(
        answers: Arc<ChatAnswers>,
        prefixes: Arc<Prefixes>,
        send_rules: Arc<SendRules>,
        hooks: Arc<Hooks>,
        outbox: Outbox,
    ) -> Self {
        Self { answers, prefixes, send_rules, hooks, outbox }
    }

    /// Hands a session's delivery over, if the session may send now. Hooks may change its words or keep it back.
    pub async fn deliver(&self, delivery: Delivery) -> Result<Enqueued, DeliverError> {
        let Delivery { id, address, session_key, .. } = &delivery;
        if let Some(key) = session_key
            && !self.send_rules.may_deliver(key, &address.channel).await?
        {
            return Err(DispatchError::SendBlocked.into());
        }
        let outbox = &self.outbox;
        let Some(words) = delivery.part.words() else { return Ok(outbox.accept(delivery).await?) };
        let hooked = self.hooks.hooked_words(id, address, session_key.as_ref(), words.to_owned()).await;
        let Some(hooked) = hooked else { return Ok(Enqueued::Withheld) };
        let part = if hooked == words { delivery.part } else { delivery.part.with_words(hooked) };
        Ok(outbox.accept(Delivery { part, ..delivery }).await?)
    }

    /// Tells it.
    pub async fn announce(&self, announcement: Announcement) -> Result<(), DeliverError> {
        let Announcement { run_id, session_key, address, payloads, is_acknowledgement, outcome } =
            announcement;
        if !self.send_rules.may_deliver(&session_key, &address.channel).await? {
            return Err(DispatchError::SendBlocked.into());
        }
        let to = Destination { address, kind: ConversationKind::Direct, message_id: None, is_private: false };
        let context = self.prefixes.prefix_context(&session_key, &to, &outcome, None).await;
        let mut reply =
            AnswerSettings::of(&self.answers, &run_id, (&session_key, None), to, &context, Quoted::default());
        for (at, payload) in payloads.into_iter().enumerate() {
            let worded = if is_acknowledgement { Some(payload) } else { reply.worded(payload) };
            let Some(payload) = worded else { continue };
            let id = format!("{run_id}:a{}", at + 1);
            let parts = reply.parts(payload, &id).await.unwrap_or_default();
            for (part_at, part) in parts.into_iter().enumerate() {
                let delivery = reply.delivery(format!("{id}.{}", part_at + 1), part).delivery;
                self.outbox.accept(delivery).await?;
            }
        }
        Ok(())
    }
}

/// Conversations that the answers of sessions go to by themselves.
pub struct Routes {
    settings: LiveSettings,
    rows: Arc<SessionRows>,
    platforms: Arc<Platforms>,
}

impl Routes {
    pub(crate) fn new(settings: LiveSettings, rows: Arc<SessionRows>, platforms: Arc<Platforms>) -> Self {
        Self { settings, rows, platforms }
    }

    /// The conversation that a session's answers go to by themselves.
    pub async fn route_of(&self, key: &SessionKey) -> Option<Address> {
        let entry = self.rows.entry_or_none(key).await?;
        self.address_of(&delivery::of_entry(&entry)?)
    }

    /// Returns the conversation that a stored route means; `None` if its platform is missing.
    pub fn address_of(&self, route: &DeliveryContext) -> Option<Address> {
        let channel = route.channel.as_deref()?;
        let platform = self.platforms.channel(channel)?;
        let target = platform.target(route.to.as_deref()?).ok()?;
        let account = route.account_id.as_deref().map(str::to_owned);
        let config = &self.settings.now().config;
        Some(Address {
            channel: channel.to_owned(),
            account: account.or_else(|| self.platforms.sending_account(config, channel))?,
            target: target.id,
            thread: route.thread_id.as_ref().map(ToString::to_string).or(target.thread),
        })
    }
}
