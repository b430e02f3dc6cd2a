//! `models.list` (spec `gateway-protocol.md` §6.6).

use openclaw_models::Models;
use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::models::{ModelChoice, ModelsListResult};

use crate::current_settings::CurrentSettings;
use crate::request::RequestFailure;

/// Parts of the gateway that `models.list` uses.
pub(super) struct ModelMethods {
    pub(super) settings: CurrentSettings,
    pub(super) models: Models,
}

pub(super) async fn list(parts: &ModelMethods, _: Nothing) -> Result<ModelsListResult, RequestFailure> {
    let settings = parts.settings.get();
    let agent_dir = settings.config.agent(&settings.config.default_agent()).agent_dir;
    let rows = parts.models.ask_for_rows(&settings.models, &agent_dir).await;
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
