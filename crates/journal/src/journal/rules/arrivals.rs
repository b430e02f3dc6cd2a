//! Events of chat platforms.

use std::collections::BTreeMap;

use openclaw_channels::{Address, Inbound};
use openclaw_protocol::RunId;

use crate::arrival::{ArrivalInsert, ArrivalRecord, Arrivals, Fate, NewArrival, StoredArrival};
use crate::journal::rows::{
    ArrivalIdentity, ArrivalProgress, ArrivalQuery, ArrivalRow, JournalRows, NewContent, NewRow, Open,
    RowContent, SetRow,
};
use crate::journal::{EventCount, JournalError};
use crate::queue::DropRule;

/// Number of events that may wait, of all accounts together. Far beyond what platforms bring in an
/// hour without a decision.
const MAX_WAITING: u64 = 50_000;

/// Stores events, all or none; `None` if too many wait.
pub(super) fn arrive(
    rows: &dyn JournalRows,
    events: &[NewArrival],
) -> Result<Option<Vec<ArrivalInsert>>, JournalError> {
    let more = events.iter().filter(|new| new.fate.is_none()).count() as u64;
    if more > 0 && rows.count(Open::Arrivals)?.saturating_add(more) > MAX_WAITING {
        return Ok(None);
    }
    events.iter().map(|new| insert(rows, new)).collect::<Result<_, _>>().map(Some)
}

fn insert(rows: &dyn JournalRows, new: &NewArrival) -> Result<ArrivalInsert, JournalError> {
    let identity = ArrivalIdentity::of(new);
    if let Some(known) = rows.arrivals(&ArrivalQuery::Same(&identity), RowContent::Omitted, 1)?.pop() {
        edit_row(rows, known, ArrivalProgress::repeat)?;
        return Ok(ArrivalInsert::Known);
    }
    let is_read_later = matches!(new.fate, None | Some(Fate::Noted));
    let content = if is_read_later { NewContent::Replaced(&new.event) } else { NewContent::Forgotten };
    let number = rows.insert(NewRow::Arrival(new, content))?;
    Ok(number.map_or(ArrivalInsert::Known, ArrivalInsert::New))
}

/// Changes an event. `false`: it is not there, or past the change.
fn edit(
    rows: &dyn JournalRows,
    number: i64,
    change: impl FnOnce(&mut ArrivalProgress) -> Option<NewContent<'static, Inbound>>,
) -> Result<bool, JournalError> {
    match rows.arrivals(&ArrivalQuery::Number(number), RowContent::Omitted, 1)?.pop() {
        Some(row) => edit_row(rows, row, change),
        None => Ok(false),
    }
}

fn edit_row(
    rows: &dyn JournalRows,
    ArrivalRow { number, mut progress, .. }: ArrivalRow,
    change: impl FnOnce(&mut ArrivalProgress) -> Option<NewContent<'static, Inbound>>,
) -> Result<bool, JournalError> {
    match change(&mut progress) {
        Some(content) => rows.set(SetRow::Arrival(number, &progress, content)),
        None => Ok(false),
    }
}

/// Changes all these events; true if one of them was changed.
fn edit_each(
    rows: &dyn JournalRows,
    numbers: &[i64],
    change: impl Fn(&mut ArrivalProgress) -> Option<NewContent<'static, Inbound>>,
) -> Result<bool, JournalError> {
    numbers.iter().try_fold(false, |any, number| Ok(edit(rows, *number, &change)? || any))
}

/// Decides the fate of events. `false`: no event was open.
pub(super) fn decide(
    rows: &dyn JournalRows,
    numbers: &[i64],
    fate: &Fate,
    now: i64,
) -> Result<bool, JournalError> {
    edit_each(rows, numbers, |event| event.decide(fate, now))
}

/// Makes the events of an accepted message, and those that waited as its context, part of its run.
pub(super) fn become_run(
    rows: &dyn JournalRows,
    arrivals: &Arrivals,
    run_id: &RunId,
    now: i64,
) -> Result<(), JournalError> {
    let Arrivals { said, context, route } = arrivals;
    edit_each(rows, said, |event| event.join(run_id, route.as_ref(), now))?;
    edit_each(rows, context, |event| event.tell(run_id))?;
    Ok(())
}

/// Marks events that became part of a message as dropped together with it.
pub(super) fn drop_run(
    rows: &dyn JournalRows,
    numbers: &[i64],
    rule: DropRule,
    now: i64,
) -> Result<(), JournalError> {
    edit_each(rows, numbers, |event| event.drop_run(rule, now))?;
    Ok(())
}

/// Replaces the words of a message that waits for a decision, or as context. `false`: it does not
/// wait.
pub(super) fn reword(
    rows: &dyn JournalRows,
    conversation: &Address,
    message_id: &str,
    text: &str,
) -> Result<bool, JournalError> {
    let query = ArrivalQuery::About { conversation, message_id };
    let mut any = false;
    for ArrivalRow { number, progress, event, .. } in rows.arrivals(&query, RowContent::Whole, u32::MAX)? {
        if let Some(Ok(mut event)) = event
            && event.reword(text)
        {
            any |= rows.set(SetRow::Arrival(number, &progress, NewContent::Replaced(&event)))?;
        }
    }
    Ok(any)
}

/// Returns undecided events, in the order of arrival: at most `most` of those behind `after`.
pub fn waiting_arrivals(
    rows: &dyn JournalRows,
    after: i64,
    most: u32,
) -> Result<Vec<StoredArrival>, JournalError> {
    let found = rows.arrivals(&ArrivalQuery::Waiting { after }, RowContent::Whole, most)?;
    Ok(found.into_iter().map(ArrivalRow::into_stored).collect())
}

/// Returns the newest events of a conversation that wait as context, in the order of arrival.
pub fn noted_arrivals(
    rows: &dyn JournalRows,
    conversation: &Address,
    before: i64,
    most: u32,
) -> Result<Vec<StoredArrival>, JournalError> {
    let found = rows.arrivals(&ArrivalQuery::Noted { conversation, before }, RowContent::Whole, most)?;
    Ok(found.into_iter().rev().map(ArrivalRow::into_stored).collect())
}

/// Returns the newest events that a message or event id of a platform names, or a run; without an id
/// the newest of all. At most `most`.
pub fn records(
    rows: &dyn JournalRows,
    id: Option<&str>,
    most: u32,
) -> Result<Vec<ArrivalRecord>, JournalError> {
    let query = id.map_or(ArrivalQuery::Newest, ArrivalQuery::Named);
    let found = rows.arrivals(&query, RowContent::Omitted, most)?;
    Ok(found.into_iter().map(ArrivalRow::into_record).collect())
}

/// Adds up the counts of one fate and reason, in the order of these.
pub(super) fn added_up(counts: Vec<EventCount>) -> Vec<EventCount> {
    let mut sums = BTreeMap::<(String, Option<String>), (u64, u64)>::new();
    for EventCount { fate, reason, count, repeats } in counts {
        let sum = sums.entry((fate, reason)).or_default();
        *sum = (sum.0 + count, sum.1 + repeats);
    }
    let count = |((fate, reason), (count, repeats))| EventCount { fate, reason, count, repeats };
    sums.into_iter().map(count).collect()
}

/// Counts the events of each fate, by name; `waiting` for those without one.
pub fn tally(rows: &dyn JournalRows) -> Result<Vec<(String, u64)>, JournalError> {
    let mut tally = BTreeMap::<String, u64>::new();
    for total in rows.totals(None)?.events {
        *tally.entry(total.fate).or_default() += total.count;
    }
    Ok(tally.into_iter().collect())
}
