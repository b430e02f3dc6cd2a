//! `message.failed`, `message.retry` and `message.discard`: what could not be sent and was given up (spec `channels.md` §5.5), and what waits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_channels::{Address, Content, Platforms, UnknownAccount, Unusable};
use openclaw_config::{Config, normalize_account_id, registry};
use openclaw_delivery::outbox::{Outbox, OutboxError};
use openclaw_dispatch::Dispatch;
use openclaw_dispatch::delivery::{DeliveryFailure, DeliveryState, DeliveryStatus, ListedDelivery};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::channels::{
    FailedMessage, MessageDiscardResult, MessageFailedParams, MessageFailedResult, MessageIdsParams,
    MessageRetryResult, TraceDelivery, TraceResult,
};

use crate::channels::standing::why_not;
use crate::current_settings::CurrentSettings;
use crate::request::RequestFailure;

/// Default number of messages to list.
const LISTED: u32 = 100;
/// Characters of a text that are listed.
const SHOWN: usize = 120;
/// Time to wait for the end of a running send before its message is thrown away.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// Parts of the gateway that `message.failed`, `message.retry` and `message.discard` use.
pub(super) struct UndeliveredMethods {
    pub(super) settings: CurrentSettings,
    pub(super) platforms: Arc<Platforms>,
    pub(super) dispatch: Dispatch,
}

pub(super) async fn failed(
    parts: &UndeliveredMethods,
    params: MessageFailedParams,
) -> Result<MessageFailedResult, RequestFailure> {
    let meant = Meant::of(parts, params.channel.as_deref(), params.account_id.as_deref()).await?;
    let outbox = parts.dispatch.outbox();
    let all = given_up(outbox, &meant).await?;
    let most = usize::try_from(params.limit.unwrap_or(LISTED)).unwrap_or(usize::MAX);
    let (waiting, waiting_total) = waiting(parts, &meant, most).await?;
    let count = |these: usize| u64::try_from(these).unwrap_or(u64::MAX);
    Ok(MessageFailedResult {
        total: count(all.len()),
        failed: all.into_iter().take(most).map(listed).collect(),
        waiting_total: count(waiting_total),
        waiting,
    })
}

/// Lists at most `most` waiting messages, each with the reason for its wait, and their total
/// number.
async fn waiting(
    parts: &UndeliveredMethods,
    meant: &Meant,
    most: usize,
) -> Result<(Vec<FailedMessage>, usize), RequestFailure> {
    let mut open = parts.dispatch.outbox().waiting().await.map_err(|error| unavailable(&error))?;
    open.retain(|one| meant.has(one));
    let total = open.len();
    let mut heads: HashMap<(String, String, String), String> = HashMap::new();
    let mut waiting = Vec::new();
    for one in open.into_iter().take(most) {
        let Address { channel, account, target, .. } = one.status.address.clone();
        let id = &one.status.id;
        let head = heads.entry((channel, account, target)).or_insert_with(|| id.clone());
        let waits_behind = Some(head.clone()).filter(|head| head != id);
        let (state, next_at) = (one.status.state.as_str().to_owned(), one.status.next_at);
        let waits_for_account = waits(&parts.platforms, &parts.settings.config(), &one.status.address);
        waiting.push(FailedMessage {
            state: Some(state),
            next_at,
            waits_behind,
            waits_for_account,
            ..listed(one)
        });
    }
    Ok((waiting, total))
}

/// Tells of what waits in a trace which accounts it waits for.
pub(super) fn tell_accounts(platforms: &Platforms, config: &Config, trace: &mut TraceResult) {
    let of_events = trace.events.iter_mut().flat_map(|event| {
        event.answers.iter_mut().chain(event.run.iter_mut().flat_map(|run| &mut run.deliveries))
    });
    let of_runs = trace.runs.iter_mut().flat_map(|run| &mut run.deliveries);
    let all = of_events.chain(of_runs).chain(&mut trace.deliveries);
    let is_open = |one: &&mut TraceDelivery| {
        [DeliveryState::Pending, DeliveryState::Uncertain].iter().any(|state| state.as_str() == one.state)
    };
    for one in all.filter(is_open) {
        if let (Some(channel), Some(account)) = (&one.channel, &one.account_id) {
            one.waits_for_account = waits_for(platforms, config, channel, account);
        }
    }
}

pub(super) async fn retry(
    parts: &UndeliveredMethods,
    params: MessageIdsParams,
) -> Result<MessageRetryResult, RequestFailure> {
    let outbox = parts.dispatch.outbox();
    let mut ids = named(parts, params).await?;
    let refused = of_removed(parts, &ids).await?;
    ids.retain(|id| !refused.contains_key(id));
    let retried = outbox.revive(&ids).await.map_err(|error| unavailable(&error))?;
    let (mut hastened, mut others) = (Vec::new(), Vec::new());
    for id in ids.into_iter().filter(|id| !retried.contains(id)) {
        let waited = outbox.hasten(&id).await.map_err(|error| unavailable(&error))?;
        if waited { hastened.push(id) } else { others.push(id) }
    }
    let mut waiting = BTreeMap::new();
    for id in retried.iter().chain(&hastened) {
        let found = outbox.find(id).await.map_err(|error| unavailable(&error))?;
        let open = found.filter(|status| status.state.is_open());
        let why = open.and_then(|status| waits(&parts.platforms, &parts.settings.config(), &status.address));
        waiting.extend(why.map(|why| (id.clone(), why)));
    }
    let others = standing(outbox, others.into_iter()).await?;
    Ok(MessageRetryResult { retried, hastened, waiting, refused, others })
}

/// Messages, by id, that could still be sent but belong to accounts that are not configured any
/// more.
async fn of_removed(
    parts: &UndeliveredMethods,
    ids: &[String],
) -> Result<BTreeMap<String, String>, RequestFailure> {
    let mut removed = BTreeMap::new();
    for id in ids {
        let found = parts.dispatch.outbox().find(id).await.map_err(|error| unavailable(&error))?;
        let Some(status) = found.filter(can_be_sent) else { continue };
        let Address { channel, account, .. } = &status.address;
        let made = parts.platforms.channel(channel);
        let made = made.map(|platform| platform.account(&parts.settings.config(), account));
        if let Some(Err(Unusable::Unknown(_))) = made {
            removed.insert(id.clone(), format!("{channel} account \"{account}\""));
        }
    }
    Ok(removed)
}

/// True if the message waits, or was given up and may be sent again.
fn can_be_sent(status: &DeliveryStatus) -> bool {
    match status.given_up {
        Some(DeliveryFailure::Discarded) => false,
        Some(DeliveryFailure::Refused | DeliveryFailure::PutOff | DeliveryFailure::Unknown) => true,
        None => status.state.is_open(),
    }
}

pub(super) async fn discard(
    parts: &UndeliveredMethods,
    params: MessageIdsParams,
) -> Result<MessageDiscardResult, RequestFailure> {
    let outbox = parts.dispatch.outbox();
    let (mut discarded, mut others) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + ON_ITS_WAY;
    for id in named(parts, params).await? {
        let patience = deadline.saturating_duration_since(Instant::now());
        let is_gone = outbox.discard(&id, patience).await.map_err(|error| unavailable(&error))?;
        if is_gone { discarded.push(id) } else { others.push(id) }
    }
    Ok(MessageDiscardResult { discarded, others: standing(outbox, others.into_iter()).await? })
}

fn waits(platforms: &Platforms, config: &Config, at: &Address) -> Option<String> {
    waits_for(platforms, config, &at.channel, &at.account)
}

/// Reason for the wait of messages if their account does not work.
fn waits_for(platforms: &Platforms, config: &Config, channel: &str, account: &str) -> Option<String> {
    let why = match platforms.channel(channel)?.account(config, account) {
        Ok(_) => why_not(platforms, config, channel, account)?,
        Err(Unusable::Disabled) => "it is switched off".to_owned(),
        Err(unusable @ (Unusable::Unknown(_) | Unusable::NotConfigured { .. })) => unusable.to_string(),
    };
    Some(format!("{channel} account \"{account}\" ({why})"))
}

/// Platform and account that a request means; `None` means all.
struct Meant {
    channel: Option<String>,
    account: Option<String>,
}

impl Meant {
    /// Refuses a platform and an account that are not there. An account that is gone counts while there are messages for it.
    async fn of(
        parts: &UndeliveredMethods,
        channel: Option<&str>,
        account: Option<&str>,
    ) -> Result<Self, RequestFailure> {
        let [channel, account] =
            [channel, account].map(|text| text.map(str::trim).filter(|text| !text.is_empty()));
        let channel = channel.map(|name| {
            registry::by_name(name)
                .map(|info| info.id.to_owned())
                .ok_or_else(|| ErrorShape::invalid(format!("Error: Unknown channel: {name}")))
        });
        let meant = Self { channel: channel.transpose()?, account: account.map(normalize_account_id) };
        if let Some(unknown) = meant.unknown_account(parts)
            && given_up(parts.dispatch.outbox(), &meant).await?.is_empty()
            && waiting(parts, &meant, 0).await?.1 == 0
        {
            return Err(ErrorShape::invalid(format!("Error: {unknown}")).into());
        }
        Ok(meant)
    }

    /// The account, where none of these platforms has it.
    fn unknown_account(&self, parts: &UndeliveredMethods) -> Option<UnknownAccount> {
        let id = self.account.clone()?;
        let config = parts.settings.config();
        let channels = parts.platforms.channels().iter();
        let channels =
            channels.filter(|channel| self.channel.as_ref().is_none_or(|id| *id == channel.info().id));
        let known: Vec<String> = channels.flat_map(|channel| channel.account_ids(&config)).collect();
        (!known.contains(&id)).then_some(UnknownAccount { id, known })
    }

    fn has(&self, one: &ListedDelivery) -> bool {
        let at = &one.status.address;
        self.channel.as_ref().is_none_or(|channel| *channel == at.channel)
            && self.account.as_ref().is_none_or(|account| *account == at.account)
    }
}

/// The newest first.
async fn given_up(outbox: &Outbox, meant: &Meant) -> Result<Vec<ListedDelivery>, RequestFailure> {
    let mut all = outbox.failed(u32::MAX).await.map_err(|error| unavailable(&error))?;
    all.retain(|one| meant.has(one));
    Ok(all)
}

/// The ids that are meant.
async fn named(parts: &UndeliveredMethods, params: MessageIdsParams) -> Result<Vec<String>, RequestFailure> {
    let meant = Meant::of(parts, params.channel.as_deref(), params.account_id.as_deref()).await?;
    let ids: Vec<String> =
        params.ids.unwrap_or_default().into_iter().map(|id| id.trim().to_owned()).collect();
    match (params.all.unwrap_or_default(), ids.is_empty()) {
        (true, true) => {
            let all = given_up(parts.dispatch.outbox(), &meant).await?;
            Ok(all.into_iter().map(|one| one.status.id).collect())
        }
        (false, false) => Ok(ids),
        (true, false) | (false, true) => Err(ErrorShape::invalid("either ids or all is required").into()),
    }
}

async fn standing(
    outbox: &Outbox,
    ids: impl Iterator<Item = String>,
) -> Result<BTreeMap<String, String>, RequestFailure> {
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

fn listed(one: ListedDelivery) -> FailedMessage {
    let ListedDelivery { status, part } = one;
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
        state: None,
        next_at: None,
        waits_behind: None,
        waits_for_account: None,
    }
}

fn unavailable(error: &OutboxError) -> RequestFailure {
    ErrorShape::unavailable(format!("Error: {error}")).into()
}
