//! Reading the outbox.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::delivery::{Address, Delivery, Parcel, Receipt};
use super::lanes::LaneKey;
use super::states::DeliveryState;
use crate::journal::JournalError;
use crate::journal::states::{States, open_names};

/// How a delivery stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub state: DeliveryState,
    /// Tries that count.
    pub attempts: u32,
    /// What the platform made of it, once it is sent.
    pub receipt: Option<Receipt>,
    /// Why it is not sent yet, or will not be; for people.
    pub error: Option<String>,
    /// The session it belongs to.
    pub session_key: Option<String>,
    /// Unix milliseconds of acceptance.
    pub accepted_at: i64,
}

const STANDING: &str = "id, state, attempts, receipt, error, session_key, accepted_at";

/// How a delivery stands; `None` for one nobody knows.
pub(super) fn standing(db: &Connection, id: &str) -> Result<Option<Standing>, JournalError> {
    let sql = format!("SELECT {STANDING} FROM outbox WHERE id = ?1");
    Ok(db.prepare_cached(&sql)?.query_row(params![id], read_standing).optional()?)
}

/// Deliveries of a kind that were given up, the newest first.
pub(super) fn failed(db: &Connection, kind: &str, most: u32) -> Result<Vec<Standing>, JournalError> {
    let sql = format!(
        "SELECT {STANDING} FROM outbox WHERE kind = ?1 AND state = 'failed' ORDER BY seq DESC LIMIT ?2"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params![kind, most], read_standing)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_standing(row: &Row<'_>) -> rusqlite::Result<Standing> {
    let receipt: Option<String> = row.get(3)?;
    Ok(Standing {
        id: row.get(0)?,
        state: state(&row.get::<_, String>(1)?),
        attempts: row.get(2)?,
        receipt: receipt.and_then(|receipt| serde_json::from_str(&receipt).ok()),
        error: row.get(4)?,
        session_key: row.get(5)?,
        accepted_at: row.get(6)?,
    })
}

/// The table allows no other names.
fn state(name: &str) -> DeliveryState {
    DeliveryState::parse(name).unwrap_or(DeliveryState::Uncertain)
}

/// One that is not over, as far as its order needs it.
#[derive(Debug, PartialEq)]
pub(super) struct Queued {
    pub(super) number: i64,
    pub(super) lane: LaneKey,
    pub(super) next_at: i64,
}

/// Everything of a kind that is not over and was accepted after `after`, in the order of acceptance.
pub(super) fn queued(db: &Connection, kind: &str, after: i64) -> Result<Vec<Queued>, JournalError> {
    let open = open_names::<DeliveryState>();
    let mut statement = db.prepare_cached(&format!(
        "SELECT seq, channel, account, target, next_at FROM outbox
         WHERE kind = ?1 AND seq > ?2 AND state IN ({open}) ORDER BY seq"
    ))?;
    let rows = statement.query_map(params![kind, after], |row| {
        let lane = LaneKey { channel: row.get(1)?, account: row.get(2)?, target: row.get(3)? };
        Ok(Queued { number: row.get(0)?, lane, next_at: row.get(4)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One to be tried, whole.
pub(super) struct ToSend<P> {
    pub(super) delivery: Delivery<P>,
    pub(super) state: DeliveryState,
    pub(super) attempts: u32,
    pub(super) accepted_at: i64,
}

/// What is stored under a number.
pub(super) enum Stored<P> {
    /// A delivery.
    Whole(ToSend<P>),
    /// One whose payload can't be read, and why.
    Unreadable { id: String, error: serde_json::Error },
}

/// Reads what is stored under a number. `None`: it is gone.
pub(super) fn to_send<P: Parcel>(db: &Connection, number: i64) -> Result<Option<Stored<P>>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT id, channel, account, target, thread, session_key, expires_at, payload, state, attempts, accepted_at
         FROM outbox WHERE seq = ?1",
    )?;
    let found = statement.query_row(params![number], |row| {
        let id: String = row.get(0)?;
        let payload: String = row.get::<_, Option<String>>(7)?.unwrap_or_default();
        let payload = match serde_json::from_str(&payload) {
            Ok(payload) => payload,
            Err(error) => return Ok(Stored::Unreadable { id, error }),
        };
        let delivery = Delivery {
            id,
            address: Address {
                channel: row.get(1)?,
                account: row.get(2)?,
                target: row.get(3)?,
                thread: row.get(4)?,
            },
            session_key: row.get(5)?,
            payload,
            expires_at: row.get(6)?,
        };
        let state = state(&row.get::<_, String>(8)?);
        let to_send = ToSend { delivery, state, attempts: row.get(9)?, accepted_at: row.get(10)? };
        Ok(Stored::Whole(to_send))
    });
    Ok(found.optional()?)
}
