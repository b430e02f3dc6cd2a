//! Reading the inbox.

use std::collections::HashSet;

use openclaw_protocol::{RunId, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::digest::Digest;
use super::format::{Payload, StoredOutcome};
use super::parked::{Attempts, Facts, Origin};
use super::{Known, Row};
use crate::api::{AbortReason, RunRecord};
use crate::journal::JournalError;

/// Looks a run id up.
pub(super) fn known(connection: &Connection, run_id: &RunId) -> Result<Option<Known>, JournalError> {
    let mut statement = connection.prepare_cached(
        "SELECT accepted_at, state, outcome, started_at, ended_at FROM inbox WHERE run_id = ?1",
    )?;
    let found = statement
        .query_row(params![run_id.as_str()], |row| {
            let state: String = row.get(1)?;
            let outcome: Option<String> = row.get(2)?;
            let record = match outcome {
                Some(outcome) if state == "finished" => Some((outcome, row.get(3)?, row.get::<_, i64>(4)?)),
                _ => None,
            };
            Ok((row.get::<_, i64>(0)?, record))
        })
        .optional()?;
    let Some((accepted_at, record)) = found else { return Ok(None) };
    let Some((outcome, started_at, ended_at)) = record else {
        return Ok(Some(Known::Unfinished { accepted_at }));
    };
    let outcome: StoredOutcome = serde_json::from_str(&outcome).map_err(broken("outcome", run_id))?;
    let record = RunRecord { run_id: run_id.clone(), started_at, ended_at, outcome: outcome.into() };
    Ok(Some(Known::Finished(record)))
}

/// The digest of the message that has a run id; `None` for a row of before there was one.
pub(super) fn digest(connection: &Connection, run_id: &RunId) -> Result<Option<Digest>, JournalError> {
    let mut statement = connection.prepare_cached("SELECT digest FROM inbox WHERE run_id = ?1")?;
    Ok(statement.query_row(params![run_id.as_str()], |row| row.get(0)).optional()?.flatten())
}

/// What was asked with an unfinished message.
pub(super) fn payload(connection: &Connection, run_id: &RunId) -> Result<Payload, JournalError> {
    let mut statement = connection.prepare_cached("SELECT payload FROM inbox WHERE run_id = ?1")?;
    let text =
        statement.query_row(params![run_id.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    serde_json::from_str(&text.flatten().unwrap_or_default()).map_err(broken("payload", run_id))
}

/// Both ids that the entry of each message accepted since may have.
pub(super) fn entries_since(
    connection: &Connection,
    accepted_at: i64,
) -> Result<HashSet<String>, JournalError> {
    let mut statement =
        connection.prepare_cached("SELECT entry_id, fresh_id FROM inbox WHERE accepted_at >= ?1")?;
    let mut rows = statement.query(params![accepted_at])?;
    let mut found = HashSet::new();
    while let Some(row) = rows.next()? {
        found.extend([row.get(0)?, row.get(1)?]);
    }
    Ok(found)
}

/// An unfinished message as a start finds it.
#[derive(Debug, PartialEq)]
pub(crate) struct Unfinished {
    /// The message, with what was asked where that is small.
    pub(crate) row: Row<Option<Payload>>,
    /// What brought it.
    pub(crate) origin: Origin,
    /// Size of its payload.
    pub(crate) bytes: usize,
    /// How often it was tried.
    pub(crate) attempts: Attempts,
}

/// Every unfinished row in order of acceptance, without the payloads that have facts beside them. A row whose payload can't
/// be read is left alone and logged: a newer version may have written it.
pub(crate) fn unfinished(connection: &Connection) -> Result<Vec<Unfinished>, JournalError> {
    let mut statement = connection.prepare(
        "SELECT run_id, session_key, CASE WHEN facts IS NULL THEN payload END, accepted_at, entry_id, fresh_id,
                session_id, abort_reason, facts, attempts, unprepared
         FROM inbox WHERE state = 'accepted' ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let run_id = RunId::new(row.get::<_, String>(0)?);
        let (payload, facts) = match asked(row.get(2)?, row.get(8)?) {
            Ok(asked) => asked,
            Err(error) => {
                tracing::error!(%run_id, %error, "inbox row is unreadable and stays undone");
                continue;
            }
        };
        let row_found = Row {
            run_id,
            session_key: row.get(1)?,
            payload,
            accepted_at: row.get(3)?,
            entry_id: row.get(4)?,
            fresh_id: SessionId::new(row.get::<_, String>(5)?),
            session_id: row.get::<_, Option<String>>(6)?.map(SessionId::new),
            abort: row.get::<_, Option<String>>(7)?.as_deref().map(AbortReason::parse),
            recovered: true,
        };
        let attempts = Attempts { all: row.get(9)?, unprepared: row.get(10)? };
        let Facts { origin, bytes } = facts;
        found.push(Unfinished { row: row_found, origin, bytes, attempts });
    }
    Ok(found)
}

/// A payload and what is known of it. One that has facts beside it is not here.
fn asked(
    payload: Option<String>,
    facts: Option<String>,
) -> Result<(Option<Payload>, Facts), serde_json::Error> {
    if let Some(facts) = facts {
        return Ok((None, serde_json::from_str(&facts)?));
    }
    let payload: Payload = serde_json::from_str(&payload.unwrap_or_default())?;
    let facts = Facts { origin: Origin::of(&payload), bytes: payload.weight() };
    Ok((Some(payload), facts))
}

fn broken(column: &'static str, run_id: &RunId) -> impl FnOnce(serde_json::Error) -> JournalError {
    move |error| JournalError::Storage(format!("inbox row {run_id} has an unreadable {column}: {error}"))
}
