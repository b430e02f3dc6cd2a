//! `usage.status`, `usage.cost` and `sessions.usage*` (spec `gateway-protocol.md` §6.1, §6.2). The
//! counting is done in [`openclaw_sessions::usage`]; here models get their prices.

use std::sync::Arc;

use openclaw_models::Models;
use openclaw_models::quota::QuotaCache;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::usage::{
    SessionsUsage, SessionsUsageLogsParams, SessionsUsageLogsResult, SessionsUsageParams,
    SessionsUsageResult, SessionsUsageTimeseriesParams, SessionsUsageTimeseriesResult, UsageCost,
    UsageCostParams, UsageCostResult, UsageStatusResult,
};
use openclaw_protocol::{AgentId, Call, ErrorShape};
use openclaw_runtime::surroundings::prices;
use openclaw_sessions::SessionStore;
use openclaw_sessions::usage::{self, Ledger, UsageError, UsageIndex};

use crate::current_settings::CurrentSettings;
use crate::request::RequestFailure;

/// Parts of the gateway that `usage.*` and `sessions.usage*` use.
pub(super) struct UsageMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) models: Models,
    pub(super) quotas: Arc<QuotaCache>,
    pub(super) usage: UsageIndex,
}

/// Usage as reported by the providers for which the default agent has credentials.
pub(super) async fn status(parts: &UsageMethods, _: Ignored) -> Result<UsageStatusResult, RequestFailure> {
    let settings = parts.settings.get();
    let agent_dir = settings.config.agent(&settings.config.default_agent()).agent_dir;
    Ok(parts.quotas.get(&parts.models, &settings.models, &agent_dir).await)
}

pub(super) async fn cost(
    parts: &UsageMethods,
    params: UsageCostParams,
) -> Result<UsageCostResult, RequestFailure> {
    let agents = parts.settings.config().agent_ids();
    usage::cost(ledger(parts, &agents), &params).await.map_err(|error| failure(UsageCost::NAME, error))
}

pub(super) async fn sessions(
    parts: &UsageMethods,
    params: SessionsUsageParams,
) -> Result<SessionsUsageResult, RequestFailure> {
    let agents = parts.settings.config().agent_ids();
    usage::report(ledger(parts, &agents), &params).await.map_err(|error| failure(SessionsUsage::NAME, error))
}

pub(super) async fn timeseries(
    parts: &UsageMethods,
    params: SessionsUsageTimeseriesParams,
) -> Result<SessionsUsageTimeseriesResult, RequestFailure> {
    Ok(usage::timeseries(ledger(parts, &[]), &params).await?)
}

pub(super) async fn logs(
    parts: &UsageMethods,
    params: SessionsUsageLogsParams,
) -> Result<SessionsUsageLogsResult, RequestFailure> {
    Ok(usage::logs(ledger(parts, &[]), &params).await?)
}

fn ledger<'a>(parts: &'a UsageMethods, agents: &'a [AgentId]) -> Ledger<'a> {
    let prices = prices(&parts.settings.get().models);
    let (store, index) = (parts.sessions.as_ref(), &parts.usage);
    Ledger { store, index, agents, prices }
}

/// Failure for usage requests. Invalid dates are reported like other params that are wrong.
fn failure(method: &str, error: UsageError) -> RequestFailure {
    match error {
        UsageError::Range(error) => ErrorShape::invalid_params(method, &error.to_string()).into(),
        other => other.into(),
    }
}
