//! Heartbeats among the messages that a start takes up again.

use openclaw_protocol::{AgentId, RunId, SessionKey};

use super::{Unfinished, UnfinishedPart};
use crate::beat::Beat;

/// A heartbeat that an earlier process accepted and did not finish: it is under way again, and its answer is still owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedBeat {
    /// Run id of the heartbeat.
    pub run_id: RunId,
    /// The agent.
    pub agent_id: AgentId,
    /// The session.
    pub session_key: SessionKey,
    /// Unix milliseconds of acceptance.
    pub accepted_at: i64,
    /// Settings decided when it was made.
    pub beat: Beat,
}

/// Returns the heartbeats among the messages that are taken up again. One too long to be kept in
/// memory is run like the others, and told to nobody.
pub fn unfinished_beats(found: &[Unfinished]) -> Vec<UnfinishedBeat> {
    let beat = |found: &Unfinished| {
        let UnfinishedPart::Whole(request) = &found.row.payload else { return None };
        Some(UnfinishedBeat {
            run_id: found.row.run_id.clone(),
            agent_id: request.agent_id.clone()?,
            session_key: found.row.session_key.clone(),
            accepted_at: found.row.accepted_at,
            beat: request.source.beat()?.clone(),
        })
    };
    found.iter().filter_map(beat).collect()
}
