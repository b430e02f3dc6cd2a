//! `sessions.*` (spec `gateway-protocol.md` §6.2). What they mean stands in [`openclaw_sessions::methods`]; here runs are
//! stopped where they must be, and models are looked up.

use std::sync::Arc;
use std::time::Duration;

use openclaw_models::{check_switch, thinking};
use openclaw_protocol::params::sessions::{
    SessionListDefaults, SessionsDeleteParams, SessionsDeleteResult, SessionsListParams, SessionsListResult,
    SessionsPatchParams, SessionsPatchResult, SessionsPreviewParams, SessionsPreviewResult,
    SessionsResetParams, SessionsResetResult, SessionsResolveParams, SessionsResolveResult,
};
use openclaw_protocol::{Call, params};
use openclaw_sessions::methods::{self, ModelName, PatchRules};

use super::default_model::DefaultModels;
use super::keys::{canonical, require_known_agent};
use crate::request::{Failure, RequestContext};

/// How long runs get to stop before a session is reset or deleted.
const QUIESCE: Duration = Duration::from_secs(15);

pub(super) async fn list(
    ctx: RequestContext,
    params: SessionsListParams,
) -> Result<SessionsListResult, Failure> {
    let settings = ctx.gateway.settings();
    let models = DefaultModels::of(&ctx, &settings).await;
    let defaults = SessionListDefaults {
        model_provider: models.provider(),
        model: models.model(),
        context_tokens: models.context_tokens,
    };
    let store = ctx.gateway.sessions.as_ref();
    Ok(methods::list(store, &ctx.gateway.layout, &params, defaults, &|agent| models.get(agent)).await?)
}

pub(super) async fn preview(
    ctx: RequestContext,
    params: SessionsPreviewParams,
) -> Result<SessionsPreviewResult, Failure> {
    Ok(methods::preview(ctx.gateway.sessions.as_ref(), &ctx.gateway.layout, &params).await?)
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
    let agent = ctx.gateway.sessions.rules().agent_of(&canonical(&ctx, &params.key.0)?);
    require_known_agent(&ctx, params::sessions::SessionsPatch::NAME, &agent).await?;
    let default_model = DefaultModels::of(&ctx, &settings).await.get(&agent);
    let rules = PatchRules {
        default_model,
        resolve_model: Arc::new(move |text| {
            let model = check_switch(&settings.models, &agent, text).map_err(|error| error.to_string())?;
            Ok(ModelName::new(model.provider.as_str(), model.model.as_str()))
        }),
        has_xhigh: thinking::has_xhigh,
        xhigh_models: spoken_list(&thinking::xhigh_models()),
    };
    Ok(methods::patch(ctx.gateway.sessions.as_ref(), &ctx.gateway.layout, &params, &rules).await?)
}

/// `a, b, c` as `a, b or c`.
fn spoken_list(list: &str) -> String {
    list.rsplit_once(", ").map_or_else(|| list.to_owned(), |(head, last)| format!("{head} or {last}"))
}

/// Runs of the old conversation are stopped first: what they write at their end would be taken for the new one's.
pub(super) async fn reset(
    ctx: RequestContext,
    params: SessionsResetParams,
) -> Result<SessionsResetResult, Failure> {
    let key = canonical(&ctx, &params.key.0)?;
    ctx.gateway.dispatch.quiesce(key.as_str(), QUIESCE).await?;
    Ok(methods::reset(ctx.gateway.sessions.as_ref(), &params).await?)
}

pub(super) async fn delete(
    ctx: RequestContext,
    params: SessionsDeleteParams,
) -> Result<SessionsDeleteResult, Failure> {
    let store = ctx.gateway.sessions.as_ref();
    let key = methods::require_deletable(store.rules(), &params.key.0)?;
    ctx.gateway.dispatch.quiesce(key.as_str(), QUIESCE).await?;
    Ok(methods::delete(store, &ctx.gateway.layout, &params).await?)
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
