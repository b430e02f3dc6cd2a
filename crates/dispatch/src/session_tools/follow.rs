//! Next step of a talk between sessions: it is in the inbox before that step counts as done, and
//! synced before its own run begins. Where the process or the machine ends in between, the step is
//! closed again by the next start, and the next step has the same id: it is there once.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_journal::api::{Accepted, DispatchError};
use openclaw_journal::journal::{CommitDurability, Update};
use openclaw_journal::request::RunRequest;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_runs::NextStep;
use openclaw_runs::Runner;
use tokio::sync::oneshot;

use crate::intake::{self, Placing};
use crate::lane::Supervisor;
use crate::parts::DispatchParts;

/// Next step of a talk: on its way into the inbox, ahead of whatever is stored from now on.
pub(crate) struct Following {
    runner: Arc<Runner>,
    lanes: Arc<Supervisor>,
    /// Id of the talk.
    id: RunId,
    placing: Placing,
}

impl Following {
    /// Begins the step, once it is stored. Its sync is not awaited: if the machine ends before, the
    /// earlier step is closed again, and this one is stored again.
    pub(crate) async fn begin(self) {
        let Self { runner, lanes, id, placing } = self;
        let arriving = match placing.stored(&runner).await {
            Ok(arriving) => arriving,
            Err(error) => {
                tracing::warn!(exchange = %id, %error, "a talk between sessions ends early");
                return;
            }
        };
        let accepting = runner.shared.accepting.clone();
        accepting.spawn(async move {
            match runner.shared.journal.update(Update::Settle).await {
                Ok(_) => drop(arriving.hand_over(&runner, &lanes)),
                Err(error) => {
                    tracing::warn!(exchange = %id, %error, "a talk between sessions goes on after the next start");
                }
            }
        });
    }
}

impl DispatchParts {
    /// Begins to store a step of a talk. The returned future lets it begin once it is stored; `None`
    /// if it can't be stored.
    pub(crate) async fn place_step(&self, step: NextStep) -> Option<BoxFuture<'static, ()>> {
        let NextStep { talk: id, run_id, key, request } = step;
        let (runner, lanes) = (Arc::clone(&self.runner), self.lanes()?);
        match intake::place(&runner, &lanes, run_id, key, request, CommitDurability::Written).await {
            Ok(placing) => Some(Following { runner, lanes, id, placing }.begin().boxed()),
            Err(error) => {
                tracing::warn!(exchange = %id, %error, "a talk between sessions ends early");
                None
            }
        }
    }

    /// Takes a request of the gateway's own.
    pub(crate) async fn accept_own(
        &self,
        run_id: RunId,
        key: SessionKey,
        request: RunRequest,
    ) -> Result<Accepted, DispatchError> {
        let Some(lanes) = self.lanes() else { return Err(DispatchError::ShuttingDown) };
        let runner = Arc::clone(&self.runner);
        let (placed, _) = oneshot::channel();
        // Spawned so that it completes if whoever asks is stopped.
        let accepting =
            self.runner.shared.accepting.spawn(intake::accept(runner, lanes, run_id, key, request, placed));
        let receipt = accepting.await.map_err(|error| DispatchError::Storage(error.to_string()))??;
        Ok(receipt.accepted)
    }
}
