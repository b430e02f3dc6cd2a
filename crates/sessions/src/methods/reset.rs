//! `sessions.reset`

use openclaw_protocol::params::sessions::{SessionsResetParams, SessionsResetResult};

use super::{MethodError, wire};
use crate::entry::{ResetKind, new_session_id};
use crate::store::{Edit, SessionStore, update_with};

/// Answers `sessions.reset`: a new transcript id, settings kept, counters at zero (spec `sessions.md` §5.3, decision 6). The
/// old transcript stays where it is. The row is made when it is missing.
///
/// The whole last route is kept, where OpenClaw 2026.2.9 keeps channel and recipient alone and forgets account and thread:
/// a session that is begun anew is still the same chat, and what a job or another session sends there next has to arrive
/// in it (spec `sessions.md` §3.8).
pub async fn reset(
    store: &dyn SessionStore,
    params: &SessionsResetParams,
) -> Result<SessionsResetResult, MethodError> {
    let key = store.rules().canonical(&params.key.0)?;
    let change = move |edit: Edit<'_>| {
        *edit.entry = edit.entry.reset(new_session_id(), edit.now, ResetKind::Method);
        Ok::<_, MethodError>(())
    };
    let (row, ()) = update_with(store, &key, change).await?;
    Ok(SessionsResetResult {
        ok: true,
        key: row.key.to_string(),
        entry: wire(&row.entry).unwrap_or_default(),
    })
}
