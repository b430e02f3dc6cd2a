//! Table `arrivals`: its writes and reads.

use openclaw_channels::{Address, Inbound};
use openclaw_protocol::RunId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::writer::DbChange;
use crate::arrival::{ArrivalInsert, ArrivalRecord, Arrivals, Fate, NewArrival, Routed, StoredArrival};
use crate::journal::{CommitDurability, EventCount, JournalError};
use crate::queue::DropRule;

/// Number of events that may wait, of all accounts together. Far beyond what platforms bring in an
/// hour without a decision.
const MAX_WAITING: i64 = 50_000;
/// Time in milliseconds for which decided events are kept, for dedupe by their ids and for
/// `openclaw trace` (spec `channels.md` §3.2: at least four hours).
const KEEP_MS: i64 = 3 * 24 * 60 * 60 * 1000;
/// Number of decided events that are kept at most (spec `channels.md` §3.2: at least 10,000),
/// counted apart for dropped ones and for all others: a crowd that is not heard takes no room from
/// those who are.
const KEEP_ROWS: i64 = 20_000;

/// Change that stores events, all or none.
pub(super) struct Arrive(pub(super) Vec<NewArrival>);

impl DbChange for Arrive {
    type Done = Option<Vec<ArrivalInsert>>;

    /// Written only: code that tells the platform waits for
    /// [`synced`](crate::journal::Journal::synced) first.
    fn durability(&self) -> CommitDurability {
        CommitDurability::Written
    }

    fn apply(&self, db: &Connection) -> Result<Option<Vec<ArrivalInsert>>, JournalError> {
        let more = self.0.iter().filter(|new| new.fate.is_none()).count();
        let waiting: i64 = db
            .prepare_cached("SELECT count(*) FROM arrivals WHERE fate IS NULL")?
            .query_row([], |row| row.get(0))?;
        if more > 0 && waiting.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)) > MAX_WAITING {
            return Ok(None);
        }
        self.0.iter().map(|new| insert(db, new)).collect::<Result<_, _>>().map(Some)
    }
}

fn insert(db: &Connection, new: &NewArrival) -> Result<ArrivalInsert, JournalError> {
    let NewArrival { event, received_at, fate } = new;
    let address = &event.address;
    let identity = event.dedupe_key();
    if let Some(number) = known(db, new, &identity)? {
        db.prepare_cached("UPDATE arrivals SET again = again + 1 WHERE seq = ?1")?.execute([number])?;
        return Ok(ArrivalInsert::Known);
    }
    let is_kept = matches!(fate, None | Some(Fate::Noted));
    let payload = is_kept.then(|| serde_json::to_string(event)).transpose()?;
    let (fate, reason, run_id) = fate
        .as_ref()
        .map(Fate::columns)
        .map_or((None, None, None), |(fate, reason, run_id)| (Some(fate), reason, run_id));
    let decided_at = fate.map(|_| received_at);
    db.prepare_cached(
        "INSERT INTO arrivals (channel, account, native_id, message_id, target, received_at, payload, said_at,
                fate, reason, run_id, decided_at, identity)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        address.channel,
        address.account,
        event.native_id,
        new.message_id(),
        address.target,
        received_at,
        payload,
        event.at,
        fate,
        reason,
        run_id,
        decided_at,
        identity
    ])?;
    Ok(ArrivalInsert::New(db.last_insert_rowid()))
}

/// Returns the number of an event that was delivered before. A version without unique ids stored
/// neither the bot nor the time: of its rows one counts that has the same number and is about the
/// same message, so that an update does not answer again what that version answered.
fn known(db: &Connection, new: &NewArrival, identity: &str) -> Result<Option<i64>, JournalError> {
    let mut find = db.prepare_cached(
        "SELECT seq FROM arrivals WHERE identity = ?1 OR (identity = ?2 AND target = ?3 AND message_id IS ?4)",
    )?;
    let NewArrival { event, .. } = new;
    let found = find.query_row(
        params![identity, event.former_dedupe_key(), event.address.target, new.message_id()],
        |row| row.get(0),
    );
    Ok(found.optional()?)
}

/// Decides the fate of events. An earlier decision stays. `false`: no event was open.
pub(super) fn decide(db: &Connection, numbers: &[i64], fate: &Fate, now: i64) -> Result<bool, JournalError> {
    let (name, reason, run_id) = fate.columns();
    // An event that waits as context is still to be read.
    let mut update = db.prepare_cached(
        "UPDATE arrivals SET fate = ?2, reason = ?3, run_id = ?4, decided_at = ?5,
                payload = CASE WHEN ?2 = 'noted' THEN payload END
         WHERE seq = ?1 AND fate IS NULL",
    )?;
    let mut any = false;
    for number in numbers {
        any |= update.execute(params![number, name, reason, run_id, now])? > 0;
    }
    Ok(any)
}

/// Marks events that became part of a message as dropped together with it.
pub(super) fn drop_run(
    db: &Connection,
    numbers: &[i64],
    rule: DropRule,
    now: i64,
) -> Result<(), JournalError> {
    let mut update = db.prepare_cached(
        "UPDATE arrivals SET fate = 'dropped', reason = ?2, decided_at = ?3 WHERE seq = ?1 AND fate = 'run'",
    )?;
    for number in numbers {
        update.execute(params![number, rule.as_str(), now])?;
    }
    Ok(())
}

/// Returns undecided events, in the order of arrival: at most `most` of those behind `after`.
pub(super) fn waiting(db: &Connection, after: i64, most: u32) -> Result<Vec<StoredArrival>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT seq, payload, received_at FROM arrivals WHERE fate IS NULL AND seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let rows = statement.query_map(params![after, most], read_stored)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the newest events of a conversation that wait as context, in the order of arrival.
pub(super) fn noted(
    db: &Connection,
    conversation: &Address,
    before: i64,
    most: u32,
) -> Result<Vec<StoredArrival>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT seq, payload, received_at FROM arrivals
         WHERE fate = 'noted' AND run_id IS NULL AND channel = ?1 AND account = ?2 AND target = ?3
         AND seq < ?4
         ORDER BY seq DESC",
    )?;
    let Address { channel, account, target, thread } = conversation;
    let rows = statement.query_map(params![channel, account, target, before], read_stored)?;
    let mut noted = Vec::new();
    for row in rows {
        let stored = row?;
        if noted.len() == most as usize {
            break;
        }
        // Threads of a conversation are told apart here: few rows are of others.
        if stored.event.as_ref().is_ok_and(|event| event.address.thread == *thread) {
            noted.push(stored);
        }
    }
    noted.reverse();
    Ok(noted)
}

/// Replaces the words of a message that waits for a decision, or as context. `false`: it does not
/// wait.
pub(super) fn reword(
    db: &Connection,
    conversation: &Address,
    message_id: &str,
    text: &str,
) -> Result<bool, JournalError> {
    let Address { channel, account, target, .. } = conversation;
    let waiting: Vec<(i64, Option<String>)> = db
        .prepare_cached(
            "SELECT seq, payload FROM arrivals
             WHERE fate IS NULL AND channel = ?1 AND account = ?2 AND target = ?3 AND message_id = ?4
             UNION ALL
             SELECT seq, payload FROM arrivals
             WHERE fate = 'noted' AND run_id IS NULL AND channel = ?1 AND account = ?2 AND target = ?3
               AND message_id = ?4",
        )?
        .query_map(params![channel, account, target, message_id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut any = false;
    for (number, payload) in waiting {
        let Ok(mut event) = serde_json::from_str::<Inbound>(&payload.unwrap_or_default()) else { continue };
        if !event.reword(text) {
            continue;
        }
        any |= db
            .prepare_cached("UPDATE arrivals SET payload = ?2 WHERE seq = ?1")?
            .execute(params![number, serde_json::to_string(&event)?])?
            > 0;
    }
    Ok(any)
}

/// Counts the undecided events of an account.
pub(super) fn count_waiting(db: &Connection, channel: &str, account: &str) -> Result<u64, JournalError> {
    let count: i64 = db
        .prepare_cached("SELECT count(*) FROM arrivals WHERE fate IS NULL AND channel = ?1 AND account = ?2")?
        .query_row(params![channel, account], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Counts the events of an account by fate and reason.
pub(super) fn counts(db: &Connection, channel: &str, account: &str) -> Result<Vec<EventCount>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT coalesce(fate, 'waiting'), reason, count(*), sum(again) FROM arrivals
         WHERE channel = ?1 AND account = ?2 GROUP BY 1, 2 ORDER BY 1, 2",
    )?;
    let number = |row: &Row<'_>, at: usize| row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or(0));
    let rows = statement.query_map(params![channel, account], |row| {
        let (fate, reason) = (row.get(0)?, row.get(1)?);
        Ok(EventCount { fate, reason, count: number(row, 2)?, repeats: number(row, 3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_stored(row: &Row<'_>) -> rusqlite::Result<StoredArrival> {
    let payload: Option<String> = row.get(1)?;
    let event = serde_json::from_str::<Inbound>(&payload.unwrap_or_default());
    let event = event.map_err(|error| error.to_string());
    Ok(StoredArrival { number: row.get(0)?, event, received_at: row.get(2)? })
}

const RECORD: &str = "seq, channel, account, native_id, message_id, target, received_at, fate, reason, run_id, decided_at, session_key, \
     matched_by, again, said_at, identity";

/// The newest events that a message or event id of a platform names, or a run; without an id the newest of all. At most `most`.
pub(super) fn records(
    db: &Connection,
    id: Option<&str>,
    most: u32,
) -> Result<Vec<ArrivalRecord>, JournalError> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {RECORD} FROM arrivals
         WHERE ?1 IS NULL OR message_id = ?1 OR native_id = ?1 OR run_id = ?1 ORDER BY seq DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![id, most], read_record)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Counts the events of each fate, by name; `waiting` for those without one.
pub(super) fn tally(db: &Connection) -> Result<Vec<(String, u64)>, JournalError> {
    let mut statement =
        db.prepare_cached("SELECT coalesce(fate, 'waiting'), count(*) FROM arrivals GROUP BY 1 ORDER BY 1")?;
    let rows = statement.query_map([], |row| {
        let count: i64 = row.get(1)?;
        Ok((row.get(0)?, u64::try_from(count).unwrap_or(0)))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_record(row: &Row<'_>) -> rusqlite::Result<ArrivalRecord> {
    let fate: Option<String> = row.get(7)?;
    let run_id: Option<String> = row.get(9)?;
    let told_in = run_id.clone().filter(|_| fate.as_deref() == Some("noted"));
    let route = match (row.get(11)?, row.get(12)?) {
        (Some(session_key), Some(matched_by)) => Some(Routed { session_key, matched_by }),
        _ => None,
    };
    Ok(ArrivalRecord {
        number: row.get(0)?,
        channel: row.get(1)?,
        account: row.get(2)?,
        native_id: row.get(3)?,
        message_id: row.get(4)?,
        target: row.get(5)?,
        received_at: row.get(6)?,
        fate: Fate::read(fate.as_deref(), row.get(8)?, run_id),
        decided_at: row.get(10)?,
        told_in: told_in.map(RunId::new),
        route,
        again: row.get(13)?,
        said_at: row.get(14)?,
        identity: row.get::<_, Option<String>>(15)?.unwrap_or_default(),
    })
}

/// Makes the events of an accepted message, and those that waited as its context, part of its run.
pub(super) fn become_run(
    db: &Connection,
    arrivals: &Arrivals,
    run_id: &RunId,
    now: i64,
) -> Result<(), JournalError> {
    let Arrivals { said, context, route } = arrivals;
    if !said.is_empty() {
        decide(db, said, &Fate::Run(run_id.clone()), now)?;
    }
    if let Some(Routed { session_key, matched_by }) = route {
        for number in said {
            db.prepare_cached("UPDATE arrivals SET session_key = ?2, matched_by = ?3 WHERE seq = ?1")?
                .execute(params![number, session_key, matched_by])?;
        }
    }
    for number in context {
        db.prepare_cached(
            "UPDATE arrivals SET run_id = ?2, payload = NULL WHERE seq = ?1 AND fate = 'noted' AND run_id IS NULL",
        )?
        .execute(params![number, run_id.as_str()])?;
    }
    Ok(())
}

/// Drops events that were decided long enough ago.
pub(super) fn prune(db: &Connection, now: i64) -> Result<(), JournalError> {
    prune_to(db, now, KEEP_ROWS)
}

/// Prunes with a limit of so many rows of each kind.
pub(super) fn prune_to(db: &Connection, now: i64, keep_rows: i64) -> Result<(), JournalError> {
    db.prepare_cached("DELETE FROM arrivals WHERE decided_at < ?1")?
        .execute(params![now.saturating_sub(KEEP_MS)])?;
    // Almost always: then nothing needs to be counted.
    let are_few: bool = db
        .prepare_cached(
            "SELECT (SELECT coalesce(max(seq), 0) FROM arrivals) - (SELECT coalesce(min(seq), 0) FROM arrivals) < ?1",
        )?
        .query_row(params![keep_rows], |row| row.get(0))?;
    if are_few {
        return Ok(());
    }
    for kind in ["fate = 'dropped'", "fate IN ('run', 'noted', 'handled')"] {
        let sql = format!(
            "DELETE FROM arrivals WHERE {kind} AND seq <=
             (SELECT seq FROM arrivals WHERE {kind} ORDER BY seq DESC LIMIT 1 OFFSET ?1)"
        );
        db.prepare_cached(&sql)?.execute(params![keep_rows])?;
    }
    Ok(())
}
