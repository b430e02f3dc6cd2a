//! `sessions.*` (spec `gateway-protocol.md` §6.2). Their meaning is defined in
//! [`openclaw_sessions::methods`]; here runs are stopped where they must be, and models are looked
//! up.
//!
//! No event of its own tells of a change: OpenClaw 2026.2.9 has none for sessions (spec §7), its clients list them again.
//! Clients hear of runs that were stopped (`chat` aborted), and of new numbers in the next `health`.

use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::text::silent::is_silent;
use openclaw_models::thinking;
use openclaw_protocol::Call;
use openclaw_protocol::params::sessions::{
    PreviewRole, SessionListDefaults, SessionsCompact, SessionsCompactParams, SessionsCompactResult,
    SessionsDelete, SessionsDeleteParams, SessionsDeleteResult, SessionsListParams, SessionsListResult,
    SessionsPatch, SessionsPatchParams, SessionsPatchResult, SessionsPreviewParams, SessionsPreviewResult,
    SessionsReset, SessionsResetParams, SessionsResetResult, SessionsResolveParams, SessionsResolveResult,
};
use openclaw_sessions::SessionKey;
use openclaw_sessions::methods::{self, MethodError, ModelName, PatchRules};
use openclaw_sessions::store::spelled;
use serde_json::value::RawValue;

use super::default_model::DefaultModels;
use super::keys::{require_known_agent, session_key};
use crate::request::{Failure, RequestContext};

/// Time that runs get to stop before a session is reset, deleted or cut; settings wait for that as
/// long.
const QUIESCE: Duration = Duration::from_secs(15);

pub(super) async fn list(
    ctx: RequestContext,
    params: SessionsListParams,
) -> Result<SessionsListResult<Arc<RawValue>>, Failure> {
    let settings = ctx.gateway.settings();
    let models = DefaultModels::of(&ctx, &settings).await;
    let defaults = SessionListDefaults {
        model_provider: models.provider(),
        model: models.model(),
        context_tokens: models.context_tokens,
    };
    let store = ctx.gateway.sessions.as_ref();
    let states = ctx.gateway.dispatch.states_of_subagents();
    let (model, state) = (move |agent: &_| models.get(agent), move |key: &_| states.get(key).copied());
    Ok(methods::list(store, &ctx.gateway.transcripts, &params, defaults, model, state).await?)
}

pub(super) async fn preview(
    ctx: RequestContext,
    params: SessionsPreviewParams,
) -> Result<SessionsPreviewResult, Failure> {
    let mut result =
        methods::preview(ctx.gateway.sessions.as_ref(), &ctx.gateway.transcripts, &params).await?;
    // As in `chat.history`: answers that nobody was to see.
    for preview in &mut result.previews {
        preview.items.retain(|item| item.role != PreviewRole::Assistant || !is_silent(&item.text));
    }
    Ok(result)
}

pub(super) async fn resolve(
    ctx: RequestContext,
    params: SessionsResolveParams,
) -> Result<SessionsResolveResult, Failure> {
    Ok(methods::resolve(ctx.gateway.sessions.as_ref(), &params).await?)
}

pub(super) async fn patch(
    ctx: RequestContext,
    params: SessionsPatchParams,
) -> Result<SessionsPatchResult, Failure> {
    let settings = ctx.gateway.settings();
    let key = session_key(&ctx, &params.key.0).await?;
    let agent = ctx.gateway.sessions.rules().agent_of(&key);
    require_known_agent(&ctx, SessionsPatch::NAME, &agent).await?;
    let agent_dir = settings.config.agent(&agent).agent_dir;
    let choices = ctx.gateway.models.choices(&settings.models, &agent, &agent_dir).await;
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
    let store = Arc::clone(&ctx.gateway.sessions);
    let names_model = !params.model.is_keep();
    let change = async move { methods::patch(&*store, &params, &rules).await };
    let placed = ctx.gateway.dispatch.change_settings(&key, QUIESCE, change).await;
    let patched = ctx.outcome(placed).await??;
    if names_model {
        ctx.gateway.dispatch.model_chosen(&key);
    }
    Ok(patched)
}

/// `a, b, c` as `a, b or c`.
fn spoken_list(list: &str) -> String {
    list.rsplit_once(", ").map_or_else(|| list.to_owned(), |(head, last)| format!("{head} or {last}"))
}

pub(super) async fn reset(
    ctx: RequestContext,
    params: SessionsResetParams,
) -> Result<SessionsResetResult, Failure> {
    let key = session_key(&ctx, &params.key.0).await?;
    require_agent_or_row(&ctx, SessionsReset::NAME, &key).await?;
    let store = Arc::clone(&ctx.gateway.sessions);
    let (dispatch, reset_key) = (ctx.gateway.dispatch.clone(), key.clone());
    let change = async move {
        let previous = dispatch.entry_for_hooks(&reset_key).await;
        let reset = methods::reset(&*store, &params).await?;
        dispatch.tell_reset(&reset_key, previous).await;
        Ok(reset)
    };
    alone(&ctx, &key, Box::pin(change)).await
}

pub(super) async fn delete(
    ctx: RequestContext,
    params: SessionsDeleteParams,
) -> Result<SessionsDeleteResult, Failure> {
    let key = methods::require_deletable(ctx.gateway.sessions.rules(), &params.key.0)?;
    let key = spelled(&*ctx.gateway.sessions, key).await;
    require_agent_or_row(&ctx, SessionsDelete::NAME, &key).await?;
    let (store, transcripts) = (Arc::clone(&ctx.gateway.sessions), Arc::clone(&ctx.gateway.transcripts));
    let (dispatch, deleted_key) = (ctx.gateway.dispatch.clone(), key.clone());
    let change = async move {
        dispatch.stop_subagents(&deleted_key).await;
        let ended = dispatch.end_of(&deleted_key).await;
        let deleted = methods::delete(&*store, &transcripts, &params, QUIESCE).await?;
        if let Some(ended) = ended.filter(|_| deleted.deleted) {
            ended.tell();
        }
        Ok(deleted)
    };
    alone(&ctx, &key, change).await
}

pub(super) async fn compact(
    ctx: RequestContext,
    params: SessionsCompactParams,
) -> Result<SessionsCompactResult, Failure> {
    let key = session_key(&ctx, &params.key.0).await?;
    require_agent_or_row(&ctx, SessionsCompact::NAME, &key).await?;
    let (store, transcripts) = (Arc::clone(&ctx.gateway.sessions), Arc::clone(&ctx.gateway.transcripts));
    alone(&ctx, &key, async move { methods::compact(&*store, &transcripts, &params, QUIESCE).await }).await
}

/// Changes a session between the messages that were sent before and those that come later. Runs under way are stopped: what they
/// write at their end would be taken for the new conversation's.
async fn alone<T: Send + 'static>(
    ctx: &RequestContext,
    key: &SessionKey,
    change: impl Future<Output = Result<T, MethodError>> + Send + 'static,
) -> Result<T, Failure> {
    let placed = ctx.gateway.dispatch.change(key, QUIESCE, change).await;
    Ok(ctx.outcome(placed).await??)
}

/// Refuses keys of agents that do not exist. Rows an agent left behind in a shared store can be worked on.
async fn require_agent_or_row(ctx: &RequestContext, method: &str, key: &SessionKey) -> Result<(), Failure> {
    let agent = ctx.gateway.sessions.rules().agent_of(key);
    let Err(unknown) = require_known_agent(ctx, method, &agent).await else { return Ok(()) };
    match ctx.gateway.sessions.get(key).await? {
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
