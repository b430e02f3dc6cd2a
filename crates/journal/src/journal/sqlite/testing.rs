//! A journal with which tests can write by hand, on its writer's connection.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::writer::{self, Mail};
use super::{SqliteJournal, answered};
use crate::journal::JournalError;

/// Opens a journal with which a test can write by hand, on its writer's connection.
///
/// # Errors
/// When the file can't be opened.
pub fn opened(dir: &Path) -> Result<Arc<SqliteJournal>, JournalError> {
    Ok(Arc::new(SqliteJournal::open_with(dir, writer::apply, |_| Ok(()))?.0))
}

/// Runs statements on the writer's own connection, also while refused updates hold changes back.
///
/// # Errors
/// When a statement fails.
pub async fn run_sql(journal: &SqliteJournal, sql: &'static str) -> Result<(), JournalError> {
    by_hand(journal, move |db| Ok(db.execute_batch(sql)?)).await
}

/// Does something with the writer's own connection, between two changes.
pub(super) async fn by_hand<T: Send + 'static>(
    journal: &SqliteJournal,
    work: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let (reply, answer) = oneshot::channel();
    let work = move |db: &Connection| {
        // A caller that went away meanwhile needs no answer.
        let _ = reply.send(work(db));
    };
    journal.send(Mail::ByHand(Box::new(work))).await?;
    answered(&journal.mailbox, answer).await?
}
