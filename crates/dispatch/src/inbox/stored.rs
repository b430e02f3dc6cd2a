//! A message on its way to disk: serialised once, away from the tasks that must not wait.

use serde_json::value::RawValue;

use super::digest::{self, Digest};
use super::{Parked, Payload};
use crate::journal::JournalError;

/// Bytes from which a payload is serialised on a blocking thread.
const BIG: usize = 128 * 1024;

/// The columns made from a payload.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// `kind`
    pub(crate) kind: &'static str,
    /// `payload`
    pub(crate) json: Box<RawValue>,
    /// `digest`
    pub(crate) digest: Digest,
    /// `facts`: what a lane has to know of a payload it does not keep.
    pub(crate) facts: Option<String>,
}

impl Stored {
    /// Parts a message into what goes to disk and what waits. A big payload is let go of here.
    pub(crate) async fn of(
        session_key: &str,
        payload: Payload,
        parked: Parked,
    ) -> Result<(Self, Parked), JournalError> {
        if payload.weight() < BIG {
            return Self::now(session_key, payload, parked);
        }
        let session_key = session_key.to_owned();
        let work = move || Self::now(&session_key, payload, parked);
        // The pool refuses only when the process ends.
        tokio::task::spawn_blocking(work).await.map_err(|_| JournalError::Closed)?
    }

    fn now(session_key: &str, payload: Payload, parked: Parked) -> Result<(Self, Parked), JournalError> {
        let json = serde_json::value::to_raw_value(&payload)?;
        let (kind, digest) = (payload.kind(), digest::of(session_key, &payload)?);
        let parked = parked.keeping(payload);
        let facts = parked.facts().map(|facts| serde_json::to_string(&facts)).transpose()?;
        Ok((Self { kind, json, digest, facts }, parked))
    }
}
