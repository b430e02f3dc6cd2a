//! `sessions.*` (spec `gateway-protocol.md` §6.2). Their meaning is defined in
//! [`openclaw_sessions::methods`]; here runs are stopped where they must be, and models are looked
//! up.
//!
//! No event of its own tells of a change: OpenClaw 2026.2.9 has none for sessions (spec §7), its clients list them again.
//! Clients hear of runs that were stopped (`chat` aborted), and of new numbers in the next `health`.

use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::text::silent::is_silent;
use openclaw_dispatch::Dispatch;
use openclaw_models::{Models, thinking};
use openclaw_protocol::Call;
use openclaw_protocol::params::sessions::{
    PreviewRole, SessionListDefaults, SessionsCompact, SessionsCompactParams, SessionsCompactResult,
    SessionsDelete, SessionsDeleteParams, SessionsDeleteResult, SessionsListParams, SessionsListResult,
    SessionsPatch, SessionsPatchParams, SessionsPatchResult, SessionsPreviewParams, SessionsPreviewResult,
    SessionsReset, SessionsResetParams, SessionsResetResult, SessionsResolveParams, SessionsResolveResult,
};
use openclaw_sessions::methods::{self, MethodError, ModelName, PatchRules};
use openclaw_sessions::store::spelled;
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{SessionKey, SessionStore};
use serde_json::value::RawValue;

use super::default_model::DefaultModels;
use super::keys::{require_known_agent, session_key};
use crate::current_settings::CurrentSettings;
use crate::request::{RequestContext, RequestFailure};

/// Time that runs get to stop before a session is reset, deleted or cut; settings wait for that as
/// long.
const QUIESCE: Duration = Duration::from_secs(15);

/// Parts of the gateway that `sessions.*` use.
pub(super) struct SessionMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) transcripts: Transcripts,
    pub(super) models: Models,
    pub(super) dispatch: Dispatch,
}

pub(super) async fn list(
    parts: &SessionMethods,
    params: SessionsListParams,
) -> Result<SessionsListResult<Arc<RawValue>>, RequestFailure> {
    let settings = parts.settings.get();
    let models = DefaultModels::of(&parts.models, &settings).await;
    let defaults = SessionListDefaults {
        model_provider: models.provider(),
        model: models.model(),
        context_tokens: models.context_tokens,
    };
    let store = parts.sessions.as_ref();
    let states = parts.dispatch.states_of_subagents();
    let (model, state) = (move |agent: &_| models.get(agent), move |key: &_| states.get(key).copied());
    Ok(methods::list(store, &parts.transcripts, &params, defaults, model, state).await?)
}

pub(super) async fn preview(
    parts: &SessionMethods,
    params: SessionsPreviewParams,
) -> Result<SessionsPreviewResult, RequestFailure> {
    let mut result = methods::preview(parts.sessions.as_ref(), &parts.transcripts, &params).await?;
    // As in `chat.history`: answers that nobody was to see.
    for preview in &mut result.previews {
        preview.items.retain(|item| item.role != PreviewRole::Assistant || !is_silent(&item.text));
    }
    Ok(result)
}

pub(super) async fn resolve(
    parts: &SessionMethods,
    params: SessionsResolveParams,
) -> Result<SessionsResolveResult, RequestFailure> {
    Ok(methods::resolve(parts.sessions.as_ref(), &params).await?)
}

pub(super) async fn patch(
    parts: &SessionMethods,
    ctx: RequestContext,
    params: SessionsPatchParams,
) -> Result<SessionsPatchResult, RequestFailure> {
    let settings = parts.settings.get();
    let key = session_key(&*parts.sessions, &params.key.0).await?;
    let agent = parts.sessions.rules().agent_of(&key);
    require_known_agent(&parts.settings, &parts.sessions, SessionsPatch::NAME, &agent).await?;
    let agent_dir = settings.config.agent(&agent).agent_dir;
    let choices = parts.models.choices(&settings.models, &agent, &agent_dir).await;
    let default = choices.default_model();
    let default_model = ModelName::new(default.provider.as_str(), default.model.as_str());
    let rules = PatchRules {
        default_model,
        resolve_model: Arc::new(move |text| {
            let model = choices.strict(text).map_err(|error| error.to_string())?;
            Ok(ModelName::new(model.provider.as_str(), model.model.as_str()))
        }),
        has_xhigh: thinking::has_xhigh,
        xhigh_models: spoken_list(&thinking::xhigh_models()),
    };
    let store = Arc::clone(&parts.sessions);
    let names_model = !params.model.is_keep();
    let change = async move { methods::patch(&*store, &params, &rules).await };
    let placed = parts.dispatch.change_settings(&key, QUIESCE, change).await;
    let patched = ctx.outcome(placed).await??;
    if names_model {
        parts.dispatch.model_chosen(&key);
    }
    Ok(patched)
}

/// `a, b, c` as `a, b or c`.
fn spoken_list(list: &str) -> String {
    list.rsplit_once(", ").map_or_else(|| list.to_owned(), |(head, last)| format!("{head} or {last}"))
}

pub(super) async fn reset(
    parts: &SessionMethods,
    ctx: RequestContext,
    params: SessionsResetParams,
) -> Result<SessionsResetResult, RequestFailure> {
    let key = session_key(&*parts.sessions, &params.key.0).await?;
    require_agent_or_row(parts, SessionsReset::NAME, &key).await?;
    let store = Arc::clone(&parts.sessions);
    let (dispatch, reset_key) = (parts.dispatch.clone(), key.clone());
    let change = async move {
        let previous = dispatch.entry_for_hooks(&reset_key).await;
        let reset = methods::reset(&*store, &params).await?;
        dispatch.tell_reset(&reset_key, previous).await;
        Ok(reset)
    };
    alone(parts, &ctx, &key, Box::pin(change)).await
}

pub(super) async fn delete(
    parts: &SessionMethods,
    ctx: RequestContext,
    params: SessionsDeleteParams,
) -> Result<SessionsDeleteResult, RequestFailure> {
    let key = methods::require_deletable(parts.sessions.rules(), &params.key.0)?;
    let key = spelled(&*parts.sessions, key).await;
    require_agent_or_row(parts, SessionsDelete::NAME, &key).await?;
    let (store, transcripts) = (Arc::clone(&parts.sessions), parts.transcripts.clone());
    let (dispatch, deleted_key) = (parts.dispatch.clone(), key.clone());
    let change = async move {
        dispatch.stop_subagents(&deleted_key).await;
        let ended = dispatch.end_of(&deleted_key).await;
        let deleted = methods::delete(&*store, &transcripts, &params, QUIESCE).await?;
        if let Some(ended) = ended.filter(|_| deleted.deleted) {
            ended.tell();
        }
        Ok(deleted)
    };
    alone(parts, &ctx, &key, change).await
}

pub(super) async fn compact(
    parts: &SessionMethods,
    ctx: RequestContext,
    params: SessionsCompactParams,
) -> Result<SessionsCompactResult, RequestFailure> {
    let key = session_key(&*parts.sessions, &params.key.0).await?;
    require_agent_or_row(parts, SessionsCompact::NAME, &key).await?;
    let (store, transcripts) = (Arc::clone(&parts.sessions), parts.transcripts.clone());
    alone(parts, &ctx, &key, async move { methods::compact(&*store, &transcripts, &params, QUIESCE).await })
        .await
}

/// Changes a session between the messages that were sent before and those that come later. Runs under way are stopped: what they
/// write at their end would be taken for the new conversation's.
async fn alone<T: Send + 'static>(
    parts: &SessionMethods,
    ctx: &RequestContext,
    key: &SessionKey,
    change: impl Future<Output = Result<T, MethodError>> + Send + 'static,
) -> Result<T, RequestFailure> {
    let placed = parts.dispatch.change(key, QUIESCE, change).await;
    Ok(ctx.outcome(placed).await??)
}

/// Refuses keys of agents that do not exist. Rows an agent left behind in a shared store can be worked on.
async fn require_agent_or_row(
    parts: &SessionMethods,
    method: &str,
    key: &SessionKey,
) -> Result<(), RequestFailure> {
    let agent = parts.sessions.rules().agent_of(key);
    let Err(unknown) = require_known_agent(&parts.settings, &parts.sessions, method, &agent).await else {
        return Ok(());
    };
    match parts.sessions.get(key).await? {
        Some(_) => Ok(()),
        None => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_for_people_end_with_or() {
        let rows = [("", ""), ("a", "a"), ("a, b", "a or b"), ("a, b, c", "a, b or c")];
        for (list, expect) in rows {
            assert_eq!(spoken_list(list), expect);
        }
    }
}
