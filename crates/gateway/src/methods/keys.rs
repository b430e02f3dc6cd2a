//! Keys and agents as clients name them (spec `gateway-protocol.md` §6.2, KB-18).

use std::sync::Arc;

use openclaw_protocol::{AgentId, ErrorShape};
use openclaw_sessions::store::spelled;
use openclaw_sessions::{SessionKey, SessionStore};

use crate::current_settings::CurrentSettings;
use crate::request::RequestFailure;

/// The key that a client means, however it spells it. Everything behind the handlers sees only this
/// one, which is canonical and spelled as the session's row is stored.
pub(super) async fn session_key(store: &dyn SessionStore, text: &str) -> Result<SessionKey, RequestFailure> {
    Ok(spelled(store, store.rules().canonical(text)?).await)
}

/// The same where a client may name none.
pub(super) async fn session_key_of(
    store: &dyn SessionStore,
    text: Option<&str>,
) -> Result<Option<SessionKey>, RequestFailure> {
    match text {
        Some(text) => session_key(store, text).await.map(Some),
        None => Ok(None),
    }
}

/// `invalid <method> params: unknown agent id "<a>"`, unless the agent is configured or has a directory: a message does not
/// make an agent.
pub(super) async fn require_known_agent(
    settings: &CurrentSettings,
    sessions: &Arc<dyn SessionStore>,
    method: &str,
    agent: &AgentId,
) -> Result<(), RequestFailure> {
    if settings.config().has_agent(agent) {
        return Ok(());
    }
    let store = Arc::clone(sessions);
    let found = tokio::task::spawn_blocking(move || store.found_agents());
    if found.await.is_ok_and(|found| found.contains(agent)) {
        return Ok(());
    }
    Err(ErrorShape::invalid_params(method, &format!("unknown agent id \"{agent}\"")).into())
}

/// `invalid <method> params: agent "<a>" does not match session key agent "<b>"`, unless they match.
pub(super) fn require_same_agent(
    method: &str,
    named: &AgentId,
    of_key: &AgentId,
) -> Result<(), RequestFailure> {
    if named == of_key {
        return Ok(());
    }
    let text = format!("agent \"{named}\" does not match session key agent \"{of_key}\"");
    Err(ErrorShape::invalid_params(method, &text).into())
}

/// Text that is there and not blank, trimmed.
pub(super) fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}
