//! `channels.*` and `trace` (spec `gateway-protocol.md` §6.9, `channels.md` §15).

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Channel, Unusable, registry, switched_off};
use openclaw_config::write::{Actor, WriteError, unset_value};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::channels::{
    ChannelAccountParams, ChannelAccountResult, ChannelsLogoutParams, ChannelsLogoutResult,
    ChannelsStatusParams, ChannelsStatusResult, TraceParams, TraceResult,
};
use openclaw_sessions::key::normalize_account_id;

use super::config_change::change;
use crate::channels::snapshot;
use crate::request::{Failure, RequestContext};

/// How long platforms may take unless the client says, and at least.
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
        let off = switched_off(&config, id, &account_id).filter(|_| why == Unusable::Disabled);
        let why = off.map_or_else(|| why.to_string(), |off| format!("{off}. Run: {}", off.remedy()));
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

/// Takes the token out of the configuration. One in the environment or in a file stays, and is told of.
pub(super) async fn logout(
    ctx: RequestContext,
    params: ChannelsLogoutParams,
) -> Result<ChannelsLogoutResult, Failure> {
    let (channel, account_id) = named(&ctx, &params, "channels.logout")?;
    let id = channel.info().id;
    let path = credential_path(&ctx, id, &account_id);
    let keys = channel.credential_keys();
    let removed = change(&ctx, move |loaded| {
        let mut any = false;
        for key in keys {
            let mut path = path.clone();
            path.push((*key).to_owned());
            // The text on disk is newer after each.
            any |= unset_value(loaded, &path, Actor::Rpc)?.is_some();
        }
        Ok::<_, WriteError>(any)
    });
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

/// Where the file has an account's keys.
fn credential_path(ctx: &RequestContext, channel: &str, account: &str) -> Vec<String> {
    let config = ctx.gateway.config();
    let pointer = format!("/channels/{channel}/accounts");
    let accounts = config.document().pointer(&pointer).and_then(serde_json::Value::as_object);
    let own = accounts.into_iter().flatten().find(|(name, _)| normalize_account_id(name) == account);
    let section = ["channels", channel].map(str::to_owned).to_vec();
    match own {
        Some((name, _)) => [section, vec!["accounts".to_owned(), name.clone()]].concat(),
        None => section,
    }
}

/// The platform and account that a request names.
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
    Ok((channel, account.unwrap_or_default()))
}

pub(super) async fn trace(ctx: RequestContext, params: TraceParams) -> Result<TraceResult, Failure> {
    let id = params.id.as_deref().map(str::trim).filter(|id| !id.is_empty() && *id != "last");
    let told = ctx.gateway.dispatch.trace(id).await;
    let mut trace = told.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?;
    super::undelivered::tell_accounts(&ctx.gateway, &mut trace);
    Ok(trace)
}
