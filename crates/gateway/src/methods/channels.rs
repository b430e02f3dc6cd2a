//! `channels.*` and `trace` (spec `gateway-protocol.md` §6.9, `channels.md` §15).

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::account_keys::take_credentials;
use openclaw_channels::{Channel, UnknownAccount, registry, told_unusable};
use openclaw_config::write::Actor;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::channels::{
    ChannelAccountParams, ChannelAccountResult, ChannelsLogoutParams, ChannelsLogoutResult,
    ChannelsStatusParams, ChannelsStatusResult, TraceParams, TraceResult,
};
use openclaw_sessions::key::normalize_account_id;

use super::config_change::change;
use crate::channels::snapshot;
use crate::request::{Failure, RequestContext};

/// Time in milliseconds that platforms have to answer a probe unless the client sets one; also the
/// minimum.
const PROBE: u64 = 10_000;
const SHORTEST_PROBE: u64 = 1_000;

pub(super) async fn status(
    ctx: RequestContext,
    params: ChannelsStatusParams,
) -> Result<ChannelsStatusResult, Failure> {
    let patience = Duration::from_millis(params.timeout_ms.unwrap_or(PROBE).max(SHORTEST_PROBE));
    let probe = params.probe.unwrap_or_default().then_some(patience);
    Ok(snapshot::status(&ctx.gateway, probe).await)
}

pub(super) async fn start(
    ctx: RequestContext,
    params: ChannelAccountParams,
) -> Result<ChannelAccountResult, Failure> {
    let (channel, account_id) = named(&ctx, &params, "channels.start")?;
    let id = channel.info().id;
    let config = ctx.gateway.config();
    if let Err(why) = channel.account(&config, &account_id) {
        let why = told_unusable(&config, id, &account_id, &why);
        return Err(ErrorShape::unavailable(format!("Error: {why}")).into());
    }
    ctx.gateway.channels.start(&ctx.gateway, id, &account_id).await;
    let running = ctx.gateway.channels.is_started(id, &account_id).await;
    Ok(ChannelAccountResult { channel: id.to_owned(), account_id, running })
}

pub(super) async fn stop(
    ctx: RequestContext,
    params: ChannelAccountParams,
) -> Result<ChannelAccountResult, Failure> {
    let (channel, account_id) = named(&ctx, &params, "channels.stop")?;
    let id = channel.info().id;
    ctx.gateway.channels.stop(id, &account_id).await;
    Ok(ChannelAccountResult { channel: id.to_owned(), account_id, running: false })
}

/// Takes the token out of the configuration. A token in the environment or in a file stays, and is
/// reported.
pub(super) async fn logout(
    ctx: RequestContext,
    params: ChannelsLogoutParams,
) -> Result<ChannelsLogoutResult, Failure> {
    let (channel, account_id) = named(&ctx, &params, "channels.logout")?;
    let id = channel.info().id;
    let (platform, account) = (Arc::clone(&channel), account_id.clone());
    let removed =
        change(&ctx, move |loaded| take_credentials(loaded, platform.as_ref(), &account, Actor::Rpc));
    let cleared = removed.await?;
    let source = channel.credential_source(&ctx.gateway.config(), &account_id);
    Ok(ChannelsLogoutResult {
        channel: id.to_owned(),
        account_id,
        cleared,
        logged_out: source == "none",
        env_token: source == "env",
    })
}

/// The platform and account that a request names. Both have to be there.
fn named(
    ctx: &RequestContext,
    params: &ChannelAccountParams,
    method: &str,
) -> Result<(Arc<dyn Channel>, String), Failure> {
    let info = registry::by_name(&params.channel);
    let channel = info.and_then(|info| ctx.gateway.platforms.channel(info.id)).cloned();
    let channel = channel.ok_or_else(|| ErrorShape::invalid(format!("invalid {method} channel")))?;
    let config = ctx.gateway.config();
    let account = params.account_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let account = account.map(normalize_account_id);
    let account = account.or_else(|| ctx.gateway.platforms.default_account(&config, channel.info().id));
    let account = account.unwrap_or_default();
    UnknownAccount::check(channel.as_ref(), &config, &account)
        .map_err(|unknown| ErrorShape::invalid(format!("Error: {unknown}")))?;
    Ok((channel, account))
}

pub(super) async fn trace(ctx: RequestContext, params: TraceParams) -> Result<TraceResult, Failure> {
    let id = params.id.as_deref().map(str::trim).filter(|id| !id.is_empty() && *id != "last");
    let told = ctx.gateway.dispatch.trace(id).await;
    let mut trace = told.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?;
    super::undelivered::tell_accounts(&ctx.gateway, &mut trace);
    Ok(trace)
}
