//! `health` (spec `gateway-protocol.md` §6.1).

use openclaw_protocol::params::health::{HealthParams, HealthSnapshot};

use crate::request::{Failure, RequestContext};

pub(super) async fn health(ctx: RequestContext, params: HealthParams) -> Result<HealthSnapshot, Failure> {
    let snapshot = if params.probe == Some(true) {
        ctx.gateway.probe_health().await
    } else {
        ctx.gateway.health_snapshot().await
    };
    Ok((*snapshot).clone())
}
