//! `config.get` and `config.schema` (spec `gateway-protocol.md` §6.7).

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::config::{ConfigGetResult, ConfigSchemaResult};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::request::{Failure, RequestContext};

/// Reads the file as it is now: it may have been edited since the gateway read it.
pub(super) async fn get(ctx: RequestContext, _params: Nothing) -> Result<ConfigGetResult, Failure> {
    let environment = ctx.gateway.loaded.environment.clone();
    off_thread(move || openclaw_config::load(&environment).snapshot.to_redacted_json()).await
}

pub(super) async fn schema(_ctx: RequestContext, _params: Nothing) -> Result<ConfigSchemaResult, Failure> {
    off_thread(openclaw_config::config_schema).await
}

/// Makes a document on a blocking thread, where files and large values hold nobody up.
async fn off_thread<T: DeserializeOwned + Send + 'static>(
    make: impl FnOnce() -> Value + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(move || serde_json::from_value(make())).await {
        Ok(document) => Ok(document?),
        Err(error) => Err(ErrorShape::unavailable(format!("Error: {error}")).into()),
    }
}
