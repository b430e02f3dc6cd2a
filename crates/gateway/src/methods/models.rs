//! `models.list` (spec `gateway-protocol.md` §6.6).

use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::models::{ModelChoice, ModelsListResult};

use crate::request::{Failure, RequestContext};

pub(super) async fn list(ctx: RequestContext, _params: Nothing) -> Result<ModelsListResult, Failure> {
    let settings = ctx.gateway.settings();
    let agent_dir = settings.config.agent(&settings.config.default_agent()).agent_dir;
    let rows = ctx.gateway.models.ask_for_rows(&settings.models, &agent_dir).await;
    let models = rows.into_iter().map(|row| ModelChoice {
        id: row.id,
        name: row.name,
        provider: row.provider,
        context_window: row.context_window,
        reasoning: Some(row.reasoning),
        input: Some(row.input),
    });
    Ok(ModelsListResult { models: models.collect() })
}
