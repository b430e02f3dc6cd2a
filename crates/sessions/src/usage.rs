//! Tokens and money, counted from the transcripts (spec `operations.md` §13, `gateway-protocol.md` §6.2).
//!
//! [`UsageIndex`] reads transcripts line by line and remembers a [`Digest`] of each: sums by UTC
//! day, so that any range of days is answered without the file. A file that only grew is read from
//! where the last reading ended, one that did not change is not read at all. The answers for
//! clients are built in `report`, `cost`, `series` and `logs`.
//!
//! Every entry of a transcript counts, those of left branches too: they were paid for. Entries that
//! a fork copied from its parent count in the parent alone. Archives (`.deleted.`, `.bak.`) do not
//! count.

mod cost;
mod day;
mod digest;
mod files;
mod index;
mod line;
mod logs;
mod report;
mod scan;
mod series;
mod sums;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use cost::cost;
pub use day::{Day, DayRange, RangeError};
pub use digest::Digest;
pub use index::UsageIndex;
pub use logs::logs;
pub use report::report;
pub use series::timeseries;

use openclaw_protocol::AgentId;

use crate::key::KeyError;
use crate::store::{Query, Rows, SessionStore, StoreError, gather};
use files::{TranscriptOwner, TranscriptPlaces};

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Prompt tokens that were not cached.
    pub input: f64,
    /// Completion tokens.
    pub output: f64,
    /// Prompt tokens from the cache.
    pub cache_read: f64,
    /// Prompt tokens into the cache.
    pub cache_write: f64,
}

/// The price of a provider's model, for answers that do not say what they cost.
pub type Prices = Arc<dyn Fn(&str, &str) -> Option<Price> + Send + Sync>;

/// Input of the count besides the transcripts.
pub struct Ledger<'a> {
    /// The rows.
    pub store: &'a dyn SessionStore,
    /// Earlier counts.
    pub index: &'a UsageIndex,
    /// The configured agents; those with a directory are found.
    pub agents: &'a [AgentId],
    /// Prices of models.
    pub prices: Prices,
}

impl Ledger<'_> {
    fn places(&self) -> TranscriptPlaces {
        let rules = self.store.rules().clone();
        TranscriptPlaces { layout: self.index.layout().clone(), rules, agents: self.agents.to_vec() }
    }

    /// Reads the transcript of the session that a client names for `method`, and returns its id;
    /// `None` where there is none.
    async fn read_one<T: Send + 'static>(
        self,
        key: Option<&str>,
        method: &'static str,
        read: impl FnOnce(&Path, &Prices) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<(String, T)>, UsageError> {
        let text = key.map(str::trim).filter(|key| !key.is_empty());
        let text = text.ok_or(UsageError::KeyRequired(method))?.to_owned();
        let places = self.places();
        let key = places.rules.canonical(&text)?;
        let owner = self.store.get(&key).await?.as_ref().map(TranscriptOwner::of);
        let prices = self.prices;
        let look = move || {
            let Some(found) = places.one(&text, &key, owner) else { return Ok(None) };
            match read(&found.path, &prices) {
                Ok(read) => Ok(Some((found.session_id, read))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(source) => Err(UsageError::Read { path: found.path, source }),
            }
        };
        self.index.look_at_one(look).await?
    }

    /// The sessions that may have been used in these days: a row is touched after its transcript is.
    async fn owners_within(&self, range: DayRange) -> Result<Vec<TranscriptOwner>, StoreError> {
        let query = Query { since: Some(range.first.start_ms()), ..Query::default() };
        gather(self.store, Rows::All, &query, |row| Some(TranscriptOwner::of(&row))).await
    }
}

/// Reason why usage could not be reported.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The requested days are not valid.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The session has to be named.
    #[error("key is required for {0}")]
    KeyRequired(&'static str),
    /// The key is not valid.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No messages are in it, or its transcript is gone.
    #[error("No transcript found for session: {0}")]
    NoTranscript(String),
    /// The transcript can't be read.
    #[error("cannot read the transcript {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// Error from the system.
        #[source]
        source: std::io::Error,
    },
    /// The rows can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The counting was interrupted; try again.
    #[error("counting the usage was interrupted")]
    Interrupted,
}

impl UsageError {
    /// True if the request was wrong (`INVALID_REQUEST`); otherwise it may work later
    /// (`UNAVAILABLE`).
    pub fn is_invalid_request(&self) -> bool {
        match self {
            Self::Range(_) | Self::KeyRequired(_) | Self::Key(_) | Self::NoTranscript(_) => true,
            Self::Read { .. } | Self::Store(_) | Self::Interrupted => false,
        }
    }
}

#[cfg(test)]
mod tests;
