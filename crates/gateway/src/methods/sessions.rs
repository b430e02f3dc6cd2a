//! `sessions.*` (spec `gateway-protocol.md` §6.2).

mod archive;
mod preview;
mod resolve;

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::sessions::{
    SessionsDeleteParams, SessionsDeleteResult, SessionsListParams, SessionsListResult, SessionsPatchParams,
    SessionsPatchResult, SessionsResetParams, SessionsResetResult,
};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::{ResetKind, new_session_id};
use serde_json::{Map, Value};

use super::keys::canonical;
use crate::request::{Failure, RequestContext};

pub(super) use preview::preview;
pub(super) use resolve::resolve;

/// How long runs get to stop before a session is reset or deleted.
const QUIESCE: Duration = Duration::from_secs(15);

pub(super) async fn list(_ctx: RequestContext, _params: SessionsListParams) -> Result<SessionsListResult, Failure> {
    Err(ErrorShape::not_implemented("sessions.list").into())
}

pub(super) async fn patch(_ctx: RequestContext, _params: SessionsPatchParams) -> Result<SessionsPatchResult, Failure> {
    Err(ErrorShape::not_implemented("sessions.patch").into())
}

/// A new transcript and no tokens; settings stay. Runs of the old conversation are stopped first: what they write at
/// their end would be taken for the new one's.
pub(super) async fn reset(ctx: RequestContext, params: SessionsResetParams) -> Result<SessionsResetResult, Failure> {
    let key = canonical(&ctx, &params.key.0)?;
    ctx.gateway.dispatch.quiesce(key.as_str(), QUIESCE).await?;
    let row = ctx.gateway.sessions.update(
        &key,
        Box::new(|edit| {
            *edit.entry = edit.entry.reset(new_session_id(), edit.now, ResetKind::Method);
            Ok(())
        }),
    );
    Ok(SessionsResetResult { ok: true, key: key.as_str().to_owned(), entry: fields(&row.await?.entry)? })
}

pub(super) async fn delete(ctx: RequestContext, params: SessionsDeleteParams) -> Result<SessionsDeleteResult, Failure> {
    let key = canonical(&ctx, &params.key.0)?;
    let rules = ctx.gateway.sessions.rules();
    if key == rules.main(&ctx.gateway.config().default_agent()) {
        return Err(ErrorShape::invalid(format!("Cannot delete the main session ({}).", key.as_str())).into());
    }
    ctx.gateway.dispatch.quiesce(key.as_str(), QUIESCE).await?;
    let row = ctx.gateway.sessions.delete(&key).await?;
    let deleted = row.is_some();
    let archived = match row {
        Some(row) if params.delete_transcript.unwrap_or(true) => {
            let agent = rules.agent_of(&key);
            let layout = ctx.gateway.layout.clone();
            let archive = move || archive::transcripts(&layout, &agent, &row.entry);
            tokio::task::spawn_blocking(archive)
                .await
                .map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?
        }
        Some(_) | None => Vec::new(),
    };
    Ok(SessionsDeleteResult { ok: true, key: key.as_str().to_owned(), deleted, archived })
}

/// A row as it stands in the store.
fn fields(entry: &Arc<SessionEntry>) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(&**entry)? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}
