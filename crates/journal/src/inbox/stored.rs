//! A message on its way to disk, serialised once.

use openclaw_config::settings::QueueMode;
use serde_json::value::RawValue;

use super::digest::{self, Digest};
use super::{Attempts, Queued};
use crate::arrival::Arrivals;
use crate::backlog::Share;
use crate::request::RunRequest;

/// The columns made from a request.
#[derive(Debug, Clone)]
pub struct RequestColumns {
    /// `kind`
    pub kind: &'static str,
    /// `payload`
    pub json: Box<RawValue>,
    /// `digest`
    pub digest: Digest,
    /// Column `facts`: the facts that a lane has to know of a payload it does not keep.
    pub facts: Option<String>,
    /// `queue_mode`: how it is treated during another run of its session.
    pub queue_mode: QueueMode,
    /// The events of chat platforms it is made of: decided about when it is stored.
    pub arrivals: Arrivals,
}

impl RequestColumns {
    /// Parts a message into the form for the disk and the form that waits. A big request is dropped
    /// from memory here.
    pub fn of(
        session_key: &str,
        request: RunRequest,
        share: Share,
    ) -> Result<(Self, Queued), serde_json::Error> {
        let json = serde_json::value::to_raw_value(&request)?;
        let (kind, digest) = (request.source.kind().as_str(), digest::of(session_key, &request)?);
        let arrivals = request.arrivals.clone();
        let queued = Queued::of(request, Attempts::default(), share);
        let facts = queued.stored_facts().map(serde_json::to_string).transpose()?;
        let queue_mode = queued.facts.queue.mode;
        Ok((Self { kind, json, digest, facts, queue_mode, arrivals }, queued))
    }
}
