//! What is written into the inbox.

use openclaw_protocol::{RunId, SessionId};
use rusqlite::{Connection, params};

use super::format::StoredOutcome;
use super::refused::Refused;
use super::states::MessageState;
use super::{Insert, Known, Row, Stored, reader};
use crate::api::{AbortReason, RunRecord};
use crate::journal::states::{self, NewItem, Retention};
use crate::journal::{Change, Durability, JournalError, Refusal};

/// Finished rows answer repeated idempotency keys for a day.
const RETENTION: Retention = Retention { keep_ms: 24 * 60 * 60 * 1000, keep_rows: 5_000 };

/// A message is accepted.
pub(super) struct Accept {
    pub(super) row: Row<Stored>,
    pub(super) refused: Refused,
}

impl Change for Accept {
    type Done = Insert;
    const DURABILITY: Durability = Durability::Synced;

    fn apply(&self, db: &Connection) -> Result<Insert, JournalError> {
        let row = &self.row;
        let item = NewItem {
            key: row.run_id.as_str(),
            kind: row.payload.kind,
            payload: &row.payload.json,
            accepted_at: row.accepted_at,
            columns: &[
                ("session_key", &row.session_key),
                ("entry_id", &row.entry_id),
                ("fresh_id", &row.fresh_id.as_str()),
                ("digest", &row.payload.digest),
                ("facts", &row.payload.facts),
            ],
        };
        if states::insert::<MessageState, _>(db, &item)? {
            return Ok(Insert::New);
        }
        if reader::digest(db, &row.run_id)?.is_some_and(|known| known != row.payload.digest) {
            return Ok(Insert::Conflict);
        }
        let known = match self.refused.find(&row.run_id) {
            Some(record) => Some(Known::Finished(record)),
            None => reader::known(db, &row.run_id)?,
        };
        known.map(Insert::Known).ok_or_else(|| JournalError::Storage(format!("row {} vanished", row.run_id)))
    }
}

/// A message is taken up once more. Counted before it is tried: a process that dies of it can't count any more.
pub(super) struct Attempt {
    pub(super) run_id: RunId,
}

impl Change for Attempt {
    type Done = ();
    /// It is the process that dies.
    const DURABILITY: Durability = Durability::Written;

    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        db.prepare_cached(
            "UPDATE inbox SET attempts = attempts + 1, unprepared = unprepared + 1
             WHERE run_id = ?1 AND state = 'accepted'",
        )?
        .execute(params![self.run_id.as_str()])?;
        Ok(())
    }
}

/// The attempt under way is past its preparation.
pub(super) struct Prepared {
    pub(super) run_id: RunId,
}

impl Change for Prepared {
    type Done = ();
    const DURABILITY: Durability = Durability::Written;

    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        db.prepare_cached("UPDATE inbox SET unprepared = 0 WHERE run_id = ?1")?
            .execute(params![self.run_id.as_str()])?;
        Ok(())
    }
}

/// The process stops in order: what it had taken up did not end it.
pub(super) struct Excuse {
    pub(super) runs: Vec<RunId>,
}

impl Change for Excuse {
    type Done = ();
    const DURABILITY: Durability = Durability::Written;

    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        let mut update = db.prepare_cached(
            "UPDATE inbox SET attempts = max(attempts - 1, 0), unprepared = 0 WHERE run_id = ?1",
        )?;
        for run_id in &self.runs {
            update.execute(params![run_id.as_str()])?;
        }
        Ok(())
    }
}

/// A run begins in a session. The first attempt is counted with it: what a fresh message needs before is no risk, and a
/// write less.
pub(super) struct Begin {
    pub(super) run_id: RunId,
    pub(super) session_id: SessionId,
}

impl Change for Begin {
    type Done = ();
    const DURABILITY: Durability = Durability::Written;

    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        db.prepare_cached(
            "UPDATE inbox SET session_id = ?2, attempts = max(attempts, 1), unprepared = max(unprepared, 1)
             WHERE run_id = ?1",
        )?
        .execute(params![self.run_id.as_str(), self.session_id.as_str()])?;
        Ok(())
    }
}

/// Runs are to be stopped. The first reason stays.
pub(super) struct Abort {
    pub(super) runs: Vec<RunId>,
    pub(super) reason: AbortReason,
}

impl Change for Abort {
    type Done = ();
    /// A stop that was acknowledged holds, whatever ends next.
    const DURABILITY: Durability = Durability::Synced;

    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        let mut update = db.prepare_cached(
            "UPDATE inbox SET abort_reason = ?2 WHERE run_id = ?1 AND state = 'accepted' AND abort_reason IS NULL",
        )?;
        for run_id in &self.runs {
            update.execute(params![run_id.as_str(), self.reason.as_str()])?;
        }
        Ok(())
    }
}

/// A run has ended. That is so whether or not the disk takes it.
pub(super) struct Finish {
    pub(super) record: RunRecord,
    pub(super) refused: Refused,
}

impl Change for Finish {
    type Done = ();
    const DURABILITY: Durability = Durability::Written;
    const REFUSAL: Refusal = Refusal::Insist;

    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        let record = &self.record;
        let outcome = serde_json::to_string(&StoredOutcome::of(record.outcome.clone()))?;
        states::advance(
            db,
            record.run_id.as_str(),
            MessageState::Finished,
            &[
                ("payload", &None::<String>),
                ("outcome", &outcome),
                ("started_at", &record.started_at),
                ("ended_at", &record.ended_at),
                ("attempts", &0),
                ("unprepared", &0),
            ],
        )?;
        Ok(())
    }

    fn refused(&self) {
        self.refused.add(self.record.clone());
    }

    fn stored_late(&self) {
        self.refused.remove(&self.record.run_id);
    }
}

/// Drops finished rows that are too old or too many.
pub(crate) fn prune(db: &Connection, now: i64) -> Result<(), JournalError> {
    states::prune(db, MessageState::Finished, now, RETENTION)
}
