//! Promises to agents about their commands, and the lines that wait to be told to them
//! ([`crate::notices`]).

use std::collections::HashSet;

use openclaw_protocol::RunId;
use openclaw_tools::Promise;

use crate::journal::JournalError;
use crate::journal::rows::{Forgettable, retentions};
use crate::journal::rows::{JournalRows, NewRow, NoticeRows, PromiseRow, Removal, SetRow};
use crate::notices::{KeptLine, KeptNotices, Lost, lines_of};

/// Stores a promise.
pub(super) fn promise(rows: &dyn JournalRows, promise: &Promise, now: i64) -> Result<bool, JournalError> {
    Ok(rows.insert(NewRow::Promise(promise, now))?.is_some())
}

/// Changes promises. A missing one was fulfilled, and one that ended with its process stays as it is.
pub(super) fn amend(rows: &dyn JournalRows, promises: &[Promise]) -> Result<bool, JournalError> {
    let known = rows.notices()?.promises;
    let mut any = false;
    for promise in promises {
        if known.iter().any(|known| known.promise.id == promise.id && known.lost_at.is_none()) {
            any |= rows.set(SetRow::Promise(&PromiseRow { promise: promise.clone(), lost_at: None }))?;
        }
    }
    Ok(any)
}

/// Stores a line that waits for its session, and removes the promise that it fulfils.
pub(super) fn notice(
    rows: &dyn JournalRows,
    line: Option<&KeptLine>,
    fulfils: Option<&str>,
) -> Result<bool, JournalError> {
    if let Some(id) = fulfils {
        rows.remove(Removal::Promise(id))?;
    }
    if let Some(line) = line {
        rows.insert(NewRow::Line(line))?;
    }
    Ok(true)
}

/// Notes the lines that the message of a run has told.
pub(super) fn told(rows: &dyn JournalRows, run_id: &RunId, numbers: &[i64]) -> Result<bool, JournalError> {
    each(numbers, |number| rows.set(SetRow::Line(number, Some(run_id))))
}

/// Drops lines to make room for others.
pub(super) fn drop_lines(rows: &dyn JournalRows, numbers: &[i64]) -> Result<bool, JournalError> {
    each(numbers, |number| rows.remove(Removal::Line(number)))
}

fn each(numbers: &[i64], change: impl Fn(i64) -> Result<bool, JournalError>) -> Result<bool, JournalError> {
    numbers.iter().try_fold(false, |any, number| Ok(change(*number)? || any))
}

/// Returns the notices that a start finds, while these runs have not ended. Promises that are still
/// open ended with the process before: they become lines.
pub(super) fn recover(
    rows: &dyn JournalRows,
    open: &HashSet<RunId>,
    now: i64,
) -> Result<KeptNotices, JournalError> {
    let NoticeRows { promises, lines, last_line } = rows.notices()?;
    // Whoever told them is gone without a trace: a damaged database was set aside.
    for line in lines.iter().filter(|line| line.told_by.as_ref().is_some_and(|run| !open.contains(run))) {
        rows.set(SetRow::Line(line.number, None))?;
    }
    let fresh: Vec<PromiseRow> = promises.into_iter().filter(|row| row.lost_at.is_none()).collect();
    for row in &fresh {
        rows.set(SetRow::Promise(&PromiseRow { lost_at: Some(now), ..row.clone() }))?;
    }
    let owed = fresh.into_iter().filter_map(|row| row.promise.notice).collect();
    for line in lines_of(owed, last_line.saturating_add(1), now) {
        rows.insert(NewRow::Line(&line))?;
    }
    for retention in retentions(now).filter(|retention| retention.of == Forgettable::LostPromises) {
        rows.remove(Removal::Old(retention))?;
    }
    let NoticeRows { promises, lines, .. } = rows.notices()?;
    let lost = |PromiseRow { promise: Promise { kind, scope, name, .. }, lost_at }: PromiseRow| {
        lost_at.map(|_| Lost { kind, scope, name })
    };
    Ok(KeptNotices { lines, lost: promises.into_iter().filter_map(lost).collect() })
}
