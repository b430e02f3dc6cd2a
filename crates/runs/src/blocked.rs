//! Waits of a message for an obstacle in its way to pass.

use std::sync::Arc;

use openclaw_journal::inbox::InboxRow;
use openclaw_journal::journal::Journal;
use openclaw_sessions::transcript::{TranscriptLock, Transcripts};
use tokio_util::sync::CancellationToken;

use crate::control::RunControl;
use crate::ending::RunEnding;
use crate::obstacle::{Obstacle, PAUSE};

/// Parts for waiting until an obstacle is gone.
pub(crate) struct ObstacleWaits {
    journal: Arc<dyn Journal>,
    transcripts: Transcripts,
    /// Cancelled when no run is started any more.
    stopping: CancellationToken,
}

impl ObstacleWaits {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        transcripts: Transcripts,
        stopping: CancellationToken,
    ) -> Self {
        Self { journal, transcripts, stopping }
    }

    /// Waits for the obstacle to pass, for work that can't be stopped any more. Logs the reason
    /// once per message.
    pub(crate) async fn gone<P>(
        &self,
        obstacle: &Obstacle,
        row: &InboxRow<P>,
        control: &RunControl,
    ) -> Result<(), RunEnding> {
        if control.blocked.is_first() {
            log(obstacle, row);
        }
        let _waiting = control.blocked.begin();
        control.attempt.prepared(&*self.journal, &row.run_id).await;
        let gone = async {
            match obstacle {
                Obstacle::Locked { transcript, .. } => {
                    TranscriptLock::until_free(&self.transcripts, transcript).await;
                }
                Obstacle::DiskFull(_) | Obstacle::Refused(_) | Obstacle::Database(_) => {
                    tokio::time::sleep(obstacle.pause(&control.blocked).unwrap_or(PAUSE)).await;
                }
            }
        };
        tokio::select! { biased;
            // The next start takes the message up again.
            () = self.stopping.cancelled() => Err(RunEnding::Interrupted),
            () = gone => Ok(()),
        }
    }
}

fn log<P>(obstacle: &Obstacle, row: &InboxRow<P>) {
    let (run_id, session) = (&row.run_id, &row.session_key);
    match obstacle {
        Obstacle::Locked { transcript, pid } => {
            let lock = format_args!("{transcript}.lock");
            let Some(pid) = pid else {
                tracing::warn!(%run_id, %session, %lock, "the lock of this session's transcript names no process: it is torn, or not written yet; the message waits until it is gone or too old to count");
                return;
            };
            tracing::warn!(%run_id, %session, %lock, pid, "another process holds the transcript of this session, the message waits for it");
        }
        Obstacle::DiskFull(why) => {
            tracing::warn!(%run_id, %session, why, "the disk is full: the message waits until there is space");
        }
        Obstacle::Refused(why) => {
            tracing::warn!(%run_id, %session, why, "the disk refuses: the message waits until it does not");
        }
        Obstacle::Database(why) => {
            tracing::warn!(%run_id, %session, why, "the database can't be written: the message waits until it can");
        }
    }
}
