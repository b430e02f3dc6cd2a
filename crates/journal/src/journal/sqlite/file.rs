//! The file: its tables, the settings of its connections, and the repair of a damaged one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::private_file;
use openclaw_sessions::time::{iso, now_ms};
use rusqlite::{Connection, ErrorCode};

use super::log_check;
use super::salvage::{self, Salvaged};
use crate::journal::JournalError;

/// Steps that bring a database from one `PRAGMA user_version` to the next, from 0 on. A step that
/// was released is never changed.
pub(super) const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    session_key TEXT NOT NULL,
    payload TEXT,
    accepted_at INTEGER NOT NULL,
    entry_id TEXT NOT NULL,
    fresh_id TEXT NOT NULL,
    session_id TEXT,
    abort_reason TEXT,
    state TEXT NOT NULL CHECK (state IN ('accepted', 'finished')),
    outcome TEXT,
    started_at INTEGER,
    ended_at INTEGER
) STRICT;
CREATE INDEX inbox_unfinished ON inbox (seq) WHERE state = 'accepted';
CREATE INDEX inbox_ended ON inbox (ended_at) WHERE state = 'finished';
",
    "
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    target TEXT NOT NULL,
    thread TEXT,
    session_key TEXT,
    payload TEXT,
    accepted_at INTEGER NOT NULL,
    expires_at INTEGER,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'uncertain', 'sent', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL DEFAULT 0,
    receipt TEXT,
    error TEXT,
    ended_at INTEGER
) STRICT;
CREATE INDEX outbox_open ON outbox (kind, seq) WHERE state IN ('pending', 'sending', 'uncertain');
CREATE INDEX outbox_ended ON outbox (state, ended_at) WHERE state IN ('sent', 'failed');
",
    "
ALTER TABLE inbox ADD COLUMN digest BLOB;
ALTER TABLE inbox ADD COLUMN facts TEXT;
ALTER TABLE inbox ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN unprepared INTEGER NOT NULL DEFAULT 0;
",
    // Each turn wrote pages of two indexes and of AUTOINCREMENT's table besides. What a search reads stands before what is big.
    "
CREATE TABLE inbox_4 (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('accepted', 'finished')),
    kind TEXT NOT NULL,
    session_key TEXT NOT NULL,
    session_id TEXT,
    accepted_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    unprepared INTEGER NOT NULL DEFAULT 0,
    abort_reason TEXT,
    entry_id TEXT NOT NULL,
    fresh_id TEXT NOT NULL,
    digest BLOB,
    facts TEXT,
    outcome TEXT,
    payload TEXT
) STRICT;
INSERT INTO inbox_4 (seq, run_id, state, kind, session_key, session_id, accepted_at, started_at, ended_at, attempts,
        unprepared, abort_reason, entry_id, fresh_id, digest, facts, outcome, payload)
    SELECT seq, run_id, state, kind, session_key, session_id, accepted_at, started_at, ended_at, attempts,
        unprepared, abort_reason, entry_id, fresh_id, digest, facts, outcome, payload FROM inbox;
DROP TABLE inbox;
ALTER TABLE inbox_4 RENAME TO inbox;
",
    "
CREATE TABLE arrivals (
    seq INTEGER PRIMARY KEY,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    native_id TEXT NOT NULL,
    message_id TEXT,
    target TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    fate TEXT CHECK (fate IN ('run', 'noted', 'handled', 'dropped')),
    reason TEXT,
    run_id TEXT,
    decided_at INTEGER,
    payload TEXT,
    UNIQUE (channel, account, native_id)
) STRICT;
CREATE INDEX arrivals_waiting ON arrivals (seq) WHERE fate IS NULL;
CREATE INDEX arrivals_decided ON arrivals (decided_at) WHERE decided_at IS NOT NULL;
ALTER TABLE outbox ADD COLUMN may_repeat INTEGER NOT NULL DEFAULT 0;
CREATE INDEX arrivals_noted ON arrivals (channel, account, target, seq) WHERE fate = 'noted' AND run_id IS NULL;
",
    QUEUED_TOGETHER,
    TRACED,
    ASKED,
    OWED,
    GIVEN_UP,
    LEFT_OUT,
    IDENTIFIED,
    IDENTIFIED_FORMERLY,
    AUTHORED,
    SENT_AGAIN,
];

/// Adds columns for messages that are run together, or dropped by a full queue.
const QUEUED_TOGETHER: &str = "
ALTER TABLE inbox ADD COLUMN collected_by TEXT;
ALTER TABLE inbox ADD COLUMN cut INTEGER;
ALTER TABLE inbox ADD COLUMN answer_to TEXT;
";

/// Adds columns for `openclaw trace` alone. They are written with what is written anyway.
const TRACED: &str = "
ALTER TABLE inbox ADD COLUMN queue_mode TEXT;
ALTER TABLE inbox ADD COLUMN taken_by TEXT;
ALTER TABLE arrivals ADD COLUMN session_key TEXT;
ALTER TABLE arrivals ADD COLUMN matched_by TEXT;
ALTER TABLE arrivals ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
";

/// Adds the digest of a client's request under a key that it may use again.
const ASKED: &str = "
ALTER TABLE outbox ADD COLUMN asked BLOB;
";

/// Adds the reason for which a delivery was given up, and the time of an event by its platform.
const GIVEN_UP: &str = "
ALTER TABLE outbox ADD COLUMN given_up TEXT;
ALTER TABLE arrivals ADD COLUMN said_at INTEGER;
";

/// Adds the part of a delivery that was left out when the rest was sent.
const LEFT_OUT: &str = "
ALTER TABLE outbox ADD COLUMN left_out TEXT;
";

/// Makes events known by [`Inbound::dedupe_key`](openclaw_channels::Inbound::dedupe_key), which does
/// not depend on the current name of their account.
const IDENTIFIED: &str = "
CREATE TABLE arrivals_12 (
    seq INTEGER PRIMARY KEY,
    identity TEXT UNIQUE,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    native_id TEXT NOT NULL,
    message_id TEXT,
    target TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    said_at INTEGER,
    fate TEXT CHECK (fate IN ('run', 'noted', 'handled', 'dropped')),
    reason TEXT,
    run_id TEXT,
    decided_at INTEGER,
    session_key TEXT,
    matched_by TEXT,
    again INTEGER NOT NULL DEFAULT 0,
    payload TEXT
) STRICT;
INSERT INTO arrivals_12 (seq, channel, account, native_id, message_id, target, received_at, said_at, fate, reason,
        run_id, decided_at, session_key, matched_by, again, payload)
    SELECT seq, channel, account, native_id, message_id, target, received_at, said_at, fate, reason,
        run_id, decided_at, session_key, matched_by, again, payload FROM arrivals;
DROP TABLE arrivals;
ALTER TABLE arrivals_12 RENAME TO arrivals;
CREATE INDEX arrivals_waiting ON arrivals (seq) WHERE fate IS NULL;
CREATE INDEX arrivals_decided ON arrivals (decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX arrivals_noted ON arrivals (channel, account, target, seq) WHERE fate = 'noted' AND run_id IS NULL;
";

/// Adds the identity of events that are known by their account and number, as
/// [`Inbound::former_dedupe_keys`](openclaw_channels::Inbound::former_dedupe_keys) builds it.
pub(super) const IDENTIFIED_FORMERLY: &str = "
UPDATE arrivals SET identity = channel || char(10) || account || char(10) || native_id WHERE identity IS NULL;
";

/// Adds the author of deliveries. Of deliveries stored before, only questions about commands are known to be the gateway's.
const AUTHORED: &str = "
ALTER TABLE outbox ADD COLUMN author TEXT;
UPDATE outbox SET author = 'gateway' WHERE id GLOB 'approval:*:asked:[0-9]*';
";

/// Adds a mark for dropped messages whose key counts as new when they are sent again.
const SENT_AGAIN: &str = "
ALTER TABLE inbox ADD COLUMN may_repeat INTEGER NOT NULL DEFAULT 0;
";

/// Adds the promises and lines that agents are owed about their commands.
const OWED: &str = "
CREATE TABLE promises (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('approval', 'command')),
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    session_key TEXT,
    line TEXT,
    begun_at INTEGER NOT NULL,
    lost_at INTEGER
) STRICT;
CREATE TABLE system_lines (
    seq INTEGER PRIMARY KEY,
    session_key TEXT NOT NULL,
    text TEXT NOT NULL,
    ts INTEGER NOT NULL,
    told_by TEXT
) STRICT;
";

/// Tables, in the order in which they were added.
pub(super) const TABLES: [&str; 5] = ["inbox", "outbox", "arrivals", "promises", "system_lines"];

/// Suffix of a new file until it takes the place of a damaged one.
const RENEWED: &str = ".renewed";

/// Statements that are kept parsed: more than the journal has. The library keeps 16 by itself, and a message with its answer takes more
/// than that, so that most were parsed anew each time: a third of the journal's processor time.
const STATEMENTS: usize = 128;

/// Time for which opening waits for a program that looks at the file, such as the doctor.
const BUSY: Duration = Duration::from_secs(5);

/// Opens the file: returns a connection that has the file for itself, with its schema in place, and
/// the result of a first look. A damaged file is set aside, and its readable rows are taken over.
pub(super) fn open<T>(
    path: &Path,
    look: impl Fn(&Connection) -> Result<T, JournalError>,
) -> Result<(Connection, T), JournalError> {
    let opened = open_sound(path).and_then(|db| look(&db).map(|found| (db, found)));
    match opened {
        Err(JournalError::Damaged(why)) => {
            let db = renew(path, &why)?;
            let found = look(&db)?;
            Ok((db, found))
        }
        opened => opened,
    }
}

fn open_sound(path: &Path) -> Result<Connection, JournalError> {
    if !path.exists() {
        // There is one if the process ended while it put a new file in place of a damaged one.
        let _ = std::fs::rename(beside(path, RENEWED), path);
    }
    // The last process was killed, or the machine stopped, or it met damage: the only times worth reading everything.
    let unclean = std::fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0);
    if unclean && let Some(flaw) = log_check::flaw(path, &beside(path, "-wal")) {
        return Err(JournalError::Damaged(flaw));
    }
    create_private(path)?;
    let mut db = Connection::open(path)?;
    db.busy_timeout(BUSY)?;
    take(&db).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => JournalError::InUse(path.display().to_string()),
        _ => error.into(),
    })?;
    db.pragma_update(None, "cache_size", -512)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    migrate(&mut db)?;
    if unclean {
        check(&db)?;
    }
    Ok(db)
}

/// Takes the file: it is locked once, from the first look on, and the index of the log is kept in
/// memory.
fn take(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_query_value(None, "user_version", |_| Ok(()))
}

/// Brings the schema up to date, all steps or none.
fn migrate(db: &mut Connection) -> Result<(), JournalError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Ok(done) = usize::try_from(found) else { return Err(JournalError::Newer { found, known }) };
    if done > MIGRATIONS.len() {
        return Err(JournalError::Newer { found, known });
    }
    if found < known {
        let transaction = db.transaction()?;
        MIGRATIONS.iter().skip(done).try_for_each(|step| transaction.execute_batch(step))?;
        transaction.pragma_update(None, "user_version", known)?;
        transaction.commit()?;
    }
    Ok(())
}

fn check(db: &Connection) -> Result<(), JournalError> {
    let verdict: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(JournalError::Damaged(verdict)) }
}

/// Begins a new file with the readable rows of a damaged one, sets that aside and puts the new one
/// in its place. A crash in between leaves either the damaged file, or none and the new one
/// complete.
fn renew(path: &Path, why: &str) -> Result<Connection, JournalError> {
    let refused = |error: std::io::Error| {
        JournalError::Storage(format!("it is damaged ({why}) and can't be set aside: {error}"))
    };
    keep_log(path).map_err(refused)?;
    let Salvaged { messages, deliveries, arrivals } = salvage(path)?;
    let kept = set_aside(path).map_err(refused)?;
    put_in_place(path).map_err(refused)?;
    tracing::error!(
        kept = %kept.display(), why, messages, deliveries, arrivals,
        "gateway.sqlite was damaged: it is kept aside, and what could be read of it was taken over; messages that \
         could not be read are not answered, transcripts are untouched"
    );
    open_sound(path)
}

/// Makes an empty file beside a log as long as a page, because SQLite would read nothing of the log
/// otherwise. A page of zeros is enough while all pages are in the log.
fn keep_log(path: &Path) -> std::io::Result<()> {
    const PAGE: u64 = 4096;
    let has_log = std::fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0);
    if has_log && std::fs::metadata(path).map_or(0, |meta| meta.len()) == 0 {
        private_file::append(path)?.set_len(PAGE)?;
    }
    Ok(())
}

/// Writes the readable rows of a damaged file into a complete new one beside it, which takes its
/// place with [`put_in_place`], or, if that did not happen, when the database is opened and the
/// damaged file is gone.
pub(super) fn salvage(path: &Path) -> Result<Salvaged, JournalError> {
    let fresh = beside(path, RENEWED);
    for suffix in ["", "-wal", "-shm"] {
        // Left by an attempt that did not get to its end; mostly there is none.
        let _ = std::fs::remove_file(beside(&fresh, suffix));
    }
    let mut db = open_sound(&fresh)?;
    let salvaged = salvage::copy(path, &mut db)?;
    db.close().map_err(|(_, error)| error)?;
    Ok(salvaged)
}

/// Puts the new file in the place of the damaged one.
pub(super) fn put_in_place(path: &Path) -> std::io::Result<()> {
    std::fs::rename(beside(path, RENEWED), path)
}

/// Moves the file and its log to a name that is free.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let stamp = iso(now_ms()).replace([':', '.'], "-");
    let named = |n: u32| match n {
        0 => beside(path, &format!(".damaged-{stamp}")),
        n => beside(path, &format!(".damaged-{stamp}-{n}")),
    };
    let aside = (0..u32::MAX).map(named).find(|aside| !aside.exists()).unwrap_or_else(|| named(0));
    // Looking at the file has made an empty log where there was none.
    if std::fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() == 0) {
        let _ = std::fs::remove_file(beside(path, "-wal"));
    }
    // The log first: without it the file is an older state of itself, never a mixture.
    for suffix in ["-wal", ""] {
        match std::fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            moved => moved?,
        }
    }
    // Holds nothing but locks and an index of the log, and is made anew.
    let _ = std::fs::remove_file(beside(path, "-shm"));
    Ok(aside)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// SQLite would create the file with the process's umask; messages are private. Its `-wal` and `-shm` take the mode over.
fn create_private(path: &Path) -> Result<(), JournalError> {
    private_file::append(path).map(drop).map_err(|error| JournalError::Storage(error.to_string()))
}
