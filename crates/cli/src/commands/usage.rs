//! Quotas as the providers report them, for `openclaw status --usage`.

use std::time::Duration;

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use openclaw_models::{Http, ModelSettings, Models, Variables};
use openclaw_protocol::Call as _;
use openclaw_protocol::params::usage::{UsageStatus, UsageStatusResult};
use serde_json::json;

use super::gateway_probe::Probed;
use crate::client::{self, AwaitedResponse, GatewayConnection, GatewayTarget};
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Asks the gateway, which has just asked them maybe; where none answers, the providers themselves with the credentials of
/// this machine. A remote gateway that does not answer has its credentials elsewhere: then nothing is known.
pub(super) fn quotas(
    context: &CliContext,
    config: &Config,
    target: &GatewayTarget,
    probed: &Probed,
    timeout: Duration,
) -> Result<UsageStatusResult, CommandFailure> {
    client::block_on(async {
        if probed.ok
            && let Some(answer) =
                tokio::time::timeout(timeout, of_gateway(context, target)).await.ok().flatten()
        {
            return Ok(answer);
        }
        if target.bind.is_none() {
            return Ok(UsageStatusResult { updated_at: now_ms(), providers: Vec::new() });
        }
        let settings = ModelSettings::from(config);
        let agent_dir = config.agent(&config.default_agent()).agent_dir;
        let models = Models::new(Variables::from(context.env()), Http::default());
        let providers = models.quotas(&settings, &agent_dir).await;
        Ok(UsageStatusResult { updated_at: now_ms(), providers })
    })
}

async fn of_gateway(context: &CliContext, target: &GatewayTarget) -> Option<UsageStatusResult> {
    let mut connection = GatewayConnection::open(context, target).await.ok()?;
    let answer = connection.call(UsageStatus::NAME, json!({}), AwaitedResponse::First).await;
    connection.close().await;
    serde_json::from_value(answer.ok()?).ok()
}
