//! Sessions of sub-agents that are past: deleted at once or archived after a while (spec `sessions.md` §8.5).

use std::sync::Arc;
use std::time::Duration;

use openclaw_journal::child_run::ChildRun;
use openclaw_protocol::params::sessions::SessionsDeleteParams;
use openclaw_sessions::methods;
use serde_json::json;

use crate::handle::Dispatch;
use crate::parts::DispatchFamilies;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(60);
/// Time that a run of such a session gets to stop.
const PATIENCE: Duration = Duration::from_secs(15);

/// Archives sessions that are due, until the gateway stops.
pub(super) async fn work(parts: Arc<DispatchFamilies>) {
    loop {
        let Some(dispatch) = Dispatch::of(&parts) else { return };
        look(&dispatch).await;
        drop(dispatch);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Archives sessions that are due by the clock. Whatever the clock says, a session that works or is
/// still to be announced is not archived: a child that was given more to do by `/subagents send` is
/// left until it has done that.
pub(crate) async fn look(dispatch: &Dispatch) {
    let parts = dispatch.children();
    let now = parts.clock.now_ms();
    let is_due = |run: &ChildRun| run.is_over() && run.archive_at_ms.is_some_and(|at| at <= now);
    for run in parts.child_runs.select(is_due) {
        if parts.registry.count(&run.child_session_key) == 0 {
            clear_away(dispatch, &run).await;
        }
    }
}

/// Deletes a child's session, archives its transcript and forgets it. What can't be done now is done at the next look, or by the next
/// start.
pub(super) async fn clear_away(dispatch: &Dispatch, run: &ChildRun) {
    let parts = dispatch.children();
    let key = &run.child_session_key;
    let params = json!({"key": key.as_str(), "deleteTranscript": true});
    let Ok(params) = serde_json::from_value::<SessionsDeleteParams>(params) else { return };
    let (store, transcripts) = (Arc::clone(&parts.store), parts.transcripts.clone());
    let deleting = async move { methods::delete(&*store, &transcripts, &params, PATIENCE).await };
    match dispatch.change(key, PATIENCE, deleting).await.outcome().await {
        Ok(Ok(_)) => {
            let removed = parts.child_runs.remove(&run.run_id);
            parts.child_runs.tried(removed).await;
        }
        Ok(Err(error)) => tracing::warn!(session = %key, %error, "a sub-agent's session is not archived yet"),
        Err(error) => tracing::warn!(session = %key, %error, "a sub-agent's session is not archived yet"),
    }
}
