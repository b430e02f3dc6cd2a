//! `config.get` and `config.schema` (spec `gateway-protocol.md` §6.7).

use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::config::{ConfigGetResult, ConfigSchemaResult};
use tokio::task::spawn_blocking;

use crate::request::{Failure, RequestContext};

/// Reads the file as it is now: it may have been edited since the gateway read it.
pub(super) async fn get(ctx: RequestContext, _params: Nothing) -> Result<ConfigGetResult, Failure> {
    let environment = ctx.gateway.loaded.environment.clone();
    Ok(spawn_blocking(move || openclaw_config::load(&environment).snapshot.redacted()).await?)
}

pub(super) async fn schema(_ctx: RequestContext, _params: Nothing) -> Result<ConfigSchemaResult, Failure> {
    Ok(spawn_blocking(openclaw_config::config_schema).await?)
}
