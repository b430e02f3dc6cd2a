//! `message.failed`, `message.retry` and `message.discard`: what could not be sent and was given up (spec `channels.md` §5.5).

use std::collections::BTreeMap;

use openclaw_channels::{Address, Content, Unusable, registry};
use openclaw_dispatch::outbox::{DeliveryFailure, DeliveryStatus, FailedDelivery, Outbox, OutboxError};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::channels::{
    FailedMessage, MessageDiscardResult, MessageFailedParams, MessageFailedResult, MessageIdsParams,
    MessageRetryResult,
};
use openclaw_sessions::key::normalize_account_id;

use crate::channels::standing::why_not;
use crate::request::{Failure, RequestContext};

/// As many as are listed where nobody says.
const LISTED: u32 = 100;
/// Characters of a text that are listed.
const SHOWN: usize = 120;

pub(super) async fn failed(
    ctx: RequestContext,
    params: MessageFailedParams,
) -> Result<MessageFailedResult, Failure> {
    let meant = Meant::of(params.channel.as_deref(), params.account_id.as_deref());
    let all = given_up(ctx.gateway.dispatch.outbox(), &meant).await?;
    let most = usize::try_from(params.limit.unwrap_or(LISTED)).unwrap_or(usize::MAX);
    let total = u64::try_from(all.len()).unwrap_or(u64::MAX);
    Ok(MessageFailedResult { failed: all.into_iter().take(most).map(listed).collect(), total })
}

pub(super) async fn retry(
    ctx: RequestContext,
    params: MessageIdsParams,
) -> Result<MessageRetryResult, Failure> {
    let outbox = ctx.gateway.dispatch.outbox();
    let ids = named(outbox, params).await?;
    let retried = outbox.revive(&ids).await.map_err(|error| unavailable(&error))?;
    let mut waiting = BTreeMap::new();
    for id in &retried {
        let found = outbox.find(id).await.map_err(|error| unavailable(&error))?;
        waiting.extend(found.and_then(|status| waits(&ctx, &status)).map(|why| (id.clone(), why)));
    }
    let others = standing(outbox, ids.into_iter().filter(|id| !retried.contains(id))).await?;
    Ok(MessageRetryResult { retried, waiting, others })
}

pub(super) async fn discard(
    ctx: RequestContext,
    params: MessageIdsParams,
) -> Result<MessageDiscardResult, Failure> {
    let outbox = ctx.gateway.dispatch.outbox();
    let (mut discarded, mut others) = (Vec::new(), Vec::new());
    for id in named(outbox, params).await? {
        let is_gone = outbox.discard(&id).await.map_err(|error| unavailable(&error))?;
        if is_gone { discarded.push(id) } else { others.push(id) }
    }
    Ok(MessageDiscardResult { discarded, others: standing(outbox, others.into_iter()).await? })
}

/// What a delivery waits for whose account does not work.
fn waits(ctx: &RequestContext, status: &DeliveryStatus) -> Option<String> {
    let Address { channel, account, .. } = &status.address;
    let gateway = &ctx.gateway;
    let why = match gateway.platforms.channel(channel)?.account(&gateway.config(), account) {
        Ok(_) => why_not(gateway, channel, account)?,
        Err(Unusable::Disabled) => "it is switched off".to_owned(),
        Err(unusable @ (Unusable::Unknown(_) | Unusable::NotConfigured(_))) => unusable.to_string(),
    };
    Some(format!("{channel} account \"{account}\" ({why})")).filter(|_| status.state.is_open())
}

/// Which platform's and which account's.
struct Meant {
    channel: Option<String>,
    account: Option<String>,
}

impl Meant {
    fn of(channel: Option<&str>, account: Option<&str>) -> Self {
        let given =
            |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let id = |name: String| registry::by_name(&name).map_or(name, |info| info.id.to_owned());
        Self { channel: given(channel).map(id), account: given(account).map(|id| normalize_account_id(&id)) }
    }

    fn has(&self, one: &FailedDelivery) -> bool {
        let at = &one.status.address;
        self.channel.as_ref().is_none_or(|channel| *channel == at.channel)
            && self.account.as_ref().is_none_or(|account| *account == at.account)
    }
}

/// The newest first.
async fn given_up(outbox: &Outbox, meant: &Meant) -> Result<Vec<FailedDelivery>, Failure> {
    let mut all = outbox.failed(u32::MAX).await.map_err(|error| unavailable(&error))?;
    all.retain(|one| meant.has(one));
    Ok(all)
}

/// The ids that are meant.
async fn named(outbox: &Outbox, params: MessageIdsParams) -> Result<Vec<String>, Failure> {
    let ids: Vec<String> =
        params.ids.unwrap_or_default().into_iter().map(|id| id.trim().to_owned()).collect();
    match (params.all.unwrap_or_default(), ids.is_empty()) {
        (true, true) => {
            let meant = Meant::of(params.channel.as_deref(), params.account_id.as_deref());
            Ok(given_up(outbox, &meant).await?.into_iter().map(|one| one.status.id).collect())
        }
        (false, false) => Ok(ids),
        (true, false) | (false, true) => Err(ErrorShape::invalid("either ids or all is required").into()),
    }
}

async fn standing(
    outbox: &Outbox,
    ids: impl Iterator<Item = String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut stand = BTreeMap::new();
    for id in ids {
        let found = outbox.find(&id).await.map_err(|error| unavailable(&error))?;
        stand.insert(id, found.map_or("unknown", |status| stands(&status)).to_owned());
    }
    Ok(stand)
}

fn stands(status: &DeliveryStatus) -> &'static str {
    match status.given_up {
        Some(DeliveryFailure::Discarded) => "discarded",
        Some(DeliveryFailure::Refused | DeliveryFailure::PutOff | DeliveryFailure::Unknown) | None => {
            status.state.as_str()
        }
    }
}

fn listed(one: FailedDelivery) -> FailedMessage {
    let FailedDelivery { status, part } = one;
    let kind = part.as_ref().map(|part| match part.content {
        Content::Text(_) => "text",
        Content::Media { .. } => "media",
        Content::Sticker { .. } => "sticker",
        Content::Poll { .. } => "poll",
    });
    let text = part.as_ref().and_then(|part| part.words()).map(|words| words.chars().take(SHOWN).collect());
    FailedMessage {
        id: status.id,
        channel: status.address.channel,
        account_id: status.address.account,
        to: status.address.target,
        thread_id: status.address.thread,
        session_key: status.session_key.map(|key| key.to_string()),
        kind: kind.map(str::to_owned),
        text,
        file: part.as_ref().and_then(|part| part.file_name()).map(str::to_owned),
        attempts: status.attempts,
        error: status.error.unwrap_or_default(),
        uncertain: status.may_repeat || status.given_up == Some(DeliveryFailure::Unknown),
        accepted_at: status.accepted_at,
        failed_at: status.ended_at,
    }
}

fn unavailable(error: &OutboxError) -> Failure {
    ErrorShape::unavailable(format!("Error: {error}")).into()
}
