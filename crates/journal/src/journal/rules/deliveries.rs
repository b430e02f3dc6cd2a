//! Deliveries of the outbox.

use std::collections::HashSet;

use openclaw_channels::{Part, Receipt};
use openclaw_protocol::RunId;

use super::arrivals;
use crate::delivery::{
    Delivery, DeliveryInsert, DeliveryState, DeliveryStatus, DeliveryVerdict, ListedDelivery, OpenDelivery,
    SentMessage,
};
use crate::journal::rows::{
    DeliveryProgress, DeliveryQuery, DeliveryRow, JournalRows, NewContent, NewRow, Open, Removal, RowContent,
    SetRow, WAITING,
};
use crate::journal::{
    AccountCounts, JournalError, LateConversation, NewDelivery, StoredDelivery, Unreadable,
};

/// Number of deliveries that may wait, of all channels together.
const MAX_OPEN: u64 = 10_000;
/// Number of late conversations of an account that are listed.
const LATE_LISTED: usize = 5;
/// Delay of a delivery's next try after its acceptance from which its conversation counts as late.
/// Milliseconds.
const LATE_MS: i64 = 60 * 1000;

/// Stores a delivery, unless its id is known or too many wait.
pub(super) fn deliver(rows: &dyn JournalRows, new: &NewDelivery) -> Result<DeliveryInsert, JournalError> {
    if let Some(status) = status(rows, &new.delivery.id)? {
        return Ok(DeliveryInsert::Known(Box::new(status)));
    }
    if rows.count(Open::Deliveries)? >= MAX_OPEN {
        return Ok(DeliveryInsert::Full);
    }
    rows.insert(NewRow::Delivery(new))?;
    Ok(DeliveryInsert::New)
}

/// Stores the answers of a message that was accepted: however many wait, none is refused. Returns
/// true, as they are stored.
pub(super) fn store_all(rows: &dyn JournalRows, replies: &[NewDelivery]) -> Result<bool, JournalError> {
    for reply in replies {
        rows.insert(NewRow::Delivery(reply))?;
    }
    Ok(true)
}

/// Changes a delivery. `false`: it is not there, or past the change.
pub(super) fn edit<'a>(
    rows: &dyn JournalRows,
    id: &str,
    change: impl FnOnce(&mut DeliveryProgress) -> Option<NewContent<'a, Part>>,
) -> Result<bool, JournalError> {
    match one(rows, &DeliveryQuery::Id(id), RowContent::Omitted)? {
        Some(row) => edit_row(rows, row, change),
        None => Ok(false),
    }
}

fn edit_row<'a>(
    rows: &dyn JournalRows,
    DeliveryRow { number, mut progress, .. }: DeliveryRow,
    change: impl FnOnce(&mut DeliveryProgress) -> Option<NewContent<'a, Part>>,
) -> Result<bool, JournalError> {
    match change(&mut progress) {
        Some(content) => rows.set(SetRow::Delivery(number, &progress, content)),
        None => Ok(false),
    }
}

/// Notes that a message that was sent is about to have other buttons.
pub(super) fn note_buttons(
    rows: &dyn JournalRows,
    note: &NewDelivery,
    receipt: &Receipt,
) -> Result<bool, JournalError> {
    let Some(number) = rows.insert(NewRow::Delivery(note))? else { return Ok(false) };
    let mut progress = DeliveryProgress::of(note);
    let verdict = DeliveryVerdict::Sent(receipt.clone());
    let sent = progress.sending(1).and_then(|_| progress.tried(&verdict, note.accepted_at));
    match sent {
        Some(content) => rows.set(SetRow::Delivery(number, &progress, content)),
        None => Ok(false),
    }
}

/// Takes up what the last process left, while these runs have not ended. Deliveries that it was
/// sending are uncertain; blocks of these runs that were not sent are dropped, because the rest of the
/// answer comes at the run's end.
pub(super) fn recover(rows: &dyn JournalRows, open: &HashSet<RunId>) -> Result<(), JournalError> {
    for row in rows.deliveries(&DeliveryQuery::Open { after: 0 }, RowContent::Omitted, u32::MAX)? {
        if row.progress.state == DeliveryState::Pending && is_block_of(&row.id, open) {
            rows.remove(Removal::Delivery(row.number))?;
        } else {
            edit_row(rows, row, DeliveryProgress::restart)?;
        }
    }
    Ok(())
}

/// True if a delivery is a block of the answer of one of these runs (`<run id>:b…`).
fn is_block_of(id: &str, runs: &HashSet<RunId>) -> bool {
    let mut begins = id.match_indices(":b").filter_map(|(at, _)| id.get(..at));
    begins.any(|run| runs.contains(&RunId::new(run)))
}

fn one(
    rows: &dyn JournalRows,
    query: &DeliveryQuery<'_>,
    content: RowContent,
) -> Result<Option<DeliveryRow>, JournalError> {
    Ok(rows.deliveries(query, content, 1)?.pop())
}

fn statuses(rows: &dyn JournalRows, query: &DeliveryQuery<'_>) -> Result<Vec<DeliveryStatus>, JournalError> {
    let found = rows.deliveries(query, RowContent::Omitted, u32::MAX)?;
    Ok(found.into_iter().map(DeliveryRow::into_status).collect())
}

/// Returns the status of a delivery; `None` for an unknown one.
pub fn status(rows: &dyn JournalRows, id: &str) -> Result<Option<DeliveryStatus>, JournalError> {
    Ok(one(rows, &DeliveryQuery::Id(id), RowContent::Omitted)?.map(DeliveryRow::into_status))
}

/// Returns the deliveries of a run's answer, in order.
pub fn of_run(rows: &dyn JournalRows, run_id: &RunId) -> Result<Vec<DeliveryStatus>, JournalError> {
    statuses(rows, &DeliveryQuery::OfRun(run_id))
}

/// Returns the delivery of this id, or those that a platform has under this id of a message.
pub fn named(rows: &dyn JournalRows, id: &str) -> Result<Vec<DeliveryStatus>, JournalError> {
    statuses(rows, &DeliveryQuery::Named(id))
}

/// Returns the messages with this id that a platform has from here.
pub fn sent_messages(
    rows: &dyn JournalRows,
    channel: &str,
    message_id: &str,
) -> Result<Vec<SentMessage>, JournalError> {
    let found =
        rows.deliveries(&DeliveryQuery::Sent { channel, message_id }, RowContent::Omitted, u32::MAX)?;
    Ok(found.into_iter().map(DeliveryRow::into_sent).collect())
}

/// Returns the first delivery of this one's conversation, if that is another and not over, so that
/// this one waits for it.
pub fn ahead_of(rows: &dyn JournalRows, id: &str) -> Result<Option<String>, JournalError> {
    let own = one(rows, &DeliveryQuery::Id(id), RowContent::Omitted)?;
    let Some(own) = own.filter(|own| own.progress.state.is_open()) else { return Ok(None) };
    let first = one(rows, &DeliveryQuery::OpenIn(&own.address), RowContent::Omitted)?;
    Ok(first.filter(|first| first.number < own.number).map(|first| first.id))
}

/// Returns the deliveries that were given up and not thrown away, the newest first.
pub fn failed_deliveries(rows: &dyn JournalRows, most: u32) -> Result<Vec<ListedDelivery>, JournalError> {
    let found = rows.deliveries(&DeliveryQuery::GivenUp, RowContent::Whole, most)?;
    Ok(found.into_iter().map(DeliveryRow::into_listed).collect())
}

/// Returns the deliveries that are not over, in the order of acceptance.
pub fn waiting_deliveries(rows: &dyn JournalRows) -> Result<Vec<ListedDelivery>, JournalError> {
    let found = rows.deliveries(&DeliveryQuery::Open { after: 0 }, RowContent::Whole, u32::MAX)?;
    Ok(found.into_iter().map(DeliveryRow::into_listed).collect())
}

/// Returns the deliveries that are not over and have a number above `after`, in the order of
/// acceptance.
pub fn open_deliveries(rows: &dyn JournalRows, after: i64) -> Result<Vec<OpenDelivery>, JournalError> {
    let found = rows.deliveries(&DeliveryQuery::Open { after }, RowContent::Omitted, u32::MAX)?;
    Ok(found.into_iter().map(DeliveryRow::into_open).collect())
}

/// Returns the delivery of a number, whole. `None`: it is gone.
pub fn stored_delivery(rows: &dyn JournalRows, number: i64) -> Result<Option<StoredDelivery>, JournalError> {
    let Some(row) = one(rows, &DeliveryQuery::Number(number), RowContent::Whole)? else { return Ok(None) };
    let before = DeliveryQuery::GivenUpOf(Delivery::message_of(&row.id));
    let before = rows.deliveries(&before, RowContent::Omitted, u32::MAX)?;
    let held = one(rows, &DeliveryQuery::HeldIn(&row.address), RowContent::Omitted)?;
    Ok(Some(StoredDelivery {
        state: row.progress.state,
        attempts: row.progress.attempts,
        accepted_at: row.accepted_at,
        is_cut_off: before.iter().any(|other| other.cuts_off(&row)),
        hold: held.and_then(|held| held.hold()),
        delivery: row.into_delivery().map_err(|(id, why)| Unreadable { id, why }),
    }))
}

/// Counts the waiting and failed items of an account of a channel.
pub fn account_counts(
    rows: &dyn JournalRows,
    channel: &str,
    account: &str,
) -> Result<AccountCounts, JournalError> {
    let totals = rows.totals(Some((channel, account)))?;
    let mut counts = AccountCounts { events: arrivals::added_up(totals.events), ..AccountCounts::default() };
    let waiting = counts.events.iter().filter(|event| event.fate == WAITING);
    counts.inbox = waiting.map(|event| event.count).sum();
    for total in totals.deliveries {
        if total.state.is_open() {
            counts.pending += total.count;
        } else if total.state.is_listed_as_failed(total.given_up) {
            counts.failed += total.count;
        } else if total.state == DeliveryState::Sent {
            counts.last_sent_at = counts.last_sent_at.max(total.last_ended_at);
        }
    }
    if counts.pending > 0 {
        let open =
            rows.deliveries(&DeliveryQuery::OpenOf { channel, account }, RowContent::Omitted, u32::MAX)?;
        let mut late = late(open);
        counts.late_total = late.len() as u64;
        late.truncate(LATE_LISTED);
        counts.late = late;
    }
    Ok(counts)
}

/// Returns the conversations whose first delivery keeps failing, in the order of those, out of an
/// account's open deliveries in the order of acceptance.
fn late(open: Vec<DeliveryRow>) -> Vec<LateConversation> {
    let mut waiting = std::collections::HashMap::<String, u64>::new();
    let mut firsts = Vec::new();
    for row in open {
        let count = waiting.entry(row.address.target.clone()).or_default();
        *count += 1;
        if *count == 1 {
            firsts.push(row);
        }
    }
    let late = |row: DeliveryRow| {
        let is_late = row.progress.next_at.saturating_sub(row.accepted_at) >= LATE_MS;
        let error = row.progress.error.filter(|_| is_late)?;
        let waiting = waiting.get(&row.address.target).copied().unwrap_or(1);
        Some(LateConversation {
            target: row.address.target,
            id: row.id,
            since: row.accepted_at,
            error,
            waiting,
        })
    };
    firsts.into_iter().filter_map(late).collect()
}
