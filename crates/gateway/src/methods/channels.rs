//! `channels.*` and `trace` (spec `gateway-protocol.md` §6.9, `channels.md` §15).

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::account_keys::take_credentials;
use openclaw_channels::{Channel, Platforms, UnknownAccount, told_unusable};
use openclaw_config::write::Actor;
use openclaw_config::{normalize_account_id, registry};
use openclaw_dispatch::Dispatch;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::channels::{
    ChannelAccountParams, ChannelAccountResult, ChannelsLogoutParams, ChannelsLogoutResult,
    ChannelsStatusParams, ChannelsStatusResult, TraceParams, TraceResult,
};

use super::config_change::change;
use crate::channels::ChannelManager;
use crate::channels::snapshot::{self, AccountBoard};
use crate::current_settings::CurrentSettings;
use crate::reload::Reload;
use crate::request::RequestFailure;

/// Time in milliseconds that platforms have to answer a probe unless the client sets one; also the
/// minimum.
const PROBE: u64 = 10_000;
const SHORTEST_PROBE: u64 = 1_000;

/// Parts of the gateway that `channels.*` and `trace` use.
pub(super) struct ChannelMethods {
    pub(super) settings: CurrentSettings,
    pub(super) platforms: Arc<Platforms>,
    pub(super) manager: Arc<ChannelManager>,
    pub(super) accounts: Arc<AccountBoard>,
    pub(super) dispatch: Dispatch,
    pub(super) reload: Reload,
}

pub(super) async fn status(
    parts: &ChannelMethods,
    params: ChannelsStatusParams,
) -> Result<ChannelsStatusResult, RequestFailure> {
    let patience = Duration::from_millis(params.timeout_ms.unwrap_or(PROBE).max(SHORTEST_PROBE));
    let probe = params.probe.unwrap_or_default().then_some(patience);
    Ok(snapshot::status(&parts.accounts, probe).await)
}

pub(super) async fn start(
    parts: &ChannelMethods,
    params: ChannelAccountParams,
) -> Result<ChannelAccountResult, RequestFailure> {
    let (channel, account_id) = named(parts, &params, "channels.start")?;
    let id = channel.info().id;
    let config = parts.settings.config();
    if let Err(why) = channel.account(&config, &account_id) {
        let why = told_unusable(&config, id, &account_id, &why);
        return Err(ErrorShape::unavailable(format!("Error: {why}")).into());
    }
    parts.manager.start(id, &account_id).await;
    let running = parts.manager.is_started(id, &account_id).await;
    Ok(ChannelAccountResult { channel: id.to_owned(), account_id, running })
}

pub(super) async fn stop(
    parts: &ChannelMethods,
    params: ChannelAccountParams,
) -> Result<ChannelAccountResult, RequestFailure> {
    let (channel, account_id) = named(parts, &params, "channels.stop")?;
    let id = channel.info().id;
    parts.manager.stop(id, &account_id).await;
    Ok(ChannelAccountResult { channel: id.to_owned(), account_id, running: false })
}

/// Takes the token out of the configuration. A token in the environment or in a file stays, and is
/// reported.
pub(super) async fn logout(
    parts: &ChannelMethods,
    params: ChannelsLogoutParams,
) -> Result<ChannelsLogoutResult, RequestFailure> {
    let (channel, account_id) = named(parts, &params, "channels.logout")?;
    let id = channel.info().id;
    let (platform, account) = (Arc::clone(&channel), account_id.clone());
    let removed = change(&parts.reload, move |loaded| {
        take_credentials(loaded, platform.as_ref(), &account, Actor::Rpc)
    });
    let cleared = removed.await?;
    let source = channel.credential_source(&parts.settings.config(), &account_id);
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
    parts: &ChannelMethods,
    params: &ChannelAccountParams,
    method: &str,
) -> Result<(Arc<dyn Channel>, String), RequestFailure> {
    let info = registry::by_name(&params.channel);
    let channel = info.and_then(|info| parts.platforms.channel(info.id)).cloned();
    let channel = channel.ok_or_else(|| ErrorShape::invalid(format!("invalid {method} channel")))?;
    let config = parts.settings.config();
    let account = params.account_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let account = account.map(normalize_account_id);
    let account = account.or_else(|| parts.platforms.default_account(&config, channel.info().id));
    let account = account.unwrap_or_default();
    UnknownAccount::check(channel.as_ref(), &config, &account)
        .map_err(|unknown| ErrorShape::invalid(format!("Error: {unknown}")))?;
    Ok((channel, account))
}

pub(super) async fn trace(
    parts: &ChannelMethods,
    params: TraceParams,
) -> Result<TraceResult, RequestFailure> {
    let id = params.id.as_deref().map(str::trim).filter(|id| !id.is_empty() && *id != "last");
    let told = parts.dispatch.trace(id).await;
    let mut trace = told.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?;
    super::undelivered::tell_accounts(&parts.platforms, &parts.settings.config(), &mut trace);
    Ok(trace)
}
