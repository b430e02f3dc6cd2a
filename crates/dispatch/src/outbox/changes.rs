//! What is written into the outbox.

use rusqlite::{Connection, OptionalExtension, params};

use super::delivery::{Delivery, Parcel, Receipt};
use super::rows::{self, Standing};
use super::states::{Again, DeliveryState};
use crate::journal::states::{self, NewItem, Retention, States};
use crate::journal::{Change, Durability, JournalError, Refusal};

/// Deliveries that may wait, of all channels together.
const MOST_OPEN: u64 = 10_000;
/// Sent ones answer for their id for a day.
const SENT: Retention = Retention { keep_ms: 24 * 60 * 60 * 1000, keep_rows: 5_000 };
/// Failed ones wait for a person for a week (spec `channels.md` §5.5).
const FAILED: Retention = Retention { keep_ms: 7 * 24 * 60 * 60 * 1000, keep_rows: 5_000 };

/// A delivery is handed over.
pub(super) struct Accept<P> {
    pub(super) delivery: Delivery<P>,
    pub(super) now: i64,
}

/// What came of [`Accept`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Accepted {
    New,
    Known(Standing),
    Full,
}

impl<P: Parcel> Change for Accept<P> {
    type Done = Accepted;
    const DURABILITY: Durability = Durability::Synced;

    fn apply(&self, db: &Connection) -> Result<Accepted, JournalError> {
        let delivery = &self.delivery;
        if let Some(standing) = rows::standing(db, &delivery.id)? {
            return Ok(Accepted::Known(standing));
        }
        if states::count_open::<DeliveryState>(db)? >= MOST_OPEN {
            return Ok(Accepted::Full);
        }
        let address = &delivery.address;
        let item = NewItem {
            key: &delivery.id,
            kind: P::KIND,
            payload: &delivery.payload,
            accepted_at: self.now,
            columns: &[
                ("channel", &address.channel),
                ("account", &address.account),
                ("target", &address.target),
                ("thread", &address.thread),
                ("session_key", &delivery.session_key),
                ("expires_at", &delivery.expires_at),
                ("next_at", &self.now),
            ],
        };
        states::insert::<DeliveryState, _>(db, &item)?;
        Ok(Accepted::New)
    }
}

/// The platform is about to be asked. Synced before it is: a delivery that is `pending` on disk was never sent.
pub(super) struct Start {
    pub(super) id: String,
    pub(super) attempts: u32,
}

impl Change for Start {
    type Done = bool;
    const DURABILITY: Durability = Durability::Synced;

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        states::advance(db, &self.id, DeliveryState::Sending, &[("attempts", &self.attempts)])
    }
}

/// The platform has it.
pub(super) struct Sent {
    pub(super) id: String,
    pub(super) receipt: Receipt,
    pub(super) now: i64,
}

impl Change for Sent {
    type Done = bool;
    const DURABILITY: Durability = Durability::Synced;
    const REFUSAL: Refusal = Refusal::Insist;

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        let receipt = serde_json::to_string(&self.receipt)?;
        states::advance(
            db,
            &self.id,
            DeliveryState::Sent,
            &[
                ("payload", &None::<String>),
                ("receipt", &receipt),
                ("error", &None::<String>),
                ("ended_at", &self.now),
            ],
        )
    }
}

/// It waits for another try.
pub(super) struct Wait {
    pub(super) id: String,
    pub(super) again: Again,
    pub(super) next_at: i64,
}

impl Change for Wait {
    type Done = bool;
    const DURABILITY: Durability = Durability::Written;
    const REFUSAL: Refusal = Refusal::Insist;

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        let Again { state, attempts, reason, .. } = &self.again;
        let columns: [(&str, &dyn rusqlite::ToSql); 3] =
            [("attempts", attempts), ("next_at", &self.next_at), ("error", reason)];
        states::advance(db, &self.id, *state, &columns)
    }
}

/// It is given up.
pub(super) struct Fail {
    pub(super) id: String,
    pub(super) reason: String,
    pub(super) now: i64,
}

impl Change for Fail {
    type Done = bool;
    const DURABILITY: Durability = Durability::Synced;
    const REFUSAL: Refusal = Refusal::Insist;

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        states::advance(
            db,
            &self.id,
            DeliveryState::Failed,
            &[("error", &self.reason), ("ended_at", &self.now)],
        )
    }
}

/// A person wants a failed one tried again.
pub(super) struct Revive {
    pub(super) id: String,
    pub(super) now: i64,
}

impl Change for Revive {
    type Done = bool;
    const DURABILITY: Durability = Durability::Synced;

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        let failed = rows::standing(db, &self.id)?.is_some_and(|row| row.state == DeliveryState::Failed);
        let columns: [(&str, &dyn rusqlite::ToSql); 4] = [
            ("attempts", &0),
            ("next_at", &self.now),
            ("expires_at", &None::<i64>),
            ("ended_at", &None::<i64>),
        ];
        Ok(failed && states::advance(db, &self.id, DeliveryState::Pending, &columns)?)
    }
}

/// A person does not want to see a failed one any more. Its id is forgotten with it.
pub(super) struct Discard {
    pub(super) id: String,
}

impl Change for Discard {
    type Done = bool;
    const DURABILITY: Durability = Durability::Written;

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        let mut delete =
            db.prepare_cached("DELETE FROM outbox WHERE id = ?1 AND state = 'failed' RETURNING 1")?;
        let gone = delete.query_row(params![self.id], |_| Ok(())).optional()?;
        Ok(gone.is_some())
    }
}

/// At start: what a crash found on its way is uncertain.
pub(crate) fn doubt(db: &Connection) -> Result<usize, JournalError> {
    let (sending, uncertain) = (DeliveryState::Sending.name(), DeliveryState::Uncertain.name());
    let sql = format!("UPDATE outbox SET state = '{uncertain}' WHERE state = '{sending}'");
    Ok(db.execute(&sql, [])?)
}

/// Drops what has been over for long enough.
pub(crate) fn prune(db: &Connection, now: i64) -> Result<(), JournalError> {
    states::prune(db, DeliveryState::Sent, now, SENT)?;
    states::prune(db, DeliveryState::Failed, now, FAILED)
}
