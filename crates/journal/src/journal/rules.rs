//! Rules of the journal as a whole: the rows that each change touches, and those that each question
//! reads. The same for every database below [`JournalRows`]; the rules of a single row are
//! with [`super::rows`].

mod arrivals;
mod deliveries;
mod messages;
mod notices;

use openclaw_protocol::RunId;

pub use arrivals::{noted_arrivals, waiting_arrivals};
pub use arrivals::{records as arrival_records, tally as arrival_tally};
pub use deliveries::{
    account_counts, ahead_of, failed_deliveries, named, of_run, open_deliveries, sent_messages, status,
    stored_delivery, waiting_deliveries,
};
pub use messages::{entries_since, known, payload, records as message_records};

use super::rows::{JournalRows, MessageProgress, MessageQuery, RowContent};
use super::{Changed, JournalChange, JournalError, Update};
use crate::inbox::Unfinished;
use crate::notices::KeptNotices;
use crate::queue::DropRule;

/// Makes a change. After an error some of it may be made: the database undoes that.
pub fn apply(rows: &dyn JournalRows, change: &JournalChange) -> Result<Changed, JournalError> {
    Ok(match change {
        JournalChange::Accept(row, _) => Changed::Accepted(messages::accept(rows, row)?),
        JournalChange::Deliver(new) => Changed::Delivered(deliveries::deliver(rows, new)?),
        JournalChange::Arrive(events) => Changed::Arrived(arrivals::arrive(rows, events)?),
        JournalChange::Update(update) => Changed::Updated(apply_update(rows, update)?),
    })
}

fn apply_update(rows: &dyn JournalRows, update: &Update) -> Result<bool, JournalError> {
    match update {
        Update::Attempt(run_id) => messages::edit(rows, run_id, |message| Ok(message.attempt())),
        Update::Prepared(run_id) => messages::edit(rows, run_id, |message| Ok(message.prepare())),
        Update::Excuse(runs) => messages::edit_each(rows, runs, |_, message| message.excuse()),
        Update::Begin(run_id, session_id) => {
            messages::edit(rows, run_id, |message| Ok(message.begin(session_id)))
        }
        Update::Taken { runs, by } => messages::edit_each(rows, runs, |own, message| message.take(own, by)),
        Update::Settle => Ok(true),
        Update::Abort(runs, reason) => messages::edit_each(rows, runs, |_, message| message.stop(*reason)),
        Update::Answered(record, replies) => {
            Ok(messages::edit(rows, &record.run_id, |message| Ok(message.answer(record)?))?
                && deliveries::store_all(rows, replies)?)
        }
        Update::Finish(record, replies) => {
            Ok(messages::finish_all(rows, record, &[])? && deliveries::store_all(rows, replies)?)
        }
        Update::FinishAll(record, others, replies) => {
            Ok(messages::finish_all(rows, record, others)? && deliveries::store_all(rows, replies)?)
        }
        Update::Gather { leader, others, answer_to } => {
            let lead = |message: &mut MessageProgress| Ok(message.lead(leader, answer_to.as_deref())?);
            let leads = messages::edit(rows, leader, lead)?;
            if leads {
                messages::edit_each(rows, others, |_, message| message.collect(leader))?;
            }
            Ok(leads)
        }
        Update::Cut { run_id, arrivals, dropped, now } => {
            arrivals::drop_run(rows, arrivals, DropRule::Summarized, *now)?;
            messages::edit(rows, run_id, |message| Ok(message.cut(*dropped)))
        }
        Update::Drop { record, rule, arrivals } => {
            arrivals::drop_run(rows, arrivals, *rule, record.ended_at)?;
            messages::edit(rows, &record.run_id, |message| Ok(message.drop_by(record, *rule)?))
        }
        Update::Sending { id, attempts } => deliveries::edit(rows, id, |one| one.sending(*attempts)),
        Update::Buttons { note, receipt } => deliveries::note_buttons(rows, note, receipt),
        Update::Tried { id, verdict, now } => deliveries::edit(rows, id, |one| one.tried(verdict, *now)),
        Update::Revive { id, now } => deliveries::edit(rows, id, |one| one.revive(*now)),
        Update::Discard { id, now } => deliveries::edit(rows, id, |one| one.discard(*now)),
        Update::Hasten { id, now } => deliveries::edit(rows, id, |one| one.hasten(*now)),
        Update::Reworded { conversation, message_id, text } => {
            arrivals::reword(rows, conversation, message_id, text)
        }
        Update::Promise(promise, now) => notices::promise(rows, promise, *now),
        Update::Amend(promises) => notices::amend(rows, promises),
        Update::Notice { line, fulfils } => notices::notice(rows, line.as_ref(), fulfils.as_deref()),
        Update::Told { run_id, numbers } => notices::told(rows, run_id, numbers),
        Update::DropLines(numbers) => notices::drop_lines(rows, numbers),
        Update::Decided { numbers, fate, now } => arrivals::decide(rows, numbers, fate, *now),
    }
}

/// Takes up what the last process left, all in one transaction: deliveries that it was sending are
/// uncertain now, and promises that it did not fulfil become lines. Returns the messages that it did
/// not finish, in the order of acceptance, and the notices.
pub fn recover(rows: &dyn JournalRows, now: i64) -> Result<(Vec<Unfinished>, KeptNotices), JournalError> {
    let open = rows.messages(&MessageQuery::Unfinished, RowContent::Small, u32::MAX)?;
    let runs: std::collections::HashSet<RunId> = open.iter().map(|row| row.run_id.clone()).collect();
    deliveries::recover(rows, &runs)?;
    let notices = notices::recover(rows, &runs, now)?;
    Ok((open.into_iter().filter_map(messages::unfinished).collect(), notices))
}
