//! `skills.*` (spec `gateway-protocol.md` §6.6): what there is to say of skills, and changes of what they need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::skills::install::InstallRequest;
use openclaw_agent::skills::{self, SkillBook, SkillChange};
use openclaw_config::write::Actor;
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::skills::{
    SkillsBinsResult, SkillsInstallParams, SkillsInstallResult, SkillsStatusParams, SkillsStatusResult,
    SkillsUpdateParams, SkillsUpdateResult,
};
use openclaw_protocol::{AgentId, Payload};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config_change::change;
use crate::current_settings::CurrentSettings;
use crate::reload::Reload;
use crate::request::RequestFailure;

/// Parts of the gateway that `skills.*` use.
pub(super) struct SkillMethods {
    pub(super) settings: CurrentSettings,
    pub(super) skills: Arc<SkillBook>,
    pub(super) reload: Reload,
    /// Owns installations, which go on without the caller.
    pub(super) tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
}

pub(super) async fn status(
    parts: &SkillMethods,
    params: SkillsStatusParams,
) -> Result<SkillsStatusResult, RequestFailure> {
    let config = parts.settings.config();
    let id = match params.agent_id {
        Some(asked) => {
            let id = AgentId::normalize(&asked.0);
            if !config.has_agent(&id) {
                return Err(ErrorShape::invalid(format!("unknown agent id \"{}\"", asked.0)).into());
            }
            id
        }
        None => config.default_agent(),
    };
    Ok(spawn_blocking(move || skills::status::status(&config, &config.agent(&id).workspace)).await?)
}

pub(super) async fn bins(parts: &SkillMethods, _: Nothing) -> Result<SkillsBinsResult, RequestFailure> {
    let config = parts.settings.config();
    let bins = spawn_blocking(move || {
        let mut workspaces: Vec<PathBuf> =
            config.agent_ids().iter().map(|id| config.agent(id).workspace).collect();
        workspaces.dedup();
        skills::status::bins(&config, workspaces.iter().map(PathBuf::as_path))
    });
    Ok(SkillsBinsResult { bins: bins.await?.into_iter().collect() })
}

/// Installs what a skill needs. Goes on when the caller disconnects: half an installation helps
/// nobody.
pub(super) async fn install(
    parts: &SkillMethods,
    params: SkillsInstallParams,
) -> Result<SkillsInstallResult, RequestFailure> {
    let (settings, stopping) = (parts.settings.clone(), parts.stopping.clone());
    let book = Arc::clone(&parts.skills);
    let installing = parts.tasks.spawn(async move {
        let config = settings.config();
        let workspace = config.agent(&config.default_agent()).workspace;
        let request = InstallRequest {
            name: params.name.0.trim(),
            install_id: params.install_id.0.trim(),
            timeout: params.timeout_ms.map(Duration::from_millis),
        };
        let done = skills::install::install(&config, &workspace, request, &stopping).await;
        if done.ok {
            // Programs that were missing may be there now.
            book.look_again();
        }
        done
    });
    let done = installing.await?;
    if done.ok {
        return Ok(done);
    }
    Err(RequestFailure::with_payload(ErrorShape::unavailable(done.message.clone()), Payload::of(&done)?))
}

pub(super) async fn update(
    parts: &SkillMethods,
    params: SkillsUpdateParams,
) -> Result<SkillsUpdateResult, RequestFailure> {
    let skill_key = params.skill_key.0.trim().to_owned();
    let key = skill_key.clone();
    let wanted =
        SkillChange { enabled: params.enabled, api_key: params.api_key, env: params.env.unwrap_or_default() };
    let config =
        change(&parts.reload, move |loaded| skills::update(loaded, &key, &wanted, Actor::Rpc)).await?;
    Ok(SkillsUpdateResult { ok: true, skill_key, config })
}
