//! Table `outbox`: its writes and reads.

use openclaw_channels::{Address, Part, Receipt};
use openclaw_protocol::{RunId, SessionKey};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::queue::{self, NewItem, Retention, States};
use super::writer::DbChange;
use crate::delivery::{
    Author, Delivery, DeliveryFailure, DeliveryInsert, DeliveryState, DeliveryStatus, DeliveryVerdict, Hold,
    LaneKey, ListedDelivery, OpenDelivery, SentMessage,
};
use crate::journal::{
    AccountCounts, CommitDurability, JournalError, LATE_LISTED, LATE_MS, LateConversation, NewDelivery,
    StoredDelivery, Unreadable,
};

/// Number of deliveries that may wait, of all channels together.
const MAX_OPEN: u64 = 10_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Sent deliveries are kept for a day, so that their ids are not sent again.
const SENT: Retention = Retention { keep_ms: DAY_MS, keep_rows: 5_000 };
/// Sent messages of the gateway itself are kept for a month, because their buttons give commands, and so are those with buttons of others,
/// because a press has the rights of the buttons' maker.
const SENT_WITH_BUTTONS: Retention = Retention { keep_ms: 30 * DAY_MS, keep_rows: 5_000 };
/// Failed deliveries are kept for a week, so that a person can retry them (spec `channels.md` §5.5).
const FAILED: Retention = Retention { keep_ms: 7 * DAY_MS, keep_rows: 5_000 };

/// Kind of every row's payload.
const KIND: &str = "part";

impl States for DeliveryState {
    const TABLE: &'static str = "outbox";
    const KEY: &'static str = "id";
    const FIRST: Self = Self::Pending;
    const ALL: &'static [Self] = &[Self::Pending, Self::Sending, Self::Uncertain, Self::Sent, Self::Failed];

    fn name(self) -> &'static str {
        self.as_str()
    }

    fn next(self) -> &'static [Self] {
        self.next_states()
    }

    fn is_over(self) -> bool {
        !self.is_open()
    }
}

impl DbChange for NewDelivery {
    type Done = DeliveryInsert;

    fn durability(&self) -> CommitDurability {
        CommitDurability::Synced
    }

    fn has_deliveries(&self) -> bool {
        true
    }

    fn apply(&self, db: &Connection) -> Result<DeliveryInsert, JournalError> {
        if let Some(status) = status(db, &self.delivery.id)? {
            return Ok(DeliveryInsert::Known(Box::new(status)));
        }
        if queue::count_open::<DeliveryState>(db)? >= MAX_OPEN {
            return Ok(DeliveryInsert::Full);
        }
        insert(db, self)?;
        Ok(DeliveryInsert::New)
    }
}

/// Stores the answers of a message that was accepted: however many wait, none is refused. Returns
/// true, as they are stored.
pub(super) fn accept_all(db: &Connection, replies: &[NewDelivery]) -> Result<bool, JournalError> {
    for reply in replies {
        insert(db, reply)?;
    }
    Ok(true)
}

/// Inserts a delivery; does nothing and returns false if its id is known.
fn insert(db: &Connection, new: &NewDelivery) -> Result<bool, JournalError> {
    let Delivery { id, address, session_key, author, part, expires_at, asked } = &new.delivery;
    let item = NewItem {
        key: id,
        kind: KIND,
        payload: &serde_json::to_string(part)?,
        accepted_at: new.accepted_at,
        columns: &[
            ("channel", &address.channel),
            ("account", &address.account),
            ("target", &address.target),
            ("thread", &address.thread),
            ("session_key", &session_key.as_ref().map(SessionKey::spelled)),
            ("expires_at", expires_at),
            ("next_at", &new.not_before),
            ("asked", asked),
            ("author", &author.column()),
        ],
    };
    queue::insert::<DeliveryState>(db, &item)
}

/// Notes that the platform is about to be asked.
pub(super) fn sending(db: &Connection, id: &str, attempts: u32) -> Result<bool, JournalError> {
    if attempts > 1 {
        // The reader may see it twice.
        db.prepare_cached("UPDATE outbox SET may_repeat = 1 WHERE id = ?1 AND state = 'uncertain'")?
            .execute(params![id])?;
    }
    queue::advance(db, id, DeliveryState::Sending, &[("attempts", &attempts)])
}

/// Notes that a message that was sent is about to have other buttons.
pub(super) fn note_buttons(
    db: &Connection,
    note: &NewDelivery,
    receipt: &Receipt,
) -> Result<bool, JournalError> {
    let id = &note.delivery.id;
    Ok(insert(db, note)?
        && sending(db, id, 1)?
        && tried(db, id, &DeliveryVerdict::Sent(receipt.clone()), note.accepted_at)?)
}

/// Notes the end of a try.
pub(super) fn tried(
    db: &Connection,
    id: &str,
    verdict: &DeliveryVerdict,
    now: i64,
) -> Result<bool, JournalError> {
    match verdict {
        DeliveryVerdict::Sent(receipt) => {
            let receipt = serde_json::to_string(receipt)?;
            let columns: [(&str, &dyn ToSql); 4] = [
                ("payload", &None::<String>),
                ("receipt", &receipt),
                ("error", &None::<String>),
                ("ended_at", &now),
            ];
            queue::advance(db, id, DeliveryState::Sent, &columns)
        }
        DeliveryVerdict::Retry(retry) => {
            // Thrown away while it was asked what became of it, it stays so.
            if !status(db, id)?.is_some_and(|status| status.state.is_open()) {
                return Ok(false);
            }
            let columns: [(&str, &dyn ToSql); 3] =
                [("attempts", &retry.attempts), ("next_at", &retry.at(now)), ("error", &retry.reason)];
            queue::advance(db, id, retry.state, &columns)
        }
        DeliveryVerdict::WithoutFile { part, left_out } => {
            let part = serde_json::to_string(part)?;
            let columns: [(&str, &dyn ToSql); 5] = [
                ("payload", &part),
                ("left_out", left_out),
                ("attempts", &0),
                ("next_at", &now),
                ("error", &None::<String>),
            ];
            queue::advance(db, id, DeliveryState::Pending, &columns)
        }
        DeliveryVerdict::Failed { reason, why, hold } => {
            // If the platform asked for nothing, the time of the next try is not behind the end.
            let until = now
                .saturating_add(hold.map_or(0, |hold| i64::try_from(hold.as_millis()).unwrap_or(i64::MAX)));
            let columns: [(&str, &dyn ToSql); 4] =
                [("error", reason), ("ended_at", &now), ("given_up", &why.as_str()), ("next_at", &until)];
            queue::advance(db, id, DeliveryState::Failed, &columns)
        }
    }
}

/// Lets a failed delivery be tried again.
pub(super) fn revive(db: &Connection, id: &str, now: i64) -> Result<bool, JournalError> {
    let failed = status(db, id)?.filter(|row| row.state == DeliveryState::Failed);
    let revived = failed.and_then(|failed| failed.given_up.unwrap_or(DeliveryFailure::Refused).revived());
    let Some(revived) = revived else { return Ok(false) };
    let columns: [(&str, &dyn ToSql); 6] = [
        ("attempts", &0),
        ("error", &None::<String>),
        ("next_at", &now),
        ("expires_at", &None::<i64>),
        ("ended_at", &None::<i64>),
        ("given_up", &None::<String>),
    ];
    queue::advance(db, id, revived, &columns)
}

/// Throws away a delivery that failed or waits: its content is forgotten. A delivery that is being
/// sent can't be thrown away.
pub(super) fn discard(db: &Connection, id: &str, now: i64) -> Result<bool, JournalError> {
    let Some(status) = status(db, id)?.filter(|status| status.may_be_discarded()) else { return Ok(false) };
    let discarded = DeliveryFailure::Discarded.as_str();
    if status.state == DeliveryState::Failed {
        let sql = format!("UPDATE outbox SET given_up = '{discarded}', payload = NULL WHERE id = ?1");
        return Ok(db.prepare_cached(&sql)?.execute(params![id])? == 1);
    }
    let error = status.discarded_as();
    // Deliveries behind it do not wait for the time that it waited for.
    let columns: [(&str, &dyn ToSql); 5] = [
        ("payload", &None::<String>),
        ("error", &error),
        ("ended_at", &now),
        ("given_up", &discarded),
        ("next_at", &now),
    ];
    queue::advance(db, id, DeliveryState::Failed, &columns)
}

/// Lets a waiting delivery be tried now.
pub(super) fn hasten(db: &Connection, id: &str, now: i64) -> Result<bool, JournalError> {
    let sql =
        "UPDATE outbox SET next_at = min(next_at, ?2) WHERE id = ?1 AND state IN ('pending', 'uncertain')";
    Ok(db.prepare_cached(sql)?.execute(params![id, now])? == 1)
}

/// Marks deliveries that the last process was sending as uncertain; called at start.
pub(super) fn mark_uncertain(db: &Connection) -> Result<(), JournalError> {
    let (sending, uncertain) = (DeliveryState::Sending.name(), DeliveryState::Uncertain.name());
    db.execute(&format!("UPDATE outbox SET state = '{uncertain}' WHERE state = '{sending}'"), [])?;
    Ok(())
}

/// Drops unsent blocks of runs that did not end; called at start. The rest of the answer comes at
/// the run's end.
pub(super) fn drop_blocks(db: &Connection) -> Result<(), JournalError> {
    db.execute(
        "DELETE FROM outbox WHERE state = 'pending' AND EXISTS
         (SELECT 1 FROM inbox WHERE inbox.state != 'finished'
            AND outbox.id >= inbox.run_id || ':b' AND outbox.id < inbox.run_id || ':c')",
        [],
    )?;
    Ok(())
}

/// Drops deliveries that have been over for long enough.
pub(super) fn prune(db: &Connection, now: i64) -> Result<(), JournalError> {
    prune_rows(db, "state = 'sent' AND author IS NULL", now, SENT)?;
    prune_rows(db, "state = 'sent' AND author = 'gateway'", now, SENT_WITH_BUTTONS)?;
    prune_rows(db, "state = 'sent' AND author != 'gateway'", now, SENT_WITH_BUTTONS)?;
    prune_rows(db, "state = 'failed'", now, FAILED)
}

fn prune_rows(db: &Connection, which: &str, now: i64, retention: Retention) -> Result<(), JournalError> {
    db.prepare_cached(&format!("DELETE FROM outbox WHERE {which} AND ended_at < ?1"))?
        .execute(params![now.saturating_sub(retention.keep_ms)])?;
    // By the order of acceptance, which no clock that jumps can change.
    let surplus = format!("SELECT seq FROM outbox WHERE {which} ORDER BY seq DESC LIMIT -1 OFFSET ?1");
    db.prepare_cached(&format!("DELETE FROM outbox WHERE seq IN ({surplus})"))?
        .execute(params![retention.keep_rows])?;
    Ok(())
}

const STATUS: &str =
    "id, state, attempts, receipt, error, session_key, accepted_at, may_repeat, next_at, ended_at, asked,
     channel, account, target, thread, given_up, left_out, author";

/// Returns the status of a delivery; `None` for an unknown one.
pub(super) fn status(db: &Connection, id: &str) -> Result<Option<DeliveryStatus>, JournalError> {
    let sql = format!("SELECT {STATUS} FROM outbox WHERE id = ?1");
    Ok(db.prepare_cached(&sql)?.query_row(params![id], read_status).optional()?)
}

/// The deliveries of a run's answer, in order.
pub(super) fn of_run(db: &Connection, run_id: &RunId) -> Result<Vec<DeliveryStatus>, JournalError> {
    let sql = format!("SELECT {STATUS} FROM outbox WHERE id >= ?1 || ':' AND id < ?1 || ';' ORDER BY seq");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params![run_id.as_str()], read_status)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the messages with this id that a platform has from here.
pub(super) fn sent_messages(
    db: &Connection,
    channel: &str,
    message_id: &str,
) -> Result<Vec<SentMessage>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT account, coalesce(json_extract(receipt, '$.target'), target), thread, author FROM outbox
         WHERE state = 'sent' AND channel = ?1
           AND EXISTS (SELECT 1 FROM json_each(receipt, '$.messageIds') WHERE value = ?2)",
    )?;
    let rows = statement.query_map(params![channel, message_id], |row| {
        let address = Address {
            channel: channel.to_owned(),
            account: row.get(0)?,
            target: row.get(1)?,
            thread: row.get(2)?,
        };
        Ok(SentMessage { address, author: author_of(row, 3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn author_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Author> {
    Ok(Author::of_column(row.get::<_, Option<String>>(at)?.as_deref()))
}

/// Counts the open and failed deliveries of an account, with the time of the last one sent and the
/// late conversations; without its events.
pub(super) fn counts(db: &Connection, channel: &str, account: &str) -> Result<AccountCounts, JournalError> {
    let count =
        |row: &Row<'_>, at: usize| row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or(0));
    let (late, late_total) = late(db, channel, account)?;
    let counts = db
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE state IN ('pending', 'sending', 'uncertain')),
                    count(*) FILTER (WHERE state = 'failed' AND given_up IS NOT 'discarded'),
                    max(ended_at) FILTER (WHERE state = 'sent')
             FROM outbox WHERE channel = ?1 AND account = ?2",
        )?
        .query_row(params![channel, account], |row| {
            Ok(AccountCounts {
                inbox: 0,
                pending: count(row, 0)?,
                failed: count(row, 1)?,
                last_sent_at: row.get(2)?,
                events: Vec::new(),
                late,
                late_total,
            })
        })?;
    Ok(counts)
}

/// Returns the conversations of an account whose first delivery keeps failing, and their number.
fn late(db: &Connection, channel: &str, account: &str) -> Result<(Vec<LateConversation>, u64), JournalError> {
    let open = queue::open_names::<DeliveryState>();
    // SQLite takes the other columns from the row that has the least `seq`.
    let sql = format!(
        "SELECT target, id, accepted_at, error, count(*), min(seq), count(*) OVER ()
         FROM outbox WHERE kind = '{KIND}' AND state IN ({open}) AND channel = ?1 AND account = ?2
         GROUP BY target HAVING error IS NOT NULL AND next_at - accepted_at >= {LATE_MS}
         ORDER BY min(seq) LIMIT {LATE_LISTED}"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut total = 0;
    let rows = statement.query_map(params![channel, account], |row| {
        total = row.get(6)?;
        Ok(LateConversation {
            target: row.get(0)?,
            id: row.get(1)?,
            since: row.get(2)?,
            error: row.get(3)?,
            waiting: row.get(4)?,
        })
    })?;
    let late = rows.collect::<Result<_, _>>()?;
    Ok((late, total))
}

/// Returns the delivery of this id, or those that a platform has under this id of a message.
pub(super) fn named(db: &Connection, id: &str) -> Result<Vec<DeliveryStatus>, JournalError> {
    // A receipt is JSON with texts in it: the id stands there in quotes.
    let quoted = serde_json::to_string(id)?;
    let sql = format!("SELECT {STATUS} FROM outbox WHERE id = ?1 OR instr(receipt, ?2) > 0 ORDER BY seq");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params![id, quoted], read_status)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the first open delivery of this one's conversation, if that is another.
pub(super) fn ahead_of(db: &Connection, id: &str) -> Result<Option<String>, JournalError> {
    let open = queue::open_names::<DeliveryState>();
    let sql = format!(
        "SELECT first.id FROM outbox AS own JOIN outbox AS first USING (channel, account, target)
         WHERE own.id = ?1 AND first.seq < own.seq AND first.state IN ({open}) AND own.state IN ({open})
         ORDER BY first.seq LIMIT 1"
    );
    Ok(db.prepare_cached(&sql)?.query_row(params![id], |row| row.get(0)).optional()?)
}

/// Returns the last wait that the platform asked for when it put a delivery of the conversation
/// off.
fn hold(db: &Connection, at: &Address) -> Result<Option<Hold>, JournalError> {
    let Address { channel, account, target, .. } = at;
    let mut statement = db.prepare_cached(
        "SELECT ended_at, next_at FROM outbox
         WHERE state = 'failed' AND next_at > ended_at AND channel = ?1 AND account = ?2 AND target = ?3
         ORDER BY seq DESC LIMIT 1",
    )?;
    let found = statement.query_row(params![channel, account, target], |row| {
        Ok(Hold { asked_at: row.get(0)?, until: row.get(1)? })
    });
    Ok(found.optional()?)
}

/// Returns the deliveries that were given up, the newest first.
pub(super) fn failed(db: &Connection, most: u32) -> Result<Vec<ListedDelivery>, JournalError> {
    let sql = format!(
        "SELECT {STATUS}, payload FROM outbox WHERE state = 'failed' AND given_up IS NOT 'discarded' ORDER BY seq DESC LIMIT ?1"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params![most], read_listed)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the deliveries that are not over, in the order of acceptance.
pub(super) fn waiting(db: &Connection) -> Result<Vec<ListedDelivery>, JournalError> {
    let open = queue::open_names::<DeliveryState>();
    let sql = format!("SELECT {STATUS}, payload FROM outbox WHERE state IN ({open}) ORDER BY seq");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([], read_listed)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_listed(row: &Row<'_>) -> rusqlite::Result<ListedDelivery> {
    let part: Option<String> = row.get("payload")?;
    let part = part.and_then(|part| serde_json::from_str(&part).ok());
    Ok(ListedDelivery { status: read_status(row)?, part })
}

fn read_status(row: &Row<'_>) -> rusqlite::Result<DeliveryStatus> {
    let receipt: Option<String> = row.get(3)?;
    let state = state(&row.get::<_, String>(1)?);
    Ok(DeliveryStatus {
        id: row.get(0)?,
        state,
        attempts: row.get(2)?,
        receipt: receipt.and_then(|receipt| serde_json::from_str(&receipt).ok()),
        error: row.get(4)?,
        session_key: session_of(row)?,
        accepted_at: row.get(6)?,
        may_repeat: row.get(7)?,
        next_at: Some(row.get(8)?).filter(|_| state.is_open()),
        ended_at: row.get(9)?,
        asked: row.get(10)?,
        address: Address {
            channel: row.get(11)?,
            account: row.get(12)?,
            target: row.get(13)?,
            thread: row.get(14)?,
        },
        given_up: given_up(row.get::<_, Option<String>>(15)?.as_deref()),
        left_out: row.get(16)?,
        author: author_of(row, 17)?,
    })
}

fn given_up(name: Option<&str>) -> Option<DeliveryFailure> {
    DeliveryFailure::ALL.into_iter().find(|why| Some(why.as_str()) == name)
}

/// Reads the session; one that can't be read counts as none.
fn session_of(row: &Row<'_>) -> rusqlite::Result<Option<SessionKey>> {
    let key: Option<String> = row.get(5)?;
    Ok(key.and_then(|key| SessionKey::parse(&key).ok()))
}

/// The table allows no other names.
fn state(name: &str) -> DeliveryState {
    DeliveryState::parse(name).unwrap_or(DeliveryState::Uncertain)
}

/// Returns every delivery that is not over and was accepted after `after`, in the order of
/// acceptance.
pub(super) fn open(db: &Connection, after: i64) -> Result<Vec<OpenDelivery>, JournalError> {
    let open = queue::open_names::<DeliveryState>();
    let mut statement = db.prepare_cached(&format!(
        "SELECT seq, channel, account, target, next_at, thread,
                state = 'pending' AND attempts = 0 AND error IS NULL AND next_at > accepted_at
         FROM outbox WHERE kind = '{KIND}' AND seq > ?1 AND state IN ({open}) ORDER BY seq"
    ))?;
    let rows = statement.query_map(params![after], |row| {
        let lane = LaneKey { channel: row.get(1)?, account: row.get(2)?, target: row.get(3)? };
        let (next_at, thread, is_paced) = (row.get(4)?, row.get(5)?, row.get(6)?);
        Ok(OpenDelivery { number: row.get(0)?, lane, thread, next_at, is_paced })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the delivery stored under a number. `None`: it is gone.
pub(super) fn stored(db: &Connection, number: i64) -> Result<Option<StoredDelivery>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT id, channel, account, target, thread, session_key, expires_at, payload, state, attempts, accepted_at, asked,
                author
         FROM outbox WHERE seq = ?1",
    )?;
    let found = statement.query_row(params![number], |row| {
        let address =
            Address { channel: row.get(1)?, account: row.get(2)?, target: row.get(3)?, thread: row.get(4)? };
        let id: String = row.get(0)?;
        let (session_key, expires_at, asked) = (session_of(row)?, row.get(6)?, row.get(11)?);
        let author = author_of(row, 12)?;
        let part = row.get::<_, Option<String>>(7)?.unwrap_or_default();
        let delivery = match serde_json::from_str::<Part>(&part) {
            Ok(part) => Ok(Delivery { id, address, session_key, author, part, expires_at, asked }),
            Err(error) => Err(Unreadable { id, why: error.to_string() }),
        };
        let state = state(&row.get::<_, String>(8)?);
        let (attempts, accepted_at) = (row.get(9)?, row.get(10)?);
        Ok(StoredDelivery { delivery, state, attempts, accepted_at, is_cut_off: false, hold: None })
    });
    let Some(mut stored) = found.optional()? else { return Ok(None) };
    if let Ok(delivery) = &stored.delivery {
        stored.is_cut_off = is_cut_off(db, number, delivery)?;
        stored.hold = hold(db, &delivery.address)?;
    }
    Ok(Some(stored))
}

/// True if a part of the same message before this one was given up in a way that takes the rest
/// with it.
fn is_cut_off(db: &Connection, number: i64, delivery: &Delivery) -> Result<bool, JournalError> {
    let Address { channel, account, target, .. } = &delivery.address;
    let message = Delivery::message_of(&delivery.id);
    let mut statement = db.prepare_cached(
        "SELECT given_up FROM outbox
         WHERE id >= ?1 || ':' AND id < ?1 || ';' AND seq < ?2 AND state = 'failed'
           AND channel = ?3 AND account = ?4 AND target = ?5",
    )?;
    let before = statement.query_map(params![message, number, channel, account, target], |row| {
        row.get::<_, Option<String>>(0)
    })?;
    for why in before {
        if given_up(why?.as_deref()).is_some_and(DeliveryFailure::takes_the_rest) {
            return Ok(true);
        }
    }
    Ok(false)
}
