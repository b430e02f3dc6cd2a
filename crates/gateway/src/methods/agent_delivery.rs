//! Delivery of the answer to an `agent` request: its target, and the outcome (spec `channels.md`
//! §5.6).

use std::time::Duration;

use openclaw_channels::{Address, Platforms};
use openclaw_config::{Config, normalize_account_id, registry};
use openclaw_dispatch::Dispatch;
use openclaw_dispatch::delivery::DeliveryState;
use openclaw_dispatch::messages::{RouteWish, Routed, route};
use openclaw_protocol::params::agent::{AgentParams, Delivered};
use openclaw_protocol::{ErrorShape, RunId};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::delivery::of_entry;

use super::keys::given;
use crate::request::RequestFailure;

/// Time that the platform has before whoever asked is told that the answer waits.
const PATIENCE: Duration = Duration::from_secs(20);
/// OpenClaw's words.
const NOT_TO_WEBCHAT: &str = "Delivering to WebChat is not supported via `openclaw agent`; use WhatsApp/Telegram or run with --deliver=false.";

/// Plan for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeliveryPlan {
    /// The answer goes to whoever asked, and to nobody else.
    Told,
    /// The answer is also sent to this address.
    Sent(Address),
    /// The answer was to be sent, and can't be: the run is made all the same, and this text is
    /// reported with its answer.
    Impossible(String),
}

/// Plans the delivery. A wrong name is refused; a part that is only missing from the session's
/// route keeps nobody from an answer. Nor does a channel that is not used here: OpenClaw's command
/// names WhatsApp where its user names nothing, and makes the run by itself, past this gateway,
/// when it is refused.
pub(super) fn plan(
    config: &Config,
    platforms: &Platforms,
    params: &AgentParams,
    entry: Option<&SessionEntry>,
) -> Result<DeliveryPlan, RequestFailure> {
    if params.deliver != Some(true) {
        return Ok(DeliveryPlan::Told);
    }
    let asked = given(params.reply_channel.as_deref()).or(given(params.channel.as_deref()));
    let named = asked.filter(|name| !name.eq_ignore_ascii_case("last")).and_then(registry::by_name);
    if named.is_some_and(|info| !info.deliverable) {
        return Ok(DeliveryPlan::Impossible(NOT_TO_WEBCHAT.to_owned()));
    }
    let to = given(params.reply_to.as_deref()).or(given(params.to.as_deref()));
    let configured = platforms.usable(config);
    let fallback = match configured.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    let is_used = named.is_none_or(|info| configured.contains(&info.id));
    let last = entry.and_then(of_entry);
    let routed = route(last.as_ref(), RouteWish { channel: asked, to, fallback, allow_mismatched_to: false });
    match address(config, platforms, params, routed) {
        Ok(address) => Ok(DeliveryPlan::Sent(address)),
        Err(why) if to.is_some() || (named.is_some() && is_used) => Err(why.into()),
        Err(why) => Ok(DeliveryPlan::Impossible(format!(
            "The reply was not delivered: {}. It is kept in the session; leave out --deliver if that is enough.",
            why.message
        ))),
    }
}

fn address(
    config: &Config,
    platforms: &Platforms,
    params: &AgentParams,
    routed: Routed,
) -> Result<Address, ErrorShape> {
    let Some(id) = routed.channel else {
        return Err(ErrorShape::unavailable("no channel is connected to this gateway"));
    };
    let label = registry::by_name(&id).map_or(id.as_str(), |info| info.label).to_owned();
    let Some(channel) = platforms.channel(&id) else {
        let text = format!("cannot deliver to {id}: it is not connected; send without deliver");
        return Err(ErrorShape::unavailable(text));
    };
    let named = given(params.reply_account_id.as_deref()).or(given(params.account_id.as_deref()));
    let account = named.map(normalize_account_id).or(routed.account);
    let account = account.or_else(|| platforms.sending_account(config, &id)).unwrap_or_default();
    if platforms.at_work(&id, &account).is_none() {
        let usable = channel.account(config, &account);
        usable.map_err(|why| ErrorShape::unavailable(format!("cannot deliver to {id}: {why}")))?;
    }
    let Some(written) = routed.to else {
        let text = format!("Delivering to {label} requires target {}", channel.target_hint());
        return Err(ErrorShape::invalid(text));
    };
    let target = channel.target(&written).map_err(|error| ErrorShape::invalid(error.to_string()))?;
    let thread = given(params.thread_id.as_deref()).map(str::to_owned).or(target.thread).or(routed.thread);
    Ok(Address { channel: id, account, target: target.id, thread })
}

/// Outcome of the answer's delivery.
pub(super) async fn outcome(dispatch: &Dispatch, run_id: &RunId, to: &Address) -> Delivered {
    let found = match dispatch.deliveries_of(run_id, PATIENCE).await {
        Ok(found) => found,
        Err(error) => return Delivered::failed(error.to_string()),
    };
    let mut queued = None;
    for status in found {
        match status.state {
            DeliveryState::Sent => {}
            DeliveryState::Failed => {
                let why = status.error.unwrap_or_else(|| "the platform refused it".to_owned());
                return Delivered::failed(format!("The reply was not delivered to {}: {why}", to.channel));
            }
            DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Uncertain => {
                queued = Some(Delivered::queued());
            }
        }
    }
    queued.unwrap_or_default()
}
