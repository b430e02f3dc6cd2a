//! `config.*` and `update.run` (spec `gateway-protocol.md` §6.7). [`crate::control`] decides what
//! is written and when it needs a restart.

use std::time::Duration;

use openclaw_config::write::Actor;
use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::config::{
    ConfigChangeParams, ConfigGetResult, ConfigSchemaResult, ConfigSetParams, ConfigWritten, UpdateRunParams,
    UpdateRunResult,
};
use tokio::task::spawn_blocking;

use super::keys::{given, session_key_of};
use crate::control::Notice;
use crate::control::config_text::{ConfigChange, Method};
use crate::request::{Failure, RequestContext};

/// Reads the file as it is now: it may have been edited since the gateway read it.
pub(super) async fn get(ctx: RequestContext, _params: Nothing) -> Result<ConfigGetResult, Failure> {
    let environment = ctx.gateway.loaded.environment.clone();
    Ok(spawn_blocking(move || openclaw_config::load(&environment).snapshot.redacted()).await?)
}

pub(super) async fn schema(_ctx: RequestContext, _params: Nothing) -> Result<ConfigSchemaResult, Failure> {
    Ok(spawn_blocking(openclaw_config::config_schema).await?)
}

pub(super) async fn set(ctx: RequestContext, params: ConfigSetParams) -> Result<ConfigWritten, Failure> {
    let base_hash = params.base_hash.map(|hash| hash.0);
    let change = ConfigChange::of_client(Method::Set, params.raw.0, base_hash);
    Ok(ctx.gateway.around.control.change(change, Actor::Rpc, Notice::default()).await?)
}

pub(super) async fn apply(ctx: RequestContext, params: ConfigChangeParams) -> Result<ConfigWritten, Failure> {
    change(&ctx, Method::Apply, params).await
}

pub(super) async fn patch(ctx: RequestContext, params: ConfigChangeParams) -> Result<ConfigWritten, Failure> {
    change(&ctx, Method::Patch, params).await
}

async fn change(
    ctx: &RequestContext,
    method: Method,
    params: ConfigChangeParams,
) -> Result<ConfigWritten, Failure> {
    let notice = notice(ctx, params.session_key.as_deref(), params.note, params.restart_delay_ms).await?;
    let change = ConfigChange::of_client(method, params.raw.0, params.base_hash.map(|hash| hash.0));
    Ok(ctx.gateway.around.control.change(change, Actor::Rpc, notice).await?)
}

pub(super) async fn update(ctx: RequestContext, params: UpdateRunParams) -> Result<UpdateRunResult, Failure> {
    let notice = notice(&ctx, params.session_key.as_deref(), params.note, params.restart_delay_ms).await?;
    Ok(ctx.gateway.around.control.update(notice).await)
}

async fn notice(
    ctx: &RequestContext,
    session: Option<&str>,
    note: Option<String>,
    delay_ms: Option<u64>,
) -> Result<Notice, Failure> {
    let session = session_key_of(ctx, given(session)).await?;
    Ok(Notice { session, note, delay: delay_ms.map(Duration::from_millis) })
}
