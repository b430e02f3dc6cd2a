//! `sessions.reset`

use openclaw_protocol::params::sessions::{SessionsResetParams, SessionsResetResult};

use super::{MethodError, wire};
use crate::entry::{ResetKind, new_session_id};
use crate::store::{Refused, SessionStore, update_with};

/// Answers `sessions.reset`: a new transcript id, settings kept, counters at zero. The old transcript stays where it is. The
/// row is made when it is missing.
pub async fn reset(
    store: &dyn SessionStore,
    params: &SessionsResetParams,
) -> Result<SessionsResetResult, MethodError> {
    let key = store.rules().canonical(&params.key.0)?;
    let change = move |edit: crate::store::Edit<'_>| {
        *edit.entry = edit.entry.reset(new_session_id(), edit.now, ResetKind::Method);
        Ok::<_, Refused>(())
    };
    let row = match update_with(store, &key, change).await {
        Ok((row, ())) => row,
        Err(crate::store::UpdateError::Refused(refused)) => {
            return Err(MethodError::Store(crate::store::StoreError::Refused(refused)));
        }
        Err(crate::store::UpdateError::Store(error)) => return Err(error.into()),
    };
    let mut entry = wire(&row.entry);
    // OpenClaw answers with the row before its route is written back to both places.
    entry.shift_remove("deliveryContext");
    Ok(SessionsResetResult { ok: true, key: row.key.to_string(), entry })
}
