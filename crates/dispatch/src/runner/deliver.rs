//! What goes to a chat platform and is no answer to a message of it.

use openclaw_agent::ReplyPayload;
use openclaw_channels::{Address, ConversationKind};
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::entry::{DeliveryContext, delivery};

use super::Runner;
use super::replies::{Destination, Reply};
use crate::api::{DispatchError, RunOutcome};
use crate::handle::DeliverError;
use crate::outbox::{Delivery, Enqueued};
use crate::reply::threading::Quoted;

/// What the gateway tells a conversation by itself.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// The run it comes from: its messages are known by it, and are sent once.
    pub run_id: RunId,
    /// The run's session.
    pub session_key: SessionKey,
    /// Where to.
    pub address: Address,
    /// What, in order.
    pub payloads: Vec<ReplyPayload>,
    /// Whether it is only that all is well: said as it is, although that is a token.
    pub is_acknowledgement: bool,
    /// What the run came to.
    pub outcome: RunOutcome,
}

impl Runner {
    /// Hands a session's delivery over, if the session may send now. Hooks may change its words or keep it back.
    pub(crate) async fn deliver(&self, delivery: Delivery) -> Result<Enqueued, DeliverError> {
        let Delivery { id, address, session_key, .. } = &delivery;
        if let Some(key) = session_key
            && !self.may_deliver(key, &address.channel).await?
        {
            return Err(DispatchError::SendBlocked.into());
        }
        let outbox = &self.shared.outbox;
        let Some(words) = delivery.part.words() else { return Ok(outbox.accept(delivery).await?) };
        let hooked = self.hooked_words(id, address, session_key.as_ref(), words.to_owned()).await;
        let Some(hooked) = hooked else { return Ok(Enqueued::Withheld) };
        let part = if hooked == words { delivery.part } else { delivery.part.with_words(hooked) };
        Ok(outbox.accept(Delivery { part, ..delivery }).await?)
    }

    /// Tells it.
    pub(crate) async fn announce(&self, announcement: Announcement) -> Result<(), DeliverError> {
        let Announcement { run_id, session_key, address, payloads, is_acknowledgement, outcome } =
            announcement;
        if !self.may_deliver(&session_key, &address.channel).await? {
            return Err(DispatchError::SendBlocked.into());
        }
        let to = Destination { address, kind: ConversationKind::Direct, message_id: None, is_owners: false };
        let context = self.prefix_context(&session_key, &to, &outcome, None).await;
        let mut reply = Reply::of(self, &run_id, &session_key, to, &context, Quoted::default());
        for (at, payload) in payloads.into_iter().enumerate() {
            let worded = if is_acknowledgement { Some(payload) } else { reply.worded(payload) };
            let Some(payload) = worded else { continue };
            let id = format!("{run_id}:a{}", at + 1);
            for (part_at, part) in reply.parts(payload, &id).await.into_iter().enumerate() {
                let delivery = reply.delivery(format!("{id}.{}", part_at + 1), part).delivery;
                self.shared.outbox.accept(delivery).await?;
            }
        }
        Ok(())
    }

    /// The conversation that a session's answers go to by themselves.
    pub(crate) async fn route_of(&self, key: &SessionKey) -> Option<Address> {
        let entry = self.entry_or_none(key).await?;
        self.address_of(&delivery::of_entry(&entry)?)
    }

    /// The conversation that a stored route means; `None` where its platform is not there.
    pub(crate) fn address_of(&self, route: &DeliveryContext) -> Option<Address> {
        let channel = route.channel.as_deref()?;
        let platform = self.deps.platforms.channel(channel)?;
        let target = platform.target(route.to.as_deref()?).ok()?;
        let account = route.account_id.as_deref().map(str::to_owned);
        let config = &self.settings().config;
        Some(Address {
            channel: channel.to_owned(),
            account: account.or_else(|| self.deps.platforms.sending_account(config, channel))?,
            target: target.id,
            thread: route.thread_id.as_ref().map(ToString::to_string).or(target.thread),
        })
    }
}
