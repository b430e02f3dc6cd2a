//! `usage.status`, `usage.cost` and `sessions.usage*` (spec `gateway-protocol.md` §6.1, §6.2). The
//! counting is done in [`openclaw_sessions::usage`]; here models get their prices.

use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::usage::{
    SessionsUsage, SessionsUsageLogsParams, SessionsUsageLogsResult, SessionsUsageParams,
    SessionsUsageResult, SessionsUsageTimeseriesParams, SessionsUsageTimeseriesResult, UsageCost,
    UsageCostParams, UsageCostResult, UsageStatusResult,
};
use openclaw_protocol::{AgentId, Call, ErrorShape};
use openclaw_runtime::surroundings::prices;
use openclaw_sessions::usage::{self, Ledger, UsageError};

use crate::request::{Failure, RequestContext};

/// Usage as reported by the providers for which the default agent has credentials.
pub(super) async fn status(ctx: RequestContext, _params: Ignored) -> Result<UsageStatusResult, Failure> {
    let settings = ctx.gateway.settings();
    let agent_dir = settings.config.agent(&settings.config.default_agent()).agent_dir;
    Ok(ctx.gateway.around.quotas.get(&ctx.gateway.models, &settings.models, &agent_dir).await)
}

pub(super) async fn cost(ctx: RequestContext, params: UsageCostParams) -> Result<UsageCostResult, Failure> {
    let agents = ctx.gateway.config().agent_ids();
    usage::cost(ledger(&ctx, &agents), &params).await.map_err(|error| failure(UsageCost::NAME, error))
}

pub(super) async fn sessions(
    ctx: RequestContext,
    params: SessionsUsageParams,
) -> Result<SessionsUsageResult, Failure> {
    let agents = ctx.gateway.config().agent_ids();
    usage::report(ledger(&ctx, &agents), &params).await.map_err(|error| failure(SessionsUsage::NAME, error))
}

pub(super) async fn timeseries(
    ctx: RequestContext,
    params: SessionsUsageTimeseriesParams,
) -> Result<SessionsUsageTimeseriesResult, Failure> {
    Ok(usage::timeseries(ledger(&ctx, &[]), &params).await?)
}

pub(super) async fn logs(
    ctx: RequestContext,
    params: SessionsUsageLogsParams,
) -> Result<SessionsUsageLogsResult, Failure> {
    Ok(usage::logs(ledger(&ctx, &[]), &params).await?)
}

fn ledger<'a>(ctx: &'a RequestContext, agents: &'a [AgentId]) -> Ledger<'a> {
    let gateway = &ctx.gateway;
    let prices = prices(&gateway.settings().models);
    let (store, index) = (gateway.sessions.as_ref(), &gateway.around.usage);
    Ledger { store, index, agents, prices }
}

/// Failure for usage requests. Invalid dates are reported like other params that are wrong.
fn failure(method: &str, error: UsageError) -> Failure {
    match error {
        UsageError::Range(error) => ErrorShape::invalid_params(method, &error.to_string()).into(),
        other => other.into(),
    }
}
