//! Messages of the inbox.

use std::collections::HashMap;

use openclaw_protocol::{RunId, SessionId, SessionKey};

use super::arrivals;
use crate::api::RunRecord;
use crate::inbox::{
    AskedRecords, InboxRow, Insert, KnownRun, MessageRecord, MessageWait, RequestColumns, Unfinished,
};
use crate::journal::JournalError;
use crate::journal::rows::{
    JournalRows, MessageProgress, MessageQuery, MessageRow, MessageState, NewRow, Removal, RowContent, SetRow,
};
use crate::request::RunRequest;

/// Stores a message, unless its run id is known. The events it is made of become part of its run.
pub(super) fn accept(rows: &dyn JournalRows, row: &InboxRow<RequestColumns>) -> Result<Insert, JournalError> {
    let insert = || Ok::<_, JournalError>(rows.insert(NewRow::Message(row))?.is_some());
    let is_new = insert()? || forget_dropped(rows, &row.run_id)? && insert()?;
    arrivals::become_run(rows, &row.payload.arrivals, &row.run_id, row.accepted_at)?;
    if is_new {
        return Ok(Insert::New);
    }
    let Some(state) = rows.message(&row.run_id)? else {
        return Err(JournalError::Storage(format!("row {} vanished", row.run_id)));
    };
    if state.digest.is_some_and(|known| known != row.payload.digest) {
        return Ok(Insert::Conflict);
    }
    Ok(Insert::Known(match rows.unstored_end(&row.run_id) {
        Some(record) => KnownRun::Finished(record),
        None => known_run(&row.run_id, state)?,
    }))
}

/// Forgets a dropped message, so that its key is free; true if it was one that may be sent again.
fn forget_dropped(rows: &dyn JournalRows, run_id: &RunId) -> Result<bool, JournalError> {
    let is_free = |MessageState { progress, .. }: MessageState| progress.is_finished && progress.may_repeat;
    Ok(rows.message(run_id)?.is_some_and(is_free) && rows.remove(Removal::Message(run_id))?)
}

/// Changes a message. `false`: it is not there, or past the change.
pub(super) fn edit(
    rows: &dyn JournalRows,
    run_id: &RunId,
    change: impl FnOnce(&mut MessageProgress) -> Result<bool, JournalError>,
) -> Result<bool, JournalError> {
    let Some(MessageState { mut progress, .. }) = rows.message(run_id)? else { return Ok(false) };
    Ok(change(&mut progress)? && rows.set(SetRow::Message(run_id, &progress))?)
}

/// Changes all these messages; true if one of them was changed.
pub(super) fn edit_each(
    rows: &dyn JournalRows,
    runs: &[RunId],
    change: impl Fn(&RunId, &mut MessageProgress) -> bool,
) -> Result<bool, JournalError> {
    runs.iter()
        .try_fold(false, |any, run_id| Ok(edit(rows, run_id, |message| Ok(change(run_id, message)))? || any))
}

/// Stores the end of a run, and of others that ended with it and in the same way. The lines that it
/// has told are forgotten.
pub(super) fn finish_all(
    rows: &dyn JournalRows,
    record: &RunRecord,
    others: &[RunId],
) -> Result<bool, JournalError> {
    rows.remove(Removal::LinesToldBy(&record.run_id))?;
    for run_id in others {
        edit(rows, run_id, |message| Ok(message.finish(record)?))?;
    }
    edit(rows, &record.run_id, |message| Ok(message.finish(record)?))
}

/// Looks up a run. One whose end the disk refuses has ended all the same.
pub fn known(rows: &dyn JournalRows, run_id: &RunId) -> Result<Option<KnownRun>, JournalError> {
    if let Some(record) = rows.unstored_end(run_id) {
        return Ok(Some(KnownRun::Finished(record)));
    }
    rows.message(run_id)?.map(|state| known_run(run_id, state)).transpose()
}

fn known_run(run_id: &RunId, state: MessageState) -> Result<KnownRun, JournalError> {
    let MessageProgress { is_finished, outcome, started_at, ended_at, .. } = state.progress;
    let (Some(outcome), Some(ended_at), true) = (outcome, ended_at, is_finished) else {
        return Ok(KnownRun::Unfinished { accepted_at: state.accepted_at });
    };
    let outcome = serde_json::from_str(&outcome).map_err(unreadable("outcome", run_id))?;
    Ok(KnownRun::Finished(RunRecord { run_id: run_id.clone(), started_at, ended_at, outcome, report: None }))
}

/// Returns records of messages, in the order of acceptance, at most `most`.
pub fn records(
    rows: &dyn JournalRows,
    asked: &AskedRecords,
    most: u32,
) -> Result<Vec<MessageRecord>, JournalError> {
    let (query, most) = match asked {
        AskedRecords::Run(run_id) => (MessageQuery::Run(run_id), most),
        AskedRecords::Newest => (MessageQuery::Newest, most.min(1)),
        AskedRecords::TakenBy(run_id) => (MessageQuery::TakenBy(run_id), most),
        AskedRecords::Entry(id) => (MessageQuery::Entry(id), most),
    };
    let found = rows.messages(&query, RowContent::Omitted, most)?;
    Ok(found.into_iter().map(MessageRow::into_record).collect())
}

/// Returns the request of a message that is not finished.
pub fn payload(rows: &dyn JournalRows, run_id: &RunId) -> Result<RunRequest, JournalError> {
    let found = rows.messages(&MessageQuery::Run(run_id), RowContent::Whole, 1)?.pop();
    let json = found.and_then(|row| row.payload).unwrap_or_default();
    serde_json::from_str(&json).map_err(unreadable("payload", run_id))
}

/// Returns the messages accepted since, by both ids that the transcript entry of each may have.
pub fn entries_since(
    rows: &dyn JournalRows,
    accepted_at: i64,
) -> Result<HashMap<String, RunId>, JournalError> {
    let found = rows.messages(&MessageQuery::AcceptedSince(accepted_at), RowContent::Omitted, u32::MAX)?;
    let ids = |row: MessageRow| [(row.entry_id, row.run_id.clone()), (row.fresh_id, row.run_id)];
    Ok(found.into_iter().flat_map(ids).collect())
}

/// Reads an unfinished message as a start finds it. `None`, and logged, if its session or payload
/// can't be read: a newer version may have written it, and it stays where it is.
pub(super) fn unfinished(row: MessageRow) -> Option<Unfinished> {
    let MessageProgress {
        session_id,
        attempts,
        abort,
        outcome,
        ended_at,
        taken_by,
        collected_by,
        answer_to,
        cut,
        ..
    } = row.progress;
    let session_key = match SessionKey::parse(&row.session_key) {
        Ok(key) => key,
        Err(error) => {
            tracing::error!(run_id = %row.run_id, %error, "inbox row is unreadable and stays undone");
            return None;
        }
    };
    let answered =
        outcome.zip(ended_at).and_then(|(outcome, ended_at)| answer(&row.run_id, &outcome, ended_at));
    let message = InboxRow {
        run_id: row.run_id,
        session_key,
        payload: (),
        accepted_at: row.accepted_at,
        entry_id: row.entry_id,
        fresh_id: SessionId::new(row.fresh_id),
        session_id,
        abort,
        answered,
        recovered: true,
        gathering: None,
    };
    let waited = MessageWait {
        collected_by,
        cut,
        // If that can't be read, the answer goes to the place where the message was said.
        answer_to: answer_to.and_then(|origin| serde_json::from_str(&origin).ok()),
        is_taken: taken_by.is_some(),
    };
    Unfinished::read(message, row.payload.as_deref(), row.facts.as_deref(), attempts, waited)
}

/// Reads the answer of a message. An answer that can't be read is made again.
fn answer(run_id: &RunId, outcome: &str, ended_at: i64) -> Option<RunRecord> {
    let outcome = serde_json::from_str(outcome).map_err(unreadable("outcome", run_id));
    let outcome = outcome.inspect_err(|error| tracing::warn!(%run_id, %error, "answered again")).ok()?;
    Some(RunRecord { run_id: run_id.clone(), started_at: None, ended_at, outcome, report: None })
}

fn unreadable(column: &'static str, run_id: &RunId) -> impl FnOnce(serde_json::Error) -> JournalError {
    move |error| JournalError::Storage(format!("inbox row {run_id} has an unreadable {column}: {error}"))
}
