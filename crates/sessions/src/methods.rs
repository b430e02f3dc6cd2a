//! Effects of the gateway's `sessions.*` methods on the store (spec `gateway-protocol.md` §6.2).
//! Access rules, stopping runs and telling others are the gateway's.

mod compact;
mod delete;
mod list;
mod patch;
mod preview;
mod reset;
mod resolve;

pub use compact::compact;
pub use delete::{delete, require_deletable};
pub use list::{derived_title, display_name, kind_of, list};
pub use patch::{MAX_LABEL, PatchError, PatchRules, ResolveModel, apply_patch, patch};
pub use preview::preview;
pub use reset::reset;
pub use resolve::{ResolveError, resolve};

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::AgentId;
use serde_json::{Map, Value};

pub use crate::entry::ModelName;
use crate::key::{KeyError, SessionKey};
use crate::store::{Row, StoreError, UpdateError};
use crate::transcript::{LockError, TranscriptError, TranscriptLock, TranscriptRef, Transcripts};

/// Reason why a method failed.
#[derive(Debug, thiserror::Error)]
pub enum MethodError {
    /// The key is not valid.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No session matches, or several do.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A field of a patch is wrong.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// The main session stays.
    #[error("Cannot delete the main session ({0}).")]
    MainSession(SessionKey),
    /// The transcript can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The transcript was not cut.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// Another writer holds the session's transcript and did not finish in time.
    #[error("Session {0} is still active; try again in a moment.")]
    StillActive(SessionKey),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MethodError {
    /// True if the request was wrong (`INVALID_REQUEST`); otherwise it may work later
    /// (`UNAVAILABLE`).
    pub fn is_invalid_request(&self) -> bool {
        match self {
            Self::Key(_) | Self::Resolve(_) | Self::Patch(_) | Self::MainSession(_) => true,
            Self::Store(StoreError::Refused(_) | StoreError::LabelInUse(_)) => true,
            Self::Lock(_) | Self::Transcript(_) | Self::StillActive(_) => false,
            Self::Store(StoreError::Io { .. } | StoreError::Closed) => false,
        }
    }
}

impl<E: Into<MethodError>> From<UpdateError<E>> for MethodError {
    fn from(error: UpdateError<E>) -> Self {
        match error {
            UpdateError::Refused(error) => error.into(),
            UpdateError::Store(error) => Self::Store(error),
        }
    }
}

/// A row, or an object of one, as the wire shows it.
pub(crate) fn wire<T: serde::Serialize>(value: &T) -> Option<Map<String, Value>> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Some(fields),
        Ok(_) | Err(_) => None,
    }
}

/// The transcript of a row, if there is one.
async fn transcript_of(transcripts: &Transcripts, agent: AgentId, row: &Row) -> Option<TranscriptRef> {
    let (all, entry) = (transcripts.clone(), Arc::clone(&row.entry));
    tokio::task::spawn_blocking(move || all.find(&agent, &entry)).await.unwrap_or_default()
}

/// The write lock of a session's transcript, once a run that has begun meanwhile is over.
async fn lock_soon(
    transcripts: &Transcripts,
    transcript: &TranscriptRef,
    key: &SessionKey,
    patience: Duration,
) -> Result<TranscriptLock, MethodError> {
    match TranscriptLock::acquire_soon(transcripts, transcript, patience).await {
        Err(LockError::Held { .. }) => Err(MethodError::StillActive(key.clone())),
        lock => Ok(lock?),
    }
}

#[cfg(test)]
mod tests;
