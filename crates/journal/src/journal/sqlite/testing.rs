//! A journal with which tests can write by hand, on its writer's connection.

use std::path::Path;
use std::sync::Arc;

use super::SqliteJournal;
use crate::journal::JournalError;

/// Opens a journal with which a test can write by hand, on its writer's connection.
///
/// # Errors
/// When the file can't be opened.
pub fn opened(dir: &Path) -> Result<Arc<SqliteJournal>, JournalError> {
    Ok(Arc::new(SqliteJournal::open_with(dir, |_| Ok(()))?.0))
}

/// Runs statements on the writer's own connection, also while refused updates hold changes back.
///
/// # Errors
/// When a statement fails.
pub async fn run_sql(journal: &SqliteJournal, sql: &'static str) -> Result<(), JournalError> {
    journal.read(move |db| Ok(db.execute_batch(sql)?)).await
}
