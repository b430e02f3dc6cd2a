//! `sessions.resolve`

use openclaw_protocol::params::sessions::{SessionsListParams, SessionsResolveParams, SessionsResolveResult};

use super::MethodError;
use super::list::query_of;
use crate::key::SessionKey;
use crate::store::{Query, Row, Rows, SessionStore};
use crate::time::now_ms;

/// Reason why no session, or not exactly one, was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The request has more than one selector.
    #[error("Provide either key, sessionId, or label (not multiple)")]
    Several,
    /// The request has no selector.
    #[error("Either key, sessionId, or label is required")]
    None,
    /// No session has this key or id.
    #[error("No session found: {0}")]
    NotFound(String),
    /// No session has this label.
    #[error("No session found with label: {0}")]
    NoLabel(String),
    /// The id is not unique.
    #[error("Multiple sessions found for sessionId: {id} ({keys})")]
    ManyIds {
        /// The id.
        id: String,
        /// The keys, joined with a comma.
        keys: String,
    },
    /// The label is not unique.
    #[error("Multiple sessions found with label: {label} ({keys})")]
    ManyLabels {
        /// The label.
        label: String,
        /// The keys, joined with a comma.
        keys: String,
    },
}

/// Answers `sessions.resolve`.
pub async fn resolve(
    store: &dyn SessionStore,
    params: &SessionsResolveParams,
) -> Result<SessionsResolveResult, MethodError> {
    let given = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let key = given(params.key.as_ref().map(|key| key.0.as_str()));
    let id = given(params.session_id.as_ref().map(|id| id.0.as_str()));
    let label = given(params.label.as_ref().map(|label| label.0.as_str()));
    let key = match (key, id, label) {
        (None, None, None) => return Err(ResolveError::None.into()),
        (Some(key), None, None) => by_key(store, key).await?,
        (None, Some(id), None) => by_id(store, params, id).await?,
        (None, None, Some(label)) => by_label(store, params, label).await?,
        _ => return Err(ResolveError::Several.into()),
    };
    Ok(SessionsResolveResult { ok: true, key: key.to_string() })
}

async fn by_key(store: &dyn SessionStore, text: String) -> Result<SessionKey, MethodError> {
    let key = store.rules().canonical(&text)?;
    match store.get(&key).await? {
        Some(row) => Ok(row.key),
        None => Err(ResolveError::NotFound(text).into()),
    }
}

async fn by_id(
    store: &dyn SessionStore,
    params: &SessionsResolveParams,
    id: String,
) -> Result<SessionKey, MethodError> {
    let query = Query { search: Some(id.clone()), ..visible(params) };
    let mut rows = store.select(Rows::All, &query).await?.rows;
    let is_id = |row: &Row| row.entry.session_id.as_ref().is_some_and(|own| own.as_str() == id);
    rows.retain(|row| is_id(row) || [row.key.as_str(), row.key.spelled()].contains(&id.as_str()));
    match rows.as_slice() {
        [] => Err(ResolveError::NotFound(id).into()),
        [row] => Ok(row.key.clone()),
        several => Err(ResolveError::ManyIds { id, keys: joined(several) }.into()),
    }
}

async fn by_label(
    store: &dyn SessionStore,
    params: &SessionsResolveParams,
    label: String,
) -> Result<SessionKey, MethodError> {
    let query = Query { label: Some(label.clone()), ..visible(params) };
    match store.select(Rows::All, &query).await?.rows.as_slice() {
        [] => Err(ResolveError::NoLabel(label).into()),
        [row] => Ok(row.key.clone()),
        several => Err(ResolveError::ManyLabels { label, keys: joined(several) }.into()),
    }
}

/// Query for the sessions that the client may know of.
fn visible(params: &SessionsResolveParams) -> Query {
    let filter = SessionsListParams {
        agent_id: params.agent_id.clone(),
        spawned_by: params.spawned_by.clone(),
        include_global: params.include_global,
        include_unknown: params.include_unknown,
        ..SessionsListParams::default()
    };
    query_of(&filter, now_ms())
}

/// Keys named in an error.
const MOST_NAMED: usize = 20;

fn joined(rows: &[Row]) -> String {
    rows.iter().take(MOST_NAMED).map(|row| row.key.spelled()).collect::<Vec<_>>().join(", ")
}
