//! Next step of a talk between sessions: it is in the inbox before that step counts as done, and
//! synced before its own run begins. Where the process or the machine ends in between, the step is
//! closed again by the next start, and the next step has the same id: it is there once.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_journal::api::{Accepted, DispatchError};
use openclaw_journal::journal::{CommitDurability, Journal, Update};
use openclaw_journal::request::RunRequest;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_runs::NextStep;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::intake::{Intake, Placing};
use crate::lane::Supervisor;
use crate::parts::DispatchFamilies;

/// Next step of a talk: on its way into the inbox, ahead of whatever is stored from now on.
pub(crate) struct Following {
    intake: Arc<Intake>,
    journal: Arc<dyn Journal>,
    accepting: TaskTracker,
    lanes: Arc<Supervisor>,
    /// Id of the talk.
    id: RunId,
    placing: Placing,
}

impl Following {
    /// Begins the step, once it is stored. Its sync is not awaited: if the machine ends before, the
    /// earlier step is closed again, and this one is stored again.
    pub(crate) async fn begin(self) {
        let Self { intake, journal, accepting, lanes, id, placing } = self;
        let arriving = match intake.stored(placing).await {
            Ok(arriving) => arriving,
            Err(error) => {
                tracing::warn!(exchange = %id, %error, "a talk between sessions ends early");
                return;
            }
        };
        accepting.spawn(async move {
            match journal.update(Update::Settle).await {
                Ok(_) => drop(intake.hand_over(arriving, &lanes)),
                Err(error) => {
                    tracing::warn!(exchange = %id, %error, "a talk between sessions goes on after the next start");
                }
            }
        });
    }
}

impl DispatchFamilies {
    /// Begins to store a step of a talk. The returned future lets it begin once it is stored; `None`
    /// if it can't be stored.
    pub(crate) async fn place_step(&self, step: NextStep) -> Option<BoxFuture<'static, ()>> {
        let NextStep { talk: id, run_id, key, request } = step;
        let (intake, lanes) = (Arc::clone(&self.intake), self.lanes()?);
        match intake.place(&lanes, run_id, key, request, CommitDurability::Written).await {
            Ok(placing) => {
                let journal = Arc::clone(&self.session_tools.journal);
                let accepting = self.children.accepting.clone();
                Some(Following { intake, journal, accepting, lanes, id, placing }.begin().boxed())
            }
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
        let intake = Arc::clone(&self.intake);
        let (placed, _) = oneshot::channel();
        // Spawned so that it completes if whoever asks is stopped.
        let accepting = self.children.accepting.spawn(intake.accept(lanes, run_id, key, request, placed));
        let receipt = accepting.await.map_err(|error| DispatchError::Storage(error.to_string()))??;
        Ok(receipt.accepted)
    }
}
