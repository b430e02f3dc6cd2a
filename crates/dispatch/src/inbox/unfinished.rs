//! What a start finds of a message whose run has not ended.

use super::parked::{Attempts, Facts, Origin};
use super::{Payload, Row};

/// An unfinished message as a start finds it.
#[derive(Debug, PartialEq)]
pub(crate) struct Unfinished {
    /// The message, with what was asked where that is small.
    pub(crate) row: Row<Option<Payload>>,
    /// What brought it.
    pub(crate) origin: Origin,
    /// Size of its payload.
    pub(crate) bytes: usize,
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
            Ok((payload, Facts { origin, bytes })) => {
                Some(Self { row: row.with(payload), origin, bytes, attempts })
            }
            Err(error) => {
                tracing::error!(run_id = %row.run_id, %error, "inbox row is unreadable and stays undone");
                None
            }
        }
    }
}

fn parse(payload: Option<&str>, facts: Option<&str>) -> Result<(Option<Payload>, Facts), serde_json::Error> {
    if let Some(facts) = facts {
        return Ok((None, serde_json::from_str(facts)?));
    }
    let payload: Payload = serde_json::from_str(payload.unwrap_or_default())?;
    let facts = Facts { origin: Origin::of(&payload), bytes: payload.weight() };
    Ok((Some(payload), facts))
}
