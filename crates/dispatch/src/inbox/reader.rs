//! Reading the inbox.

use openclaw_protocol::{RunId, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::format::StoredOutcome;
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

/// Every unfinished row in order of acceptance. A row whose payload can't be read is left alone and logged: a newer
/// version may have written it.
pub(crate) fn unfinished(connection: &Connection) -> Result<Vec<Row>, JournalError> {
    let mut statement = connection.prepare(
        "SELECT run_id, session_key, payload, accepted_at, entry_id, fresh_id, session_id, abort_reason
         FROM inbox WHERE state = 'accepted' ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let run_id = RunId::new(row.get::<_, String>(0)?);
        let payload: String = row.get::<_, Option<String>>(2)?.unwrap_or_default();
        let payload = match serde_json::from_str(&payload) {
            Ok(payload) => payload,
            Err(error) => {
                tracing::error!(%run_id, %error, "inbox row is unreadable and stays undone");
                continue;
            }
        };
        found.push(Row {
            run_id,
            session_key: row.get(1)?,
            payload,
            accepted_at: row.get(3)?,
            entry_id: row.get(4)?,
            fresh_id: SessionId::new(row.get::<_, String>(5)?),
            session_id: row.get::<_, Option<String>>(6)?.map(SessionId::new),
            abort: row.get::<_, Option<String>>(7)?.as_deref().map(AbortReason::parse),
            recovered: true,
        });
    }
    Ok(found)
}

fn broken(column: &'static str, run_id: &RunId) -> impl FnOnce(serde_json::Error) -> JournalError {
    move |error| JournalError::Storage(format!("inbox row {run_id} has an unreadable {column}: {error}"))
}
