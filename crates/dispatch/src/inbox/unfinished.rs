//! What a start finds of a message whose run has not ended.

use super::Row;
use super::queued::{Attempts, Facts};
use crate::request::Request;

/// What a start reads of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// All of it.
    Whole(Box<Request>),
    /// What its lane has to know; the rest stays on disk until its run begins.
    OnDisk(Facts),
}

/// An unfinished message as a start finds it.
#[derive(Debug, PartialEq)]
pub(crate) struct Unfinished {
    /// The message, with what was asked where that is small.
    pub(crate) row: Row<Found>,
    /// How often it was tried.
    pub(crate) attempts: Attempts,
}

impl Unfinished {
    /// Reads what is stored of a message: its payload, unless there are facts beside it. `None`, and logged, when that can't be
    /// read: a newer version may have written it, and it stays where it is.
    pub(crate) fn read(
        row: Row<()>,
        payload: Option<&str>,
        facts: Option<&str>,
        attempts: Attempts,
    ) -> Option<Self> {
        match parse(payload, facts) {
            Ok(found) => Some(Self { row: row.with(found), attempts }),
            Err(error) => {
                tracing::error!(run_id = %row.run_id, %error, "inbox row is unreadable and stays undone");
                None
            }
        }
    }
}

fn parse(payload: Option<&str>, facts: Option<&str>) -> Result<Found, serde_json::Error> {
    match facts {
        Some(facts) => Ok(Found::OnDisk(serde_json::from_str(facts)?)),
        None => Ok(Found::Whole(Box::new(serde_json::from_str(payload.unwrap_or_default())?))),
    }
}
