//! `health` (spec `gateway-protocol.md` §6.1).

use std::sync::Arc;

use openclaw_protocol::params::health::{HealthParams, HealthSnapshot};

use crate::health::HealthMonitor;
use crate::request::RequestFailure;

pub(super) async fn health(
    monitor: &Arc<HealthMonitor>,
    params: HealthParams,
) -> Result<HealthSnapshot, RequestFailure> {
    let snapshot = if params.probe == Some(true) { monitor.probe().await } else { monitor.snapshot().await };
    Ok((*snapshot).clone())
}
