//! `config.*` and `update.run` (spec `gateway-protocol.md` §6.7). [`crate::control`] decides what
//! is written and when it needs a restart.

use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Environment;
use openclaw_config::write::Actor;
use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::config::{
    ConfigChangeParams, ConfigGetResult, ConfigSchemaResult, ConfigSetParams, ConfigWritten, UpdateRunParams,
    UpdateRunResult,
};
use openclaw_sessions::SessionStore;
use tokio::task::spawn_blocking;

use super::keys::{given, session_key_of};
use crate::control::config_text::{ConfigChange, Method};
use crate::control::{GatewayControl, Notice};
use crate::request::RequestFailure;

/// Parts of the gateway that `config.*` and `update.run` use.
pub(super) struct ConfigMethods {
    /// Environment of the config that the gateway started with.
    pub(super) environment: Environment,
    pub(super) control: GatewayControl,
    pub(super) sessions: Arc<dyn SessionStore>,
}

/// Reads the file as it is now: it may have been edited since the gateway read it.
pub(super) async fn get(parts: &ConfigMethods, _: Nothing) -> Result<ConfigGetResult, RequestFailure> {
    let environment = parts.environment.clone();
    Ok(spawn_blocking(move || openclaw_config::load(&environment).snapshot.redacted()).await?)
}

pub(super) async fn schema(_: &ConfigMethods, _: Nothing) -> Result<ConfigSchemaResult, RequestFailure> {
    Ok(spawn_blocking(openclaw_config::config_schema).await?)
}

pub(super) async fn set(
    parts: &ConfigMethods,
    params: ConfigSetParams,
) -> Result<ConfigWritten, RequestFailure> {
    let base_hash = params.base_hash.map(|hash| hash.0);
    let change = ConfigChange::of_client(Method::Set, params.raw.0, base_hash);
    Ok(parts.control.change(change, Actor::Rpc, Notice::default()).await?)
}

pub(super) async fn apply(
    parts: &ConfigMethods,
    params: ConfigChangeParams,
) -> Result<ConfigWritten, RequestFailure> {
    change(parts, Method::Apply, params).await
}

pub(super) async fn patch(
    parts: &ConfigMethods,
    params: ConfigChangeParams,
) -> Result<ConfigWritten, RequestFailure> {
    change(parts, Method::Patch, params).await
}

async fn change(
    parts: &ConfigMethods,
    method: Method,
    params: ConfigChangeParams,
) -> Result<ConfigWritten, RequestFailure> {
    let notice = notice(parts, params.session_key.as_deref(), params.note, params.restart_delay_ms).await?;
    let change = ConfigChange::of_client(method, params.raw.0, params.base_hash.map(|hash| hash.0));
    Ok(parts.control.change(change, Actor::Rpc, notice).await?)
}

pub(super) async fn update(
    parts: &ConfigMethods,
    params: UpdateRunParams,
) -> Result<UpdateRunResult, RequestFailure> {
    let notice = notice(parts, params.session_key.as_deref(), params.note, params.restart_delay_ms).await?;
    Ok(parts.control.update(notice).await)
}

async fn notice(
    parts: &ConfigMethods,
    session: Option<&str>,
    note: Option<String>,
    delay_ms: Option<u64>,
) -> Result<Notice, RequestFailure> {
    let session = session_key_of(&*parts.sessions, given(session)).await?;
    Ok(Notice { session, note, delay: delay_ms.map(Duration::from_millis) })
}
